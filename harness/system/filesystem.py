"""A file system of one's own, so that what others write to this machine's disk changes nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_file_system(folder: Path, size: str = "2g") -> Iterator[bool]:
    """A small one in memory at that folder, where this user may mount one.

    Args:
        folder: is made, if need be; what it held is hidden meanwhile.
        size: as ``mount`` takes it.

    Yields:
        Whether it is there; else the folder lies where it lay before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "quotahost", str(folder)]
    mounted = (
        shutil.which("mount") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
