"""Compares the resident memory over time of a broker with quotahost and of a stock broker under the same load.

Both have the same heap, touched at the start, so that only memory outside of it can grow. ``soak_load`` makes the
load and the changes.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from bench.markdown import machine_line, table
from bench.soak_load import Changes, Disk, Scrapes, Visitors
from harness.clients.consumer import ConsumerLoad
from harness.clients.producer import ProducerLoad
from harness.java.jdk import program
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.ports import free_port

WARM_UP: Final = 8 * 60.0  # seconds before the first sample that counts
EVERY: Final = 10.0  # seconds between two samples
RATE: Final = 200_000  # bytes/s of the producer that stays
HEAP: Final = "256m"
# What both brokers have: the heap is resident from the start; the log's disk use is bounded.
_JVM: Final = (f"-Xms{HEAP}", "-XX:+AlwaysPreTouch", "-XX:NativeMemoryTracking=summary")
_LOG: Final = {
    "log.segment.bytes": "4194304",
    "log.retention.bytes": "33554432",
    "log.retention.check.interval.ms": "30000",
}


class Sample(NamedTuple):
    """Hours since the start; MB resident in all, and without mapped files."""

    hours: float
    rss: float
    anonymous: float


def brokers(folder: Path) -> tuple[KafkaNode, KafkaNode, int]:
    """A broker with quotahost and all that it can do for one broker, a stock one, and the port for scrapes."""
    port = free_port()
    settings = {
        "static.scope": "client",
        "static.produce": "1M",
        "factor.source": "cluster-volumes",
        "factor.scope": "topics",
        "supplier": "client-quotas,static",
        "tasks": "publish-volumes,publish-usage",
        "static.storage.soft.min-free-percent": "0.3",
        "static.storage.hard.min-free-percent": "0.02",
        "clients.max": "1000",
        "clients.idle": "2m",
        "metrics.port": str(port),
        "fence.authorizer": "none",
    }
    mine = KafkaNode(
        folder / "quotahost",
        classpath=[JAR],
        properties=plugin_properties(settings) | FENCE | _LOG,
        heap=HEAP,
        jvm_options=_JVM,
        class_archive=False,
    )
    stock = KafkaNode(folder / "stock", properties=_LOG, heap=HEAP, jvm_options=_JVM, class_archive=False)
    return mine, stock, port


def sample(node: KafkaNode, begin: float) -> Sample:
    """The node's memory now; ``begin`` is the monotonic moment of the start."""
    status = Path(f"/proc/{node.pid}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in status if line.endswith(" kB")}
    return Sample((time.monotonic() - begin) / 3600, sizes["VmRSS"], sizes["RssAnon"])


def slope(samples: Sequence[Sample], pick: int) -> float:
    """MB/h by linear regression."""
    hours = [each.hours for each in samples]
    return statistics.linear_regression(hours, [each[pick] for each in samples]).slope


def native(node: KafkaNode) -> str:
    """The JVM's own account of its native memory."""
    command = [program("jcmd"), str(node.pid), "VM.native_memory", "summary"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run(minutes: float, progress: Path | None = None) -> dict[str, list[Sample]]:
    """Samples by broker after the warm-up; ``progress`` gets every sample and the JVMs' accounts."""
    with tempfile.TemporaryDirectory(prefix="quotahost-soak-") as folder:
        mine, stock, port = brokers(Path(folder))
        nodes = {"quotahost": mine, "stock": stock}
        with mine, stock:
            with ExitStack() as stack:
                scrapes = stack.enter_context(Scrapes(port))
                for load in chain.from_iterable(map(loads, nodes.values())):
                    stack.enter_context(load)
                stack.enter_context(Disk(mine))
                found = watch(nodes, minutes, progress)
            if not scrapes.factors or min(scrapes.factors) == max(scrapes.factors):
                raise AssertionError(f"the factor did not move: {scrapes.factors}")
            for name, node in nodes.items():
                share = node.cpu_seconds() / (minutes * 60)
                _note(progress, f"{name} CPU {share:.1%}, exit code {node.stop()}")
    return found


def loads(node: KafkaNode) -> list[AbstractContextManager[object]]:
    """What a running node is put under, apart from what quotahost alone has."""
    create_topic(node, "t")
    return [
        ProducerLoad(node.client_config(client_id="stays"), "t", record_size=1_000, rate=RATE),
        ConsumerLoad(node.client_config(client_id="reads"), "t", rewind=False),
        Visitors(node),
        Changes(node),
    ]


def watch(nodes: Mapping[str, KafkaNode], minutes: float, progress: Path | None) -> dict[str, list[Sample]]:
    """Samples by broker after the warm-up."""
    found: dict[str, list[Sample]] = {name: [] for name in nodes}
    begin = time.monotonic()
    while time.monotonic() < begin + minutes * 60:
        time.sleep(EVERY)
        for name, node in nodes.items():
            now = sample(node, begin)
            _note(progress, f"{name} {now.hours * 60:.1f} min {now.rss:.1f} {now.anonymous:.1f} MB")
            if now.hours * 3600 >= WARM_UP:
                if not found[name]:
                    _note(progress, f"{name} after the warm-up\n{native(node)}")
                found[name].append(now)
    for name, node in nodes.items():
        _note(progress, f"{name} at the end\n{native(node)}")
    return found


def _note(progress: Path | None, text: str) -> None:
    if progress:
        with progress.open("a") as out:
            out.write(text + "\n")


def main(minutes: float, progress: Path | None = None) -> str:
    """A Markdown table with a row for each broker."""
    rows = []
    for name, samples in run(minutes, progress).items():
        ends = f"{samples[0].rss:.0f} -> {samples[-1].rss:.0f}"
        anonymous = f"{samples[0].anonymous:.0f} -> {samples[-1].anonymous:.0f}"
        rows.append([name, ends, f"{slope(samples, 1):+.1f}", anonymous, f"{slope(samples, 2):+.1f}"])
    heads = [f"{minutes:g} minutes, the first {WARM_UP / 60:.0f} not counted", "resident MB", "MB/h"]
    heads += ["of it without mapped files, MB", "MB/h"]
    return table(heads, rows) + "\n\n" + machine_line()
