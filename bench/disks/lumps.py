"""Measures how a real volume is held for ten minutes while its space comes back in lumps of 60 % of its band.

An eager producer may write twice what is deleted. Every EVERY seconds the bench deletes the oldest records, as much as
the drain of EVERY seconds, by Kafka's DeleteRecords: so the drain doesn't depend on what is written. All brokers run at
the same time, each on a small file system of its own.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bench.callback import strimzi_jars
from bench.disks.brokers import check_alive
from bench.disks.rolling import longest_silence
from bench.disks.small_broker import MEGA, Holder, Room, factor, small_broker, used_bytes
from bench.markdown import machine_line, table
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode

ROOM: Final = Room(quota=2 * MEGA, soft=20 * MEGA, hard=220 * MEGA, capacity=300 * MEGA)
RECORD: Final = 10_000  # bytes
DRAIN: Final = ROOM.quota / 2  # bytes/s
LUMP: Final = 0.6  # of the band
EVERY: Final = LUMP * ROOM.band / DRAIN  # seconds
SETTLED: Final = 90.0  # seconds until the measurement begins: from the soft limit half of the way takes 50 s or more
WATCHED: Final = 600.0  # seconds
MEAN: Final = 30.0  # seconds of each mean
HOLDERS: Final[tuple[Holder, ...]] = tuple(holder for holder in Holder if holder is not Holder.STOCK)


@dataclass(frozen=True)
class Held:
    """One broker in the seconds that were measured.

    Attributes:
        means: the producer's bytes/s over MEAN seconds each.
        stops: how often the broker stopped all producers.
        used: bytes used of the volume, at each look.
        silence: the longest time in seconds in which nothing was acknowledged.
    """

    means: list[float]
    stops: int
    used: list[int]
    silence: float

    @property
    def deviation(self) -> float:
        """The standard deviation of the means, as a share of their mean."""
        return statistics.pstdev(self.means) / statistics.mean(self.means)


def run(holder: Holder) -> Held:
    """Runs one broker for SETTLED + WATCHED seconds."""
    with small_broker(holder, ROOM) as node:
        create_topic(node, "t", config={"segment.bytes": str(1 << 20)})
        with ProducerLoad(node.client_config(client_id="eager"), "t", RECORD) as load:
            return _watch(holder, node, load.meter)


def _watch(holder: Holder, node: KafkaNode, meter: Meter) -> Held:
    began = meter.started + SETTLED
    end, due, deleted = began + WATCHED, meter.started + EVERY, 0
    used, stopped = list[int](), list[bool]()
    while (now := time.monotonic()) < end:
        check_alive(node)
        if now >= due:
            due += EVERY
            deleted = _delete_to(node, min(deleted + int(EVERY * DRAIN / RECORD), meter.messages))
        if now >= began:
            used.append(used_bytes(node, ROOM))
            stopped.append(factor(node, holder) == 0)
        time.sleep(0.2)
    stops = sum(now and not before for before, now in pairwise([False, *stopped]))
    return Held(means(meter, began, end, MEAN), stops, used, longest_silence(meter, began, end))


def _delete_to(node: KafkaNode, offset: int) -> int:
    """Deletes all records before the offset; returns it."""
    admin = AdminClient(node.client_config(client_id="harness"))
    for deleted in admin.delete_records([TopicPartition("t", 0, offset)]).values():
        deleted.result(30)
    return offset


def means(meter: Meter, start: float, end: float, length: float) -> list[float]:
    """Bytes/s over each of the stretches of ``length`` seconds that lie between two moments."""
    starts = [start + n * length for n in range(int((end - start) / length))]
    return [meter.rate(each, each + length) for each in starts]


def report(runs: dict[Holder, Held]) -> str:
    """A Markdown table."""
    heads = ["the volume is held by", "got / drain", f"deviation of {MEAN:.0f} s means", "these / quota, least to most"]
    heads += ["stops of all producers", "longest silence, s", "on the way from soft to hard, least to most"]
    return table(heads, [_row(holder, held) for holder, held in runs.items()])


def _row(holder: Holder, held: Held) -> list[str]:
    return [
        holder,
        f"{statistics.mean(held.means) / DRAIN:.2f}",
        f"{held.deviation:.0%}",
        f"{min(held.means) / ROOM.quota:.2f} to {max(held.means) / ROOM.quota:.2f}",
        str(held.stops),
        f"{held.silence:.1f}",
        f"{(min(held.used) - ROOM.soft) / ROOM.band:.0%} to {(max(held.used) - ROOM.soft) / ROOM.band:.0%}",
    ]


def main() -> str:
    """Measures all of them at once; returns the Markdown table."""
    strimzi_jars()  # downloads them at most once: the threads would do it all at the same time
    with ThreadPoolExecutor(len(HOLDERS)) as pool:
        found = dict(zip(HOLDERS, pool.map(run, HOLDERS), strict=True))
    return report(found) + "\n\n" + machine_line()
