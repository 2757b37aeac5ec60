"""Makes minimal Debian roots by debootstrap, once, in ``build/``."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from harness.java.jars import BUILD, put_in_place

_SOURCES: Final = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")


class NoRoots(Exception):
    """This machine can't make or enter Debian roots; the message gives the reason."""


def debian_root(suite: str) -> Path:
    """A minimal root of a Debian suite, made once by debootstrap from the mirror that this machine's apt uses.

    Raises:
        NoRoots: not root, no debootstrap, or no mirror.
    """
    target = BUILD / "roots" / suite
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise NoRoots("a Debian root needs the user root and debootstrap")
    if target.is_dir():
        return target
    fresh = target.with_name(f".making-{suite}-{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", suite, str(fresh), _mirror()], capture_output=True, text=True, timeout=600
    )
    if done.returncode != 0:
        raise NoRoots(f"debootstrap failed: {(done.stdout + done.stderr)[-500:]}")
    put_in_place(fresh, target)
    return target


def _mirror() -> str:
    for source in filter(Path.is_file, map(Path, _SOURCES)):
        found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?) *(\S+/debian)/?\s", source.read_text(encoding="utf-8"), re.M)
        if found:
            return found[1]
    raise NoRoots(f"none of {', '.join(_SOURCES)} names a mirror of Debian")


def copy_root(source: Path, target: Path) -> None:
    """Copies a root as it is, owners and links included."""
    target.mkdir(parents=True)
    subprocess.run(["cp", "-a", "--reflink=auto", f"{source}/.", str(target)], check=True, timeout=300)
