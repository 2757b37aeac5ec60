"""Makes Debian systems in directories, installs quotahost's wheel in them, and runs commands there.

This needs root, debootstrap, and for another architecture qemu-user-static with its binfmt entry. The packages come
from debootstrap's own mirror, and the wheels from this machine's pip, so no command in the roots needs a network.
"""

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.matrix.cells import ROOT, results

MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
# Enters the root with a mount namespace of its own, so the mounts end with the command. The command keeps the pid.
_ENTER: Final = """
mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mkdir -p "$0$1" && mount --bind "$1" "$0$1" || exit 90
root=$0 && shift && exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Place:
    """A machine or a root in which the commands of a cell run."""

    enter: tuple[str, ...]  # the beginning of each command; empty for this machine itself
    python: str  # the interpreter of the environment that has quotahost, as the commands see it
    java: str  # the program java, as the commands see it

    def run(self, *command: str, timeout: float = 600) -> str:
        """The output of a command.

        Raises:
            RuntimeError: its exit code is not 0; the message has its output.
        """
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            output = done.stdout + done.stderr
            told = "\n".join(line for line in output.splitlines() if "WRONG" in line) or output[-2000:]
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{told}")
        return done.stdout + done.stderr


def debian(suite: str, architecture: str, folder: Path) -> Path:
    """The root of a Debian suite, with all that its cells need; made once.

    Raises:
        CalledProcessError: debootstrap failed; the last lines of its output name the reason.
    """
    root = folder / f"{suite}-{architecture}"
    done = root / ".complete"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        cells = [cell for cell in results() if (cell.system, cell.architecture) == (suite, architecture)]
        packages = {"python3", "python3-venv", "ca-certificates", "musl"}
        packages |= {f"libpython{cell.python}" for cell in cells}
        packages |= {f"openjdk-{cell.java}-jre-headless" for cell in cells}
        options = ["--variant=minbase", f"--arch={architecture}", f"--include={','.join(sorted(packages))}"]
        if MACHINES[architecture] != platform.machine():
            options.append("--foreign")
        shutil.rmtree(root, ignore_errors=True)  # debootstrap refuses what a stopped run has left
        subprocess.run(["debootstrap", *options, suite, str(root)], check=True, stdout=sys.stderr)
        if "--foreign" in options:
            _unpack(root)
        done.touch()
    return root


def _unpack(root: Path) -> None:
    """Unpacks the packages' files without running their scripts, which take half an hour if they are emulated."""
    for package in sorted(root.glob("var/cache/apt/archives/*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    # A script of ca-certificates would have made this file. pip reads the file even if there is no network.
    bundle = b"".join(each.read_bytes() for each in sorted(root.glob("usr/share/ca-certificates/*/*.crt")))
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    (root / "etc/ssl/certs/ca-certificates.crt").write_bytes(bundle)


def inside(root: Path) -> tuple[str, ...]:
    """The beginning of a command that runs in the root; the checkout has the same path there as outside."""
    return ("unshare", "--mount", "sh", "-c", _ENTER, str(root), str(ROOT))


def place(root: Path, architecture: str, python: str, java: str) -> Place:
    """A place in a Debian root, with the wheel installed in /opt/quotahost."""
    found = Place(
        inside(root), "/opt/quotahost/bin/python", f"/usr/lib/jvm/java-{java}-openjdk-{architecture}/bin/java"
    )
    machine = MACHINES[architecture]
    if machine == platform.machine():
        _install(found, "/usr/bin/python3", "/opt/quotahost", wheels(python, machine))
    else:
        _unpack_wheels(found, root, python, wheels(python, machine), tags(machine))
    return found


def _unpack_wheels(place: Place, root: Path, python: str, folder: Path, platforms: list[str]) -> None:
    """Makes this machine's pip fill a new environment, since an emulated ensurepip alone takes more than 90 s."""
    place.run("/usr/bin/python3", "-m", "venv", "--clear", "--without-pip", "/opt/quotahost")
    target = ["--target", str(root / f"opt/quotahost/lib/python{python}/site-packages"), "--no-compile"]
    options = ["--no-index", f"--find-links={folder}", "--only-binary=:all:", f"--python-version={python}", *platforms]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *target, "quotahost"], check=True)


def here(folder: Path, python: str) -> Place:
    """A place on this machine, with this Python and the first ``java`` on the PATH.

    Raises:
        RuntimeError: there is no such Python with a shared library.
    """
    candidates = [
        shutil.which(f"python{python}"),
        *map(str, Path.home().glob(f".pyenv/versions/{python}.*/bin/python")),
    ]
    base = next((each for each in candidates if each and _has_library(each)), None)
    java = shutil.which("java")
    if base is None or java is None:
        raise RuntimeError(f"this machine has no Python {python} with a shared library, or no java")
    venv = folder / f"venv-{python}"
    found = Place((), str(venv / "bin/python"), java)
    _install(found, base, str(venv), wheels(python, "x86_64"))
    return found


def _has_library(python: str) -> bool:
    command = [python, "-c", "import sysconfig; print(sysconfig.get_config_var('Py_ENABLE_SHARED'))"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "1"


def wheels(python: str, machine: str) -> Path:
    """A directory with quotahost's wheel and the wheels that it needs, for one Python and architecture.

    Raises:
        CalledProcessError: pip found no wheel of a package.
    """
    folder = ROOT / "build/matrix/wheels" / f"{python}-{machine}"
    shutil.rmtree(folder, ignore_errors=True)
    wheel = next((ROOT / "dist").glob("quotahost-*.whl"))
    options = ["--only-binary=:all:", f"--python-version={python}", *tags(machine)]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), str(wheel)], check=True)
    return folder


def tags(machine: str) -> list[str]:
    """Options of pip for the wheels that a system of this architecture with glibc accepts."""
    of_glibc = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (34, 31, 28, 27, 26, 24, 17)]
    return [*of_glibc, f"--platform=manylinux2014_{machine}"]


def _install(place: Place, base: str, venv: str, folder: Path) -> None:
    place.run(base, "-m", "venv", "--clear", venv)
    place.run(place.python, "-m", "pip", "install", "-q", "--no-index", f"--find-links={folder}", "quotahost")


def versions(place: Place) -> str:
    """The versions of Python and Java in full."""
    python = place.run(place.python, "-V").split()[-1]
    java = re.search(r'version "([^"]+)"', place.run(place.java, "-version"))
    return f"Python {python}, Java {java[1] if java else '?'}"
