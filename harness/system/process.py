"""A process that logs to a file: started, watched and ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.system.guard import kill_group, start_guarded
from harness.system.logfile import LogFile
from harness.system.waiting import eventually

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used so far, in seconds: user and system time from /proc.

    Raises:
        OSError: there is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


class LoggedProcess:
    """Can be started again after it ended; the log goes on."""

    def __init__(self, log: Path) -> None:
        """Nothing is started yet; log is the file for standard output and standard error."""
        self.log: Final = LogFile(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def launch_command(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts the process with env as its whole environment."""
        if self.running:
            raise RuntimeError("it is running already")
        self._log_start = self.log.end()
        with self.log.path.open("ab") as out:
            self._process = start_guarded(
                command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def stop(self, timeout: float = 120) -> int:
        """Ends it with SIGTERM, as an operator does.

        Returns:
            The exit code; a JVM that ended in good order says 143.

        Raises:
            TimeoutError: it did not end within timeout seconds; a JVM's threads are then in the
                log, and it is killed.
        """
        process = self._started()
        process.terminate()
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.dump_threads()
            self.kill()
            raise TimeoutError(
                f"not stopped within {timeout} s; its threads are in {self.log.path}"
            ) from None
        self.kill()  # what it started, if any
        return code

    def dump_threads(self) -> None:
        """Makes a JVM write its threads' stacks into the log, if it still can."""
        start = self.log.end()
        self._started().send_signal(signal.SIGQUIT)
        with suppress(TimeoutError):
            self.wait_for_log("JNI global refs", 5, start)

    def kill(self) -> None:
        """Ends it with SIGKILL, as a crash does, and all that it started; does nothing if it is not there.

        A Kafka broker that was killed may join again after its ``broker.session.timeout.ms`` (9 s).
        """
        if self._process is not None:
            kill_group(self._process)
            self._process = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code if it ended by itself; None while it runs, and when it was ended from here."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().pid

    def cpu_seconds(self) -> float:
        """The CPU time that the process has used so far, in seconds."""
        return cpu_seconds(self.pid)

    def rss(self) -> int:
        """The resident memory in bytes, as /proc shows it."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kib) * 1024

    def log_text(self, start: int | None = None) -> str:
        """What was logged since start (a position from ``log.end()``), or since the last start."""
        return self.log.text(self._log_start if start is None else start)

    def wait_for_log(self, pattern: str, timeout: float = 60, start: int | None = None) -> str:
        """Waits until a regular expression matches what was logged since start, or since the last start.

        Args:
            pattern: ``^`` and ``$`` match at lines.
            timeout: seconds.
            start: a position from ``log.end()``.

        Returns:
            The text that matched.

        Raises:
            TimeoutError: nothing did, or the process ended before; the message has the log's tail.
        """
        compiled = re.compile(pattern, re.MULTILINE)

        def matched_or_ended() -> bool:
            ended = not self.running  # asked first, so that its last words are read
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
            raise RuntimeError("it is not running")
        return self._process
