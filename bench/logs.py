"""Counts what a factor that moves costs a broker's log and its request threads, beside a stock broker.

Both brokers serve the same clients. On the one the factor goes from 1 to 0.1 and back; on the stock one the default
quota is lowered and raised as often. After each step the bench times the first produce request, since the thread
that serves it reads all limits again.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.markdown import machine_line, table
from harness.clients.raw import RawClient
from harness.clients.rawbatch import record_batch
from harness.java.jars import DEFAULT_VERSION
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, ROOT, plugin_properties
from harness.system.waiting import eventually

QUOTA: Final = 1e9  # bytes/s of each client: nobody is throttled
FACTORS: Final = [n / 10 for n in (*range(9, 0, -1), *range(2, 11))]
BATCH: Final = record_batch(100)
_TABLE: Final = "quotahost:type=QuotaTable"


class Cost(NamedTuple):
    """The lines that the steps cost; ms of the first request after each, and of one after a pause without a step."""

    lines: int
    after_step: list[float]
    after_pause: list[float]


def measure(with_callback: bool, clients: int, version: str = DEFAULT_VERSION, steps: int = 1) -> Cost:
    """Moves the limits through all FACTORS, ``steps`` times, while so many clients have sensors."""
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder), with_callback, version) as node:
        create_topic(node, "t")
        move = _factor(node) if with_callback else _default_quota(node)
        with RawClient(node, "first") as client:
            introduce(node, client, clients, with_callback)
            times: tuple[list[float], list[float]] = ([], [])
            begin = node.log.end()
            last = 1.0
            for factor in FACTORS * steps:
                # The first request after a pause is slow anyway, so one follows a move to where the limits are.
                for kind, target in enumerate((last, factor)):
                    move(target)
                    times[kind].append(_timed(client))
                    for _ in range(50):
                        client.produce("t", BATCH)
                last = factor
        lines = node.log.text(begin).count("\n")
    return Cost(lines, times[1], times[0])


@contextmanager
def broker(
    folder: Path, with_callback: bool, version: str = DEFAULT_VERSION, max_mute: str = "1h", **more: str
) -> Iterator[KafkaNode]:
    """A broker whose factor, with the callback, is in a file; ``more`` are further properties of Kafka."""
    settings = {
        "static.scope": "client",
        "static.produce": f"{QUOTA:.0f}",
        "max.mute": max_mute,
        "factor.interval": "100ms",
        "factor.source": "from-file",
        "fence.authorizer": "none",
    }
    properties = (plugin_properties(settings) if with_callback else {}) | more
    (folder / "factor").write_text("1")
    env = {"PYTHONPATH": str(ROOT / "tests/broker/plugins"), "FACTOR": str(folder / "factor")}
    with KafkaNode(folder, version=version, classpath=[JAR], properties=properties, jvm_options=(), env=env) as node:
        yield node


def _factor(node: KafkaNode) -> Callable[[float], None]:
    def move(factor: float) -> None:
        write_factor(node, factor)
        eventually(lambda: abs(Jmx(node).get(_TABLE, "Factor") - factor) < 1e-6, what=f"factor {factor:g}")

    return move


def write_factor(node: KafkaNode, factor: float) -> None:
    """Writes the broker's factor into its file; doesn't wait until it is in force."""
    file = Path(node.env["FACTOR"])
    file.with_suffix(".new").write_text(f"{factor:g}")
    file.with_suffix(".new").replace(file)


def _default_quota(node: KafkaNode) -> Callable[[float], None]:
    def move(factor: float) -> None:
        set_quota(node, {"producer_byte_rate": QUOTA * factor}, client_id=DEFAULT)

    move(1)
    return move


def introduce(node: KafkaNode, client: RawClient, clients: int, with_callback: bool) -> None:
    """Lets so many clients send a request, with the callback a second one once all are known."""
    names = [f"client-{n}" for n in range(clients)]
    for name in names:
        client.rename(name)
        client.produce("t", BATCH)
    if with_callback:
        eventually(lambda: Jmx(node).get(_TABLE, "Clients") >= clients, what="all clients in the table")
        for name in names:
            client.rename(name)
            client.produce("t", BATCH)


def _timed(client: RawClient) -> float:
    begin = time.perf_counter()
    client.produce("t", BATCH)
    return (time.perf_counter() - begin) * 1000


def main(clients: int = 2_000, version: str = DEFAULT_VERSION) -> str:
    """A Markdown table with a row for each broker."""
    rows = []
    for name, with_callback in (("quotahost", True), ("stock", False)):
        cost = measure(with_callback, clients, version)
        rows.append([name, f"{len(FACTORS)}", f"{cost.lines:,}", *map(_ms, (cost.after_step, cost.after_pause))])
    heads = [f"{clients:,} clients, Kafka {version}", "steps", "lines of the log"]
    heads += ["first request after a step, ms, median (most)", "after a pause, ms"]
    return table(heads, rows) + "\n\n" + machine_line()


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times):.2f} ({max(times):.1f})"


if __name__ == "__main__":
    import sys

    print(main(int(sys.argv[1]), *sys.argv[2:]))
