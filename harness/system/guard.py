"""A small process, the guard, that outlives this one by a moment and kills the processes that this one started.

No broker may remain when a test run is killed. The guard reads process ids from a pipe. When this process ends, however
it ends, the pipe closes, and the guard kills the remaining process groups. Linux's PR_SET_PDEATHSIG would not work,
because it fires when the *thread* that started the process ends. ``harness.system.process`` and ``harness.java.helper``
start their processes here.
"""

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any


def start_guarded(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, **pipes: Any
) -> subprocess.Popen[bytes]:
    """Starts a process in a group of its own: Ctrl-C doesn't reach it, but the guard kills it.

    Args:
        command: program and arguments.
        env: its whole environment; None for this process's.
        cwd: its working directory.
        pipes: stdin, stdout and stderr, as for Popen.
    """
    guard = _guard_pipe()
    process = subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, **pipes)
    _send(guard, f"+{process.pid}\n")
    return process


def stop_guarding(process: subprocess.Popen[bytes]) -> None:
    """Tells the guard that the process has ended; the system may give its id to another process."""
    _send(_guard_pipe(), f"-{process.pid}\n")


def kill_group(process: subprocess.Popen[bytes]) -> int:
    """Kills the process and all processes that it started; returns its exit code."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    stop_guarding(process)
    return code


@functools.cache
def _guard_pipe() -> IO[bytes]:
    command = [sys.executable, "-I", __file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    return process.stdin


def _send(guard: IO[bytes], line: str) -> None:
    guard.write(line.encode())
    guard.flush()


def _main() -> None:
    watched: set[int] = set()
    for line in sys.stdin:
        (watched.add if line[0] == "+" else watched.discard)(int(line[1:]))
    for pid in watched:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    _main()
