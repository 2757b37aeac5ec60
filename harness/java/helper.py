"""Talks to the helper JVM (``src/Helper.java``), which does for the tests what only Java can do.

One JVM for each Kafka version runs Kafka's command line tools, its Admin client, its own producer, and JMX queries.
Requests and answers are lines of JSON. ``harness.kafka`` and ``harness.java.jmx`` use it.
"""

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
_ATTACHES_WITHIN: Final = 60_000  # ms; the JDK's 10 s are too few for a broker that starts on a busy machine


class HelperError(Exception):
    """The helper answered with an exception instead of a result; the message has the exception's class and text."""


class Helper:
    """One JVM with the classes of one Kafka version. The first request starts it; it ends with this process."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, command: str, *args: object, timeout: float = 120) -> Any:
        """Runs one of the commands of ``Helper.java``; returns its result in JSON's types.

        Raises:
            HelperError: the command raised an exception in Java, or the helper JVM died.
            TimeoutError: no answer came within timeout seconds; the helper JVM is ended.
        """
        request = json.dumps({"command": command, "args": args}) + "\n"
        with self._lock:
            try:
                answer = self._send(request.encode(), timeout)
            except BaseException:  # a late answer must not be taken for the next request's answer
                self.end()
                raise
        if "error" in answer:
            raise HelperError(f"{command}: {answer['error']}")
        return answer["result"]

    def _send(self, request: bytes, timeout: float) -> dict[str, Any]:
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
        command += [f"-Dlog4j2.configurationFile={_LOG_CONFIG}", f"-Dsun.tools.attach.attachTimeout={_ATTACHES_WITHIN}"]
        command += ["-cp", class_path([broker_jars(self._version), harness_classes(self._version)])]
        command += ["harness.Helper"]
        pipe = subprocess.PIPE
        return start_guarded(command, cwd=Path(tempfile.gettempdir()), stdin=pipe, stdout=pipe)

    def end(self) -> None:
        """Ends the JVM; a request that another thread waits for raises HelperError."""
        process, self._process = self._process, None
        if process is not None:
            kill_group(process)


_helpers: dict[str, Helper] = {}
_helpers_lock = threading.Lock()


def helper(version: str = DEFAULT_VERSION) -> Helper:
    """Returns the helper for that Kafka version, one for the whole process."""
    with _helpers_lock:
        return _helpers.setdefault(version, Helper(version))
