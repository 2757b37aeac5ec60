"""A process that logs to a file: starts it, waits for its log lines, and ends it.

Kafka nodes, the pipeline and a Prometheus server derive from ``LoggedProcess``. ``harness.system.guard`` makes sure
that none of them outlives the test run. A position in the log separates what was logged before an action from what was
logged after it.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.system.guard import kill_group, start_guarded
from harness.system.waiting import eventually

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used so far, in seconds: user and system time from /proc.

    Raises:
        OSError: there is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def command(pid: int) -> str:
    """Returns the command line of a process; empty after it has ended, even if no process has waited for it."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def children(pid: int) -> list[int]:
    """Returns the process ids of a process's children."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread may have ended
            found += map(int, task.read_text().split())
    return found


class LogFile:
    """A growing text file. Positions are in bytes, as ``end()`` returns them."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    def end(self) -> int:
        """Returns the position where the next line will be written."""
        return self.path.stat().st_size if self.path.exists() else 0

    def text(self, start: int = 0) -> str:
        """Returns the text that was written after the position ``start``."""
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    def tail(self, start: int = 0) -> str:
        """Returns the last 40 lines of the text that was written after the position ``start``."""
        return "\n".join(self.text(start).splitlines()[-40:])


class LoggedProcess:
    """A process that can be started again after it ended; its log is continued."""

    def __init__(self, log: Path) -> None:
        self.log: Final = LogFile(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def launch_command(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts the process with env as its whole environment."""
        if self.running:
            raise RuntimeError(f"the process that logs to {self.log.path} is running already")
        self._log_start = self.log.end()
        with self.log.path.open("ab") as out:
            self._process = start_guarded(
                command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def stop(self, timeout: float = 120) -> int:
        """Ends the process with SIGTERM, as an operator does.

        Returns:
            The exit code; it is 143 for a JVM that shut down cleanly.

        Raises:
            TimeoutError: the process did not end within timeout seconds. It is killed; a JVM has written its threads'
                stacks into the log before.
        """
        process = self._started()
        process.terminate()
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.dump_threads()
            self.kill()
            raise TimeoutError(f"not stopped within {timeout} s; its threads are in {self.log.path}") from None
        self.kill()  # also ends processes that this one started
        return code

    def dump_threads(self) -> None:
        """Makes a JVM write its threads' stacks into the log, if it still can."""
        start = self.log.end()
        self._started().send_signal(signal.SIGQUIT)
        with suppress(TimeoutError):
            self.wait_for_log("JNI global refs", start=start)

    def kill(self) -> None:
        """Kills the process and all that it started with SIGKILL, like a crash. Does nothing if there is none.

        A Kafka broker that was killed may join again after its ``broker.session.timeout.ms`` (9 s).
        """
        if self._process is not None:
            kill_group(self._process)
            self._process = None

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code if the process ended by itself; None while it runs, and after stop() or kill()."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().pid

    def rss(self) -> int:
        """Returns the resident memory in bytes, as /proc shows it."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kib) * 1024

    def log_text(self, start: int | None = None) -> str:
        """Returns the text that was logged after the position ``start``, or since the last start of the process."""
        return self.log.text(self._log_start if start is None else start)

    def wait_for_log(self, pattern: str, timeout: float = 120, start: int | None = None) -> str:
        """Waits until a regular expression matches what was logged after ``start``, or since the last start.

        Args:
            pattern: ``^`` and ``$`` match at lines.
            timeout: seconds.
            start: a position from ``log.end()``.

        Returns:
            The text that matched.

        Raises:
            TimeoutError: nothing matched in time, or the process ended first; the message has the log's tail.
        """
        compiled = re.compile(pattern, re.MULTILINE)

        def matched_or_ended() -> bool:
            ended = not self.running  # read before the log, so that its last lines are seen
            return compiled.search(self.log_text(start)) is not None or ended

        eventually(matched_or_ended, timeout, f"/{pattern}/ in {self.log.path}", on_timeout=self._tail)
        match = compiled.search(self.log_text(start))
        if match is None:
            raise TimeoutError(f"/{pattern}/ was not logged before the process ended; {self._tail()}")
        return match.group()

    def _tail(self) -> str:
        return f"the log ends:\n{self.log.tail(self._log_start)}"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"the process that logs to {self.log.path} was not started")
        return self._process
