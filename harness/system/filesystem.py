"""Mounts a small file system of one's own.

Tests and the demo fill a disk on purpose and compare limits with the bytes used. On a file system of their own,
other programs that write to this machine's disk can't disturb them, and no disk of the machine fills.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_file_system(folder: Path, size: str = "2g") -> Iterator[bool]:
    """Mounts a small file system in memory at the folder, if this user may mount one, and unmounts it at the end.

    Args:
        folder: made if it is missing; its content is hidden while the file system is mounted.
        size: the size, in the syntax of ``mount``.

    Yields:
        Whether it was mounted. If not, the folder is an ordinary one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "quotahost", str(folder)]
    mounted = (
        shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
