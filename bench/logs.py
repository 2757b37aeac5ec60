"""Counts what a factor that moves costs a broker's log and its request threads, beside a stock broker.

``steps`` moves the factor from 1 to 0.1 and back; on the stock broker the default quota is lowered and raised as
often. After each step it times the first produce request, since the thread that serves it reads all limits again.
``whole_way`` takes the factor to 0 in hundredths, holds it there, and takes it up again, while all clients send
requests in turn: so the limits that the tap moves are those of sensors in use.
"""

import re
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final

from bench.markdown import machine_line, table
from harness.clients.raw import RawClient
from harness.clients.rawbatch import record_batch
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, ROOT, plugin_properties
from harness.system.waiting import eventually

CLIENTS: Final = 2_000
QUOTA: Final = 1e9  # bytes/s of each client: nobody is throttled
FACTORS: Final = [n / 10 for n in (*range(9, 0, -1), *range(2, 11))]
BATCH: Final = record_batch(100)
DOWN, STOPPED, UP, AFTER = 60.0, 10.0, 30.0, 15.0  # seconds of the whole way; after it the tap lets go
HUNDREDTHS: Final = [n / 100 for n in range(1, 101)]
_TABLE: Final = "quotahost:type=QuotaTable"
_LOGGER: Final = re.compile(r"\(([\w.$]+)\) \[[^]]*]$")


def steps() -> str:
    """A row for each broker: lines, and ms of the first request after a step and after a pause without one."""
    rows = []
    for name, with_callback in (("quotahost", True), ("stock", False)):
        with _broker(with_callback) as node, RawClient(node, "first") as client:
            move = _move_factor if with_callback else _move_default_quota
            move(node, 1.0)
            _introduce(node, client, with_callback)
            begin, last = node.log.end(), 1.0
            after_pause, after_step = list[float](), list[float]()
            for factor in FACTORS:
                # The first request after a pause is slow anyway, so one follows a move to where the limits are.
                for times, target in ((after_pause, last), (after_step, factor)):
                    move(node, target)
                    times.append(_timed(client))
                    for _ in range(50):
                        client.produce("t", BATCH)
                last = factor
            lines = node.log.text(begin).count("\n")
        rows.append([name, f"{len(FACTORS)}", f"{lines:,}", _ms(after_step), _ms(after_pause)])
    heads = [f"{CLIENTS:,} clients", "steps", "lines of the log"]
    heads += ["first request after a step, ms, median (most)", "after a pause, ms"]
    return table(heads, rows) + "\n\n" + machine_line()


def whole_way() -> str:
    """The lines of one whole way, and the loggers of most of them."""
    with _broker(True, "30s", FENCE) as node:
        with RawClient(node, "first") as client:
            _introduce(node, client, True)
        with _sending(node):
            begin = node.log.end()
            for factors, seconds, pause in (
                ([1 - part for part in HUNDREDTHS], DOWN, STOPPED),
                (HUNDREDTHS, UP, AFTER),
            ):
                began = time.monotonic()
                for number, factor in enumerate(factors, 1):
                    _write_factor(node, factor)
                    time.sleep(max(0.0, began + seconds * number / len(factors) - time.monotonic()))
                time.sleep(pause)
            lines = node.log.text(begin).splitlines()
    loggers = Counter(match[1] for line in lines if (match := _LOGGER.search(line))).most_common(4)
    heads = [f"{CLIENTS:,} clients, the factor from 1 to 0 and back", "lines of the log", "of them, by logger"]
    row = ["quotahost", f"{len(lines):,}", ", ".join(f"{logger} {count}" for logger, count in loggers)]
    return table(heads, [row]) + "\n\n" + machine_line()


@contextmanager
def _broker(with_callback: bool, max_mute: str = "1h", more: dict[str, str] | None = None) -> Iterator[KafkaNode]:
    """A broker with a topic, whose factor, with the callback, is in a file."""
    settings = {
        "static.scope": "client",
        "static.produce": f"{QUOTA:.0f}",
        "max.mute": max_mute,
        "factor.interval": "100ms",
        "factor.source": "from-file",
        "fence.authorizer": "none",
    }
    properties = (plugin_properties(settings) if with_callback else {}) | (more or {})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "factor"
        file.write_text("1")
        env = {"PYTHONPATH": str(ROOT / "tests/broker/plugins"), "FACTOR": str(file)}
        with KafkaNode(Path(folder), classpath=[JAR], properties=properties, jvm_options=(), env=env) as node:
            create_topic(node, "t")
            yield node


def _move_factor(node: KafkaNode, factor: float) -> None:
    _write_factor(node, factor)
    eventually(lambda: abs(Jmx(node).get(_TABLE, "Factor") - factor) < 1e-6, what=f"factor {factor:g}")


def _write_factor(node: KafkaNode, factor: float) -> None:
    """Write the broker's factor into its file; doesn't wait until it is in force."""
    file = Path(node.env["FACTOR"])
    file.with_suffix(".new").write_text(f"{factor:g}")
    file.with_suffix(".new").replace(file)


def _move_default_quota(node: KafkaNode, factor: float) -> None:
    set_quota(node, {"producer_byte_rate": QUOTA * factor}, client_id=DEFAULT)


def _introduce(node: KafkaNode, client: RawClient, with_callback: bool) -> None:
    """Each client sends a request, with the callback a second one once all are known."""
    for turn in range(1 + with_callback):
        if turn:
            eventually(lambda: Jmx(node).get(_TABLE, "Clients") >= CLIENTS, what="all clients in the table")
        for number in range(CLIENTS):
            client.rename(f"client-{number}")
            client.produce("t", BATCH)


def _timed(client: RawClient) -> float:
    begin = time.perf_counter()
    client.produce("t", BATCH)
    return (time.perf_counter() - begin) * 1000


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times):.2f} ({max(times):.1f})"


@contextmanager
def _sending(node: KafkaNode) -> Iterator[None]:
    stopping = threading.Event()

    def send() -> None:
        names = cycle(f"client-{n}" for n in range(CLIENTS))
        with RawClient(node, "first") as client:
            while not stopping.wait(0.005):
                client.rename(next(names))
                client.produce("t", BATCH)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        yield
    finally:
        stopping.set()
        sender.join(60)
