"""Talks to ``harness.Helper``, the JVM that does for the tests what only Java can."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from harness.java.jars import DEFAULT_VERSION, broker_jars
from harness.java.jdk import class_path, harness_classes, program
from harness.system.guard import kill_group, start_guarded

_LOG_CONFIG: Final = Path(__file__).with_name("log4j2-helper.properties")


class HelperError(Exception):
    """What Java answered instead of a result: an exception's class and message."""


class Helper:
    """One JVM with Kafka's classes of one version; started when first asked, ended with this process."""

    def __init__(self, version: str) -> None:
        """Nothing is started yet."""
        self._version = version
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, command: str, *args: object, timeout: float = 120) -> Any:
        """Runs one of the commands of ``Helper.java`` and returns its result, of JSON types.

        Raises:
            HelperError: it raised in Java, or the helper died.
            TimeoutError: no answer within timeout seconds; the helper is ended.
        """
        request = json.dumps({"command": command, "args": args}) + "\n"
        with self._lock:
            try:
                answer = self._exchange(request.encode(), timeout)
            except BaseException:  # an answer that comes later must not meet another question
                self.end()
                raise
        if "error" in answer:
            raise HelperError(f"{command}: {answer['error']}")
        return answer["result"]

    def _exchange(self, request: bytes, timeout: float) -> dict[str, Any]:
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        if not select.select([process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no answer within {timeout} s")
        line = process.stdout.readline()
        if not line:
            raise HelperError("the helper JVM ended by itself")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        command = [program("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Dlog4j2.configurationFile={_LOG_CONFIG}"]
        command += ["-cp", class_path([broker_jars(self._version), harness_classes(self._version)])]
        command += ["harness.Helper"]
        pipe = subprocess.PIPE
        return start_guarded(command, cwd=Path(tempfile.gettempdir()), stdin=pipe, stdout=pipe)

    def end(self) -> None:
        """Ends the JVM; a question under way in another thread raises HelperError."""
        process, self._process = self._process, None
        if process is not None:
            kill_group(process)


_helpers: dict[str, Helper] = {}
_helpers_lock = threading.Lock()


def helper(version: str = DEFAULT_VERSION) -> Helper:
    """The helper of that Kafka version, shared by the whole process."""
    with _helpers_lock:
        return _helpers.setdefault(version, Helper(version))
