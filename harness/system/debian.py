"""Gets programs from Debian's packages, once, into ``build/``, without installing them.

The test of the factor source ``prometheus`` runs a real Prometheus server this way, and skips if that is impossible.
"""

import subprocess
from pathlib import Path

from harness.java.jars import BUILD, made_once


class PackageMissing(Exception):
    """The package can't be downloaded or unpacked on this machine; the message gives the reason."""


def debian_package(name: str) -> Path:
    """Returns the directory with the files of a package, such as ``usr/bin/prometheus``, without its dependencies.

    Raises:
        PackageMissing: this machine has no apt-get or dpkg, or the download failed.
    """

    def make(fresh: Path) -> None:
        _download(name, fresh.parent)
        package = next(fresh.parent.glob("*.deb"))
        _run(["dpkg", "-x", package.name, fresh.name], fresh.parent)

    return made_once(BUILD / name, make)


def _download(name: str, directory: Path) -> None:
    try:
        _run(["apt-get", "download", name], directory)
    except PackageMissing:
        # A new machine has no lists of packages, or old ones. They are renewed here and not in the system.
        lists = directory / "lists"
        (lists / "partial").mkdir(parents=True)
        own = ["-o", f"Dir::State::Lists={lists}"]
        _run(["apt-get", *own, "update"], directory)
        _run(["apt-get", *own, "download", name], directory)


def _run(command: list[str], directory: Path) -> None:
    command_line = " ".join(command)
    try:
        done = subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageMissing(f"{command_line}: {error}") from None
    if done.returncode != 0:
        raise PackageMissing(f"{command_line} failed: {done.stderr.strip()[-500:]}")
