"""Eight client libraries of four languages, each as a small program that sends to a real broker.

``installed()`` gets the libraries, in the versions that the lock files beside the drivers name, into build/clients; a
language whose tools are missing is left out, with the reason. A ``Ride`` is one driver with one choice of settings.
``Running`` starts it. The driver prints a line of JSON for what happens, each with ``ms``, the time:

    started   version: of the library
    acked     id: of a record that the library reports as written
    failed    id, error: of a record that the library has given up
    created   the library's admin reports no error of a new topic
    refused   error: the library's admin reports this
    done      sent: how many records

It sends numbered records of 1 kB until its standard input ends, and then waits for all of them.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from harness.java.jars import BUILD, broker_jars
from harness.java.jdk import class_path, program
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS
from harness.system.guard import kill_group, start_guarded

DRIVERS: Final = Path(__file__).with_name("drivers")
INSTALLED: Final = BUILD / "clients"
DEFAULT, TUNED, AWAITED = "default", "tuned", "awaited"  # settings; kafkajs alone has the last ones


@dataclass(frozen=True, slots=True)
class Library:
    """A client library: its name, its language, and the driver's command but for its only argument."""

    name: str
    language: str
    command: tuple[str, ...]

    @property
    def slug(self) -> str:
        """The name as a user of the broker."""
        return self.name.lower().replace(" ", "-")


def _python(python: str, driver: str) -> tuple[str, ...]:
    return python, str(DRIVERS / "python" / driver)


_OTHER_PYTHON: Final = str(INSTALLED / "python/bin/python")

_JAVA_CLASSES: Final = INSTALLED / "java"
_JAVA: Final = (program("java"), "-Xmx128m", "-cp", class_path([broker_jars(), _JAVA_CLASSES]), "Driver")

JAVA = Library("Java", "java", _JAVA)
LIBRDKAFKA = Library("librdkafka", "python", _python(sys.executable, "librdkafka.py"))
FRANZ_GO = Library("franz-go", "go", (str(INSTALLED / "go/franz"),))
KAFKA_PYTHON_3 = Library("kafka-python 3", "python", _python(sys.executable, "kafka_python.py"))
KAFKA_PYTHON_2 = Library("kafka-python 2", "pypi", _python(_OTHER_PYTHON, "kafka_python.py"))
AIOKAFKA = Library("aiokafka", "pypi", _python(_OTHER_PYTHON, "aio_kafka.py"))
SARAMA = Library("sarama", "go", (str(INSTALLED / "go/sarama"),))
KAFKA_GO = Library("kafka-go", "go", (str(INSTALLED / "go/kafkago"),))
KAFKAJS = Library("kafkajs", "node", ("node", str(DRIVERS / "node/kafkajs.js")))
LIBRARIES: Final = (
    JAVA, LIBRDKAFKA, FRANZ_GO, KAFKA_PYTHON_3, KAFKA_PYTHON_2, AIOKAFKA, SARAMA, KAFKA_GO, KAFKAJS,
)  # fmt: skip


# ---- installing --------------------------------------------------------------------------------------------------


@cache
def missing(language: str) -> str | None:
    """Installs what the drivers of a language need; returns why this machine can't, or None.

    Raises:
        CalledProcessError: the language's own package client failed.
    """
    install = {"java": _install_java, "pypi": _install_python, "go": _install_go, "node": _install_node}.get(language)
    tool = {"go": "go", "node": "npm"}.get(language)
    if tool is not None and shutil.which(tool) is None:
        return f"{tool} is not installed"
    if install is not None:
        install()
    return None


def _install_java() -> None:
    source = DRIVERS / "java/Driver.java"
    _run([program("javac"), "-d", str(_JAVA_CLASSES), "-cp", class_path([broker_jars()]), str(source)])


def _install_python() -> None:
    where, wanted = INSTALLED / "python", DRIVERS / "python/requirements.txt"
    done = where / ".requirements.txt"
    if done.exists() and done.read_text() == wanted.read_text():
        return
    venv.create(where, clear=True, with_pip=True)
    _run([_OTHER_PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-r", str(wanted)])
    shutil.copy(wanted, done)


def _install_go() -> None:
    where = INSTALLED / "go"
    where.mkdir(parents=True, exist_ok=True)
    _run(["go", "build", "-buildvcs=false", "-o", f"{where}/", "./..."], DRIVERS / "go")  # Go itself knows what is new


def _install_node() -> None:
    where = INSTALLED / "node"
    lock = where / "package-lock.json"
    if (where / "node_modules").exists() and lock.read_text() == (DRIVERS / "node/package-lock.json").read_text():
        return
    where.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(DRIVERS / "node" / name, where)
    _run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], where)


def _run(command: list[str], cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Running:
    """A driver that runs, and what it has printed so far; it is killed at the end of a ``with`` block."""

    library: Library
    settings: str
    process: subprocess.Popen[bytes]
    version: str = ""
    acked: dict[int, int] = field(default_factory=dict)  # when, in ms, by record
    failed: dict[int, tuple[int, str]] = field(default_factory=dict)  # when and the error, by record
    done: dict[str, Any] = field(default_factory=dict)
    admin: dict[str, Any] = field(default_factory=dict)
    _reader: threading.Thread | None = None

    @classmethod
    def start(
        cls,
        node: KafkaNode,
        library: Library,
        topic: str,
        *,
        settings: str = DEFAULT,
        rate: float = 100,
        outstanding: int = 100_000,
        create: bool = False,
    ) -> Self:
        """Starts the driver as a user of the broker with the library's name.

        Args:
            node: the broker; it has the library's slug as a user, whose password is the same.
            library: whose driver.
            topic: where it sends to, or what it creates.
            settings: DEFAULT, TUNED or AWAITED.
            rate: records a second.
            outstanding: how many records may be neither acknowledged nor failed before it waits.
            create: whether it creates the topic and sends nothing.
        """
        spec = {
            "Bootstrap": f"127.0.0.1:{node.ports[CLIENTS]}", "User": f"{library.slug}-{settings}", "Topic": topic,
            "Settings": settings, "Rate": rate, "Outstanding": outstanding, "Create": create,
        }  # fmt: skip
        pipe = subprocess.PIPE
        INSTALLED.mkdir(parents=True, exist_ok=True)
        log = (INSTALLED / f"{library.slug}-{settings}.log").open("wb")
        env = {**os.environ, "NODE_PATH": str(INSTALLED / "node/node_modules")}
        command = [*library.command, json.dumps(spec)]
        running = cls(library, settings, start_guarded(command, env=env, stdin=pipe, stdout=pipe, stderr=log))
        log.close()
        running._reader = threading.Thread(target=running._read, daemon=True)
        running._reader.start()
        return running

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kills what has not ended."""
        kill_group(self.process)

    @property
    def name(self) -> str:
        """The library, and its settings if they are not the default."""
        return self.library.name if self.settings == DEFAULT else f"{self.library.name}, {self.settings}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            match event["event"]:
                case "acked":
                    self.acked[event["id"]] = event["ms"]
                case "failed":
                    self.failed[event["id"]] = event["ms"], event["error"]
                case "started":
                    self.version = event["version"]
                case "created" | "refused":
                    self.admin = event
                case _:
                    self.done = event

    def acked_after(self, ms: float) -> list[int]:
        """The times at which records were acknowledged after that moment, in order."""
        return sorted(when for when in list(self.acked.values()) if when > ms)

    def failed_after(self, ms: float) -> list[int]:
        """The times at which the library gave records up after that moment, in order."""
        return sorted(when for when, _ in list(self.failed.values()) if when > ms)

    def finish(self, timeout: float = 120) -> None:
        """Ends the sending, and waits until the driver has ended."""
        assert self.process.stdin is not None
        assert self._reader is not None
        if self.process.poll() is None:
            self.process.stdin.close()
        self._reader.join(timeout)


def now_ms() -> float:
    """The clock of the drivers."""
    return time.time() * 1000
