"""Measures how evenly a real volume is held between its limits for minutes, while an eager producer fills it.

The topic keeps what was produced in the last LENGTH seconds, and that is as much, at the full quota, as lies between
the two limits. At factor f it keeps f x QUOTA x LENGTH bytes, and for these the ramp gives the factor 1 - f. Both are
equal at a half, where the factor should settle. All brokers run at the same time, each on a small file system of its
own, so that whatever else the machine does disturbs all of them alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.callback import strimzi_jars
from bench.disks.brokers import CHECK_INTERVAL, QUICK_DELETION, check_alive, free_bytes
from bench.disks.rolling import longest_silence
from bench.disks.throttle import Rates, rates
from bench.markdown import machine_line, table
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, plugin_properties, prefixed
from harness.system.filesystem import own_file_system

QUOTA: Final = 4_000_000  # bytes/s
LENGTH: Final = 30.0  # seconds for which the topic keeps its data
BETWEEN: Final = int(QUOTA * LENGTH)  # bytes from the soft to the hard limit
SOFT: Final = 20_000_000  # bytes used
HARD: Final = SOFT + BETWEEN
CAPACITY: Final = 2 * HARD
SETTLED: Final = 60.0  # seconds until the measurement begins
WATCHED: Final = 165.0  # seconds that are measured: fifteen quota windows
KEEPS: Final = {"retention.ms": str(int(LENGTH * 1000)), "segment.bytes": str(1 << 20), "segment.ms": "1000"}


class Holder(StrEnum):
    """What holds the producer back, by its name in the table."""

    STOCK = "stock, a quota of half set by hand"
    LIMITS = "quotahost, policy limits"
    FORECAST = "quotahost, policy forecast"
    STRIMZI = "Strimzi's plugin"


@dataclass(frozen=True)
class Held:
    """One broker's volume and producer while they were measured.

    Attributes:
        rates: of the producer.
        factors: the factor in each second; what the quota was set to, as a share, where there is none.
        most: the most bytes used.
        silence: the longest time in seconds in which nothing was acknowledged.
        throttle: the longest throttle time in seconds that the producer was told.
    """

    rates: Rates
    factors: list[float]
    most: int
    silence: float
    throttle: float

    @property
    def wanted(self) -> float:
        """Bytes/s: the mean factor times the quota."""
        return QUOTA * sum(self.factors) / len(self.factors)


def _properties(holder: Holder) -> dict[str, str]:
    if holder is Holder.STOCK:
        return {}
    if holder is Holder.STRIMZI:
        strimzi = {
            "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
            "static.produce": str(QUOTA),
            "static.storage.check-interval": str(CHECK_INTERVAL),
            "static.storage.per.volume.limit.min.available.bytes": str(CAPACITY - HARD),
        }
        return prefixed(strimzi)
    policy = holder.rpartition(" ")[2]
    limits = {"static.storage.soft": str(SOFT), "static.storage.hard": str(HARD)}
    own = {"factor.source": "local", "policy": policy, "static.produce": str(QUOTA), "fence.authorizer": "none"}
    return plugin_properties(own | limits) | FENCE


@contextmanager
def _node(holder: Holder) -> Iterator[KafkaNode]:
    with tempfile.TemporaryDirectory() as folder, own_file_system(Path(folder) / "node", str(CAPACITY)) as mounted:
        if not mounted:
            raise RuntimeError("no small file system can be mounted here: run this bench as root")
        properties = QUICK_DELETION | _properties(holder)
        node = KafkaNode(Path(folder) / "node", classpath=[JAR, *map(Path, strimzi_jars())], properties=properties)
        if holder is Holder.STRIMZI:
            node.properties[PREFIX + "static.kafka.admin.bootstrap.servers"] = node.bootstrap
        with node:
            if holder is Holder.STOCK:
                set_quota(node, {"producer_byte_rate": QUOTA / 2}, client_id="eager")
            create_topic(node, "t", config=KEEPS)
            yield node


def _factor(node: KafkaNode, holder: Holder) -> float:
    if holder is Holder.STOCK:
        return 0.5
    if holder is Holder.STRIMZI:
        found = Jmx(node).query("io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor,*")
        return max((float(bean["Value"]) for bean in found.values()), default=1.0)
    return float(Jmx(node).get("quotahost:type=QuotaTable", "Factor"))


def run(holder: Holder) -> Held:
    """Runs one broker for SETTLED + WATCHED seconds."""
    with _node(holder) as node, ProducerLoad(node.client_config(client_id="eager"), "t") as load:
        time.sleep(SETTLED)
        began, factors, most = time.monotonic(), list[float](), 0
        while time.monotonic() < began + WATCHED:
            time.sleep(1)
            check_alive(node)
            factors.append(_factor(node, holder))
            most = max(most, CAPACITY - free_bytes(node.data_dirs[0]))
        end = began + WATCHED
        achieved, silence = rates(load.meter, began, end), longest_silence(load.meter, began, end)
        return Held(achieved, factors, most, silence, load.max_throttle(began))


def report(runs: dict[Holder, Held]) -> str:
    """A Markdown table."""
    heads = [
        "the volume is held by",
        "got, MB/s",
        "got / (mean factor x quota)",
        "deviation between windows",
        "deviation / stock's",
        "longest silence, s",
        "longest throttle time told, s",
        "factor, least to most",
        "furthest on the way from soft to hard",
    ]
    return table(heads, [_row(holder, each, runs[Holder.STOCK]) for holder, each in runs.items()])


def _row(holder: Holder, each: Held, stock: Held) -> list[str]:
    got, deviation = str(each.rates).split(" | ") if each.rates.mean else ("0.00", "-")
    ratio = (
        each.rates.deviation / each.rates.mean / (stock.rates.deviation / stock.rates.mean) if each.rates.mean else 0
    )
    return [
        holder,
        got,
        f"{each.rates.mean / each.wanted:.3f}" if each.wanted else "-",
        deviation,
        f"{ratio:.2f}" if ratio else "-",
        f"{each.silence:.1f}",
        f"{each.throttle:,.1f}",
        f"{min(each.factors):.2f} to {max(each.factors):.2f}",
        f"{(each.most - SOFT) / BETWEEN:.0%}",
    ]


def main() -> str:
    """Measures all of them at once; returns the Markdown table."""
    strimzi_jars()  # downloads them at most once: the threads would do it all at the same time
    with ThreadPoolExecutor(len(Holder)) as pool:
        found = dict(zip(Holder, pool.map(run, Holder), strict=True))
    return report(found) + "\n\n" + machine_line()
