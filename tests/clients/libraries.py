"""Each of eight client libraries of four languages is a small program that sends records to a real broker.

``missing()`` installs the libraries into build/clients, in the versions of the lock files beside the drivers. If a
language's tools are missing, the language is left out, with the reason. A ``Ride`` is one driver with one choice of
settings. ``running`` starts a driver. The driver prints a line of JSON for each event, with the time ``ms``:

    started   version: of the library
    acked     id: of a record that the library reports as written
    failed    id, error: of a record that the library has given up
    created   the library's admin reports no error for a new topic
    refused   error: the library's admin reports this error
    done      sent: the number of records

The driver sends numbered records of 1 kB until its standard input ends, and then waits for all results.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from harness.java.jars import BUILD, broker_jars
from harness.java.jdk import class_path, program
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS
from harness.system.guard import kill_group, start_guarded

DRIVERS: Final = Path(__file__).with_name("drivers")
INSTALLED: Final = BUILD / "clients"
DEFAULT, TUNED, AWAITED = "default", "tuned", "awaited"  # settings; only kafkajs has the last one


@dataclass(frozen=True, slots=True)
class Library:
    """A client library: its name, its language, and the driver's command without its only argument."""

    name: str
    language: str
    command: tuple[str, ...]

    @property
    def slug(self) -> str:
        """The name in lower case with dashes; the library's users and topics begin with it."""
        return self.name.lower().replace(" ", "-")


def _python(python: str, library: str) -> tuple[str, ...]:
    return python, str(DRIVERS / "python/driver.py"), library


_OTHER_PYTHON: Final = str(INSTALLED / "python/bin/python")

_JAVA_CLASSES: Final = INSTALLED / "java"
_JAVA: Final = (program("java"), "-Xmx128m", "-cp", class_path([broker_jars(), _JAVA_CLASSES]), "Driver")

JAVA = Library("Java", "java", _JAVA)
LIBRDKAFKA = Library("librdkafka", "python", _python(sys.executable, "librdkafka"))
FRANZ_GO = Library("franz-go", "go", (str(INSTALLED / "go/franz"),))
KAFKA_PYTHON_3 = Library("kafka-python 3", "python", _python(sys.executable, "kafka_python"))
KAFKA_PYTHON_2 = Library("kafka-python 2", "pypi", _python(_OTHER_PYTHON, "kafka_python"))
AIOKAFKA = Library("aiokafka", "pypi", _python(_OTHER_PYTHON, "aiokafka"))
SARAMA = Library("sarama", "go", (str(INSTALLED / "go/sarama"),))
KAFKA_GO = Library("kafka-go", "go", (str(INSTALLED / "go/kafkago"),))
KAFKAJS = Library("kafkajs", "node", ("node", str(DRIVERS / "node/kafkajs.js")))


@dataclass(frozen=True, slots=True)
class Ride:
    """One library with one choice of settings."""

    library: Library
    settings: str  # DEFAULT, TUNED or AWAITED
    words: str  # the settings as a user writes them
    lasts: float | None  # seconds of a PAUSE until a record is given up; None for 60 and more
    back: float  # seconds after the release within which the first record is acknowledged
    ordered: bool  # whether the records are in the topic in the order in which they were sent
    sees: str  # what the application sees of a PAUSE

    @property
    def topic(self) -> str:
        """The topic, which is also the user."""
        return f"{self.library.slug}-{self.settings}"


RIDES: Final = (
    Ride(JAVA, DEFAULT, "default", None, 5, True, "nothing"),
    Ride(LIBRDKAFKA, DEFAULT, "default", None, 5, False, "nothing"),
    Ride(LIBRDKAFKA, TUNED, "`enable.idempotence=true`", None, 5, True, "nothing"),
    Ride(FRANZ_GO, DEFAULT, "default", None, 10, True, "nothing"),
    Ride(FRANZ_GO, TUNED, "`MetadataMinAge(time.Second)`", None, 5, True, "nothing"),
    Ride(KAFKA_PYTHON_3, DEFAULT, "default", None, 5, True, "lines in its log"),
    Ride(KAFKA_PYTHON_2, DEFAULT, "default", 0, 5, False, "NotEnoughReplicasError for each record"),
    Ride(
        KAFKA_PYTHON_2, TUNED,
        "`retries=1_000_000`, `max_in_flight_requests_per_connection=1`, `request_timeout_ms=600_000`",
        None, 5, True, "lines in its log",
    ),
    Ride(AIOKAFKA, DEFAULT, "default", 30, 5, False, "`send()` blocks, then errors"),
    Ride(AIOKAFKA, TUNED, "`enable_idempotence=True`, `request_timeout_ms=600_000`", None, 5, True, "`send()` blocks"),
    Ride(SARAMA, DEFAULT, "default", 0, 5, False, "an error for each record"),
    Ride(
        SARAMA, TUNED,
        "`Producer.Idempotent`, `Net.MaxOpenRequests=1`, `Producer.Retry.Max=10_000`, `Producer.Retry.BackoffFunc` of "
        "at most 1 s",
        None, 5, True, "nothing",
    ),
    Ride(KAFKA_GO, DEFAULT, "default", 5, 5, False, "error 19, NotEnoughReplicas"),
    Ride(
        KAFKA_GO, TUNED, "`MaxAttempts=1_000`, `WriteBackoffMin=250ms`, `WriteBackoffMax=1s`", None, 5, True, "nothing",
    ),
    Ride(KAFKAJS, DEFAULT, "default, `send` not awaited", 5, 10, False, "NumberOfRetriesExceeded"),
    Ride(KAFKAJS, AWAITED, "default, each `send` awaited", 5, 10, True, "NumberOfRetriesExceeded"),
    Ride(
        KAFKAJS, TUNED,
        "`idempotent`, `maxInFlightRequests: 1`, `retry: {maxRetryTime: 2000, retries: 1_000_000}`, each `send` "
        "awaited",
        None, 5, True, "`send` takes as long as the PAUSE",
    ),
)  # fmt: skip
LIBRARIES: Final = tuple(dict.fromkeys(ride.library for ride in RIDES))


# ---- installing --------------------------------------------------------------------------------------------------


_run: Final = partial(subprocess.run, check=True)


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
    # Go builds only what has changed.
    _run(["go", "build", "-buildvcs=false", "-o", f"{where}/", "./..."], cwd=DRIVERS / "go")


def _install_node() -> None:
    where = INSTALLED / "node"
    lock = where / "package-lock.json"
    if (where / "node_modules").exists() and lock.read_text() == (DRIVERS / "node/package-lock.json").read_text():
        return
    where.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(DRIVERS / "node" / name, where)
    _run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=where)


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Running:
    """A driver that runs, and what it has printed so far."""

    library: Library
    process: subprocess.Popen[bytes]
    acked: dict[int, int] = field(default_factory=dict)  # when, in ms, by record
    failed: dict[int, tuple[int, str]] = field(default_factory=dict)  # when and the error, by record
    told: dict[str, dict[str, Any]] = field(default_factory=dict)  # the other events, by their names
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        """Reads until the driver ends."""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            match event["event"]:
                case "acked":
                    self.acked[event["id"]] = event["ms"]
                case "failed":
                    self.failed[event["id"]] = event["ms"], event["error"]
                case other:
                    self.told[other] = event

    def acked_after(self, ms: float) -> list[int]:
        """The times at which records were acknowledged after that moment, in order."""
        return sorted(when for when in list(self.acked.values()) if when > ms)

    def finish(self) -> None:
        """Ends the sending, and waits until the driver has ended."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            self.process.stdin.close()
        self.reader.join(120)


@contextmanager
def running(
    node: KafkaNode,
    library: Library,
    topic: str,
    *,
    settings: str = DEFAULT,
    rate: float = 100,
    outstanding: int = 100_000,
    create: bool = False,
) -> Iterator[Running]:
    """Runs the driver as the user LIBRARY-SETTINGS of the broker, whose password is the user's name.

    The driver sends ``rate`` records a second, and waits while ``outstanding`` records are neither acknowledged nor
    failed. With ``create`` it creates the topic, and sends nothing. At the end the driver is killed if it still runs.
    """
    spec = {
        "Bootstrap": f"127.0.0.1:{node.ports[CLIENTS]}", "User": f"{library.slug}-{settings}", "Topic": topic,
        "Settings": settings, "Rate": rate, "Outstanding": outstanding, "Create": create,
    }  # fmt: skip
    pipe, env = subprocess.PIPE, {**os.environ, "NODE_PATH": str(INSTALLED / "node/node_modules")}
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / f"{library.slug}-{settings}.log").open("wb") as log:
        command = [*library.command, json.dumps(spec)]
        driver = Running(library, start_guarded(command, env=env, stdin=pipe, stdout=pipe, stderr=log))
    try:
        yield driver
    finally:
        kill_group(driver.process)
