"""Measures how evenly a real volume is held between its limits for minutes, while an eager producer fills it.

The topic keeps what was produced in the last LENGTH seconds, and that is as much, at the full quota, as lies between
the two limits. At factor f it keeps f x QUOTA x LENGTH bytes, and for these the ramp gives the factor 1 - f. Both are
equal at a half, where the factor should settle. All brokers run at the same time, each on a small file system of its
own, so that whatever else the machine does disturbs all of them alike.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from bench.disks.brokers import MEGA, Holder, Room, check_alive, factor, set_by_hand, small_broker, used_bytes
from bench.disks.load import Rates, longest_silence, rates
from bench.jvm import strimzi_jars
from bench.markdown import machine_line, table
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode

QUOTA: Final = 4 * MEGA  # bytes/s
HALF: Final = 0.5  # where the factor should settle, and the share of the quota that the stock broker gives
LENGTH: Final = 30  # seconds for which the topic keeps its data
ROOM: Final = Room(QUOTA, soft=20 * MEGA, hard=20 * MEGA + QUOTA * LENGTH, capacity=280 * MEGA)
SETTLED: Final = 60.0  # seconds until the measurement begins
WATCHED: Final = 165.0  # seconds that are measured: fifteen quota windows
KEEPS: Final = {"retention.ms": str(LENGTH * 1000), "segment.bytes": str(1 << 20), "segment.ms": "1000"}


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


def run(holder: Holder) -> Held:
    """Runs one broker for SETTLED + WATCHED seconds."""
    with small_broker(holder, ROOM) as node:
        if holder is Holder.STOCK:
            set_by_hand(node, HALF * QUOTA)
        create_topic(node, "t", config=KEEPS)
        with ProducerLoad(node.client_config(client_id="eager"), "t") as load:
            time.sleep(SETTLED)
            return _watch(holder, node, load)


def _watch(holder: Holder, node: KafkaNode, load: ProducerLoad) -> Held:
    began, factors, most = time.monotonic(), list[float](), 0
    end = began + WATCHED
    while time.monotonic() < end:
        time.sleep(1)
        check_alive(node)
        factors.append(HALF if holder is Holder.STOCK else factor(node, holder))
        most = max(most, used_bytes(node, ROOM))
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
    return table(heads, [_row(holder, held, runs[Holder.STOCK]) for holder, held in runs.items()])


def _row(holder: Holder, held: Held, stock: Held) -> list[str]:
    got, even = held.rates, stock.rates
    return [
        holder,
        f"{got.mean / 1e6:.2f}",
        f"{got.mean / held.wanted:.3f}" if held.wanted else "-",
        f"{got.deviation / got.mean:.1%}" if got.mean else "-",
        f"{got.deviation / got.mean / (even.deviation / even.mean):.2f}" if got.mean else "-",
        f"{held.silence:.1f}",
        f"{held.throttle:,.1f}",
        f"{min(held.factors):.2f} to {max(held.factors):.2f}",
        f"{(held.most - ROOM.soft) / ROOM.band:.0%}",
    ]


def main() -> str:
    """Measures all of them at once; returns the Markdown table."""
    strimzi_jars()  # downloads them at most once: the threads would do it all at the same time
    with ThreadPoolExecutor(len(Holder)) as pool:
        found = dict(zip(Holder, pool.map(run, Holder), strict=True))
    return report(found) + "\n\n" + machine_line()
