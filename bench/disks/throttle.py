"""Measures how exactly and evenly a factor is enforced."""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.callback import strimzi_jars
from bench.disks.brokers import QUICK_DELETION, check_alive
from bench.markdown import machine_line, table
from harness.clients.load import KAFKA_WINDOW
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import JAR, PREFIX, plugin_properties, prefixed
from harness.system.waiting import eventually

BASE: Final = 20_000_000  # bytes/s
FACTORS: Final = (0.75, 0.5, 0.25, 0.1)
WINDOWS: Final = 5
SEGMENT: Final = 16_777_216  # bytes
STRIMZI_PROPERTIES: Final = {
    "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
    "static.produce": str(BASE // 2),
    "static.storage.check-interval": "0",
}


@dataclass(frozen=True)
class Rates:
    """Mean bytes/s over a time, and the standard deviation of the rates of its quota windows."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        """Two cells of a table."""
        return f"{self.mean / 1e6:.2f} | {100 * self.deviation / self.mean:.1f} %"


def rates(meter: Meter, start: float, end: float) -> Rates:
    """The rates between two moments, over as many whole quota windows as lie between them."""
    starts = [start + n * KAFKA_WINDOW for n in range(int((end - start) / KAFKA_WINDOW))]
    each = [meter.rate(moment, moment + KAFKA_WINDOW) for moment in starts]
    return Rates(meter.smooth_rate(start, end), statistics.pstdev(each))


def _node(folder: str, settings: dict[str, str]) -> KafkaNode:
    strimzi = "class" in settings
    properties = QUICK_DELETION | (prefixed(settings) if strimzi else plugin_properties(settings))
    classpath = [JAR, *map(Path, strimzi_jars())]
    node = KafkaNode(Path(folder), classpath=classpath, properties=properties, probe=True, jvm_options=())
    if strimzi:  # the plugin demands the property even where it checks no disk
        node.properties[PREFIX + "static.kafka.admin.bootstrap.servers"] = node.bootstrap
    return node


def _watch(node: KafkaNode, load: ProducerLoad) -> Rates:
    """Measures over some quota windows, without the first one from now."""
    start = time.monotonic() + KAFKA_WINDOW
    end = start + WINDOWS * KAFKA_WINDOW
    time.sleep(end - time.monotonic())
    check_alive(node)
    return rates(load.meter, start, end)


def factors() -> str:
    """A table: the source ``fixed`` at several factors, and Strimzi's plugin with half the base as its quota."""
    heads = ["", "wanted, MB/s", "got, MB/s", "deviation between windows", "got / wanted"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        given = {"factor.source": "fixed", "static.produce": str(BASE), "static.scope": "client"}
        with _node(folder, given) as node, _eager(node) as load:
            for factor in FACTORS:
                alter_broker_config(node, {PREFIX + "plugin.fixed.factor": str(factor)})
                eventually(lambda f=factor: _bound(node) == f * BASE, 120, "the factor in force")  # type: ignore[misc]
                rows.append(_row(f"quotahost, factor {factor}", factor * BASE, _watch(node, load)))
    with tempfile.TemporaryDirectory() as folder, _node(folder, STRIMZI_PROPERTIES) as node, _eager(node) as load:
        rows.append(_row("Strimzi's plugin, its quota set to half", BASE / 2, _watch(node, load)))
    return table(heads, rows)


def _bound(node: KafkaNode) -> float | None:
    return next((quota.bound for quota in enforced_quotas(node, "PRODUCE", client_id="eager")), None)


def _row(what: str, wanted: float, achieved: Rates) -> list[str]:
    return [what, f"{wanted / 1e6:.2f}", *str(achieved).split(" | "), f"{achieved.mean / wanted:.3f}"]


def _eager(node: KafkaNode) -> ProducerLoad:
    create_topic(node, "t", config={"segment.bytes": str(SEGMENT), "retention.bytes": str(8 * SEGMENT)})
    return ProducerLoad(node.client_config(client_id="eager"), "t")


def main() -> str:
    """The table, and the line about the machine."""
    return factors() + "\n\n" + machine_line()
