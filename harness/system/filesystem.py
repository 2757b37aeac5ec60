"""Mounts a small, separate file system.

Tests, benches and the demo fill a disk on purpose and compare limits with the bytes used. On a separate file system,
other programs that write to this machine's disk can't disturb them, and no disk of the machine fills.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

_Mount = Callable[[Path, str], AbstractContextManager[bool]]
# Mounts, prints a line, and keeps the namespace until standard input closes, at the latest when this process ends.
_IN_NAMESPACE: Final = 'mount -t tmpfs -o "size=$1" quotahost "$2" && echo mounted && exec cat'


@contextmanager
def own_file_system(folder: Path, size: str = "2g") -> Iterator[bool]:
    """Mounts a small file system in memory at the folder, if this user may mount one, and unmounts it at the end.

    A user other than root gets it in a user namespace, if the system allows these: then a symbolic link to it
    replaces the folder.

    Args:
        folder: made if it is missing; an existing folder must be empty.
        size: the size, in the syntax of ``mount``.

    Yields:
        Whether it was mounted. If not, the folder is an ordinary one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ways: tuple[_Mount, ...] = (_mounted, mounted_in_namespace)
    with ExitStack() as stack:
        yield any(stack.enter_context(way(folder, size)) for way in ways)


@contextmanager
def _mounted(folder: Path, size: str) -> Iterator[bool]:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "quotahost", str(folder)]
    mounted = (
        shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@contextmanager
def mounted_in_namespace(folder: Path, size: str) -> Iterator[bool]:
    """Mounts it in the namespace of a waiting process; other processes of this user reach it through /proc.

    Args and Yields: as for own_file_system.
    """
    if shutil.which("unshare") is None:
        yield False
        return
    place = folder.with_name(folder.name + ".mounted").absolute()
    place.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _IN_NAMESPACE, "sh", size, str(place)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]  # three integers
            try:
                mounted = process.stdout.readline() == b"mounted\n"
                if mounted:
                    folder.rmdir()
                    folder.symlink_to(f"/proc/{process.pid}/root{place}")
                yield mounted
            finally:
                if folder.is_symlink():
                    folder.unlink()
                    folder.mkdir()
    finally:
        place.rmdir()  # the mount has ended with the process
