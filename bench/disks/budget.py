"""Measures what a used-up budget of storage does to a team that writes to its topics, and to all others.

Each of three brokers leads one of the team's topics, to which an eager producer writes, and one topic of other users,
whose producer is paced. Each client has the same quota on each broker, and all are one user. An exempt client has
filled older topics of the team before, so that the team's producers take the budget from below its soft limit to its
end. They send batches of 16 kB, Kafka's default: with larger batches, a small limit would allow only few a second.

1. *Before* means the BEFORE seconds until a broker first shows a factor below 1.
2. Then the team is *slowed*, until all brokers turn it back. Its limit is what an operator computes from the metric
   ``quotahost_budget_factor``: factor x quota on the broker that the producer writes to, but at least ``floor.bytes``.
   The rate is compared with the limit until all bytes are used; separately for factors below LEAST, where the bench
   ``tap`` ends and the way to 100 % becomes longer and longer. A stock broker has the same producers meanwhile, and
   once a second its quota is set to the limit of the first broker: this shows how evenly Kafka itself enforces a quota.
3. *100 %* is when the segments of the team's topics have as many bytes as the budget. The *stop* begins when the
   fences of all brokers are closed, and lasts STOPPED seconds.
4. An operator follows the runbook: the operator shortens the retention of an older topic, or deletes a topic. The time
   runs from when so few bytes are left in segments that a PAUSE ends, until one of the team's producers has a record
   acknowledged. Then the operator lowers the budget to the used bytes, and the next round begins.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.disks.brokers import MEGA, Contender, brokers, check_alive, on_disk, set_by_hand
from bench.disks.load import PacedProducer, first_byte, longest_silence
from bench.markdown import table
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_config, create_topic, delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.system.background import Background
from harness.system.waiting import eventually
from quotahost.kafka.commands import CompactedTopic
from quotahost.model.budgets import Budget
from quotahost.records.budgets import encode, key_of

WINDOWS: Final = (2, 11)  # quota.window.num
QUOTA: Final = 400_000.0  # bytes/s of each client on each broker
PACE: Final = 0.9  # share of the quota that the other producers offer
FLOOR: Final = 35_000.0  # bytes/s
BATCHES: Final = {"batch.size": 16_384}
RECORD: Final = 2_000  # bytes
LEAST: Final = 0.3  # a factor
SIZE: Final = 480 * MEGA  # bytes of the budget
ENOUGH: Final = 0.99  # share of the budget: by default at most this much is used when a PAUSE ends
FILLED: Final = 0.81  # share of the budget that is used before the team's producers start
BEFORE: Final = 20.0  # seconds, like the next five
MEAN: Final = 5.0
STOPPED: Final = 20.0
STOPPED_AGAIN: Final = 5.0
GOING_ON: Final = 5.0
LONGEST: Final = 600.0  # until all bytes are used
OLDER: Final = 6  # older topics of the team
SMALL: Final = {"segment.bytes": str(1 << 20)}
TEAM: Final = "team-*"  # the team's topics
HEADROOM: Final = 3_000 * MEGA  # bytes of the disk, which never becomes full here

ROWS: Final = (  # the table's rows, with their aims
    ("others' rate / before, mean (least), while the team is slowed", "0.98"),
    ("the same while it is stopped", "0.98"),
    (f"the team's {MEAN:.0f} s means / limit, before", ""),
    ("its longest silence, s", ""),
    (f"{MEAN:.0f} s means / limit, factor 1 to {LEAST}", "0.90 - 1.10"),
    ("longest silence, s", "2"),
    (f"{MEAN:.0f} s means / limit, factor {LEAST} to 100 %", "0.90 - 1.10"),
    ("longest silence, s", "2"),
    (f"stock broker, set by hand: {MEAN:.0f} s means / limit, before", ""),
    ("its longest silence, s", ""),
    (f"{MEAN:.0f} s means / limit, factor 1 to {LEAST}", ""),
    ("longest silence, s", ""),
    (f"{MEAN:.0f} s means / limit, factor {LEAST} to 100 %", ""),
    ("longest silence, s", ""),
    ("kB from 100 % to the stop", ""),
    (f"bytes in the {STOPPED:.0f} s after it", "0"),
    ("until the team goes on, s, median / longest: retention was shortened", "2"),
    ("a topic was deleted", "2"),
    ("records lost", "0"),
)


@dataclass(frozen=True)
class Found:
    """The results of one run."""

    slowed: list[float]  # each other producer's rate while the team was slowed, as a share of its rate before
    stopped: list[float]  # the same while it was stopped
    #: Bytes/s of each of the team's producers, as means over MEAN seconds, divided by the limit: before, while the
    #: factor was LEAST or more, and then until 100 %.
    means: list[list[float]]
    #: The longest time in seconds in which one producer had nothing acknowledged, in each of these three phases.
    silence: list[float]
    stock_means: list[list[float]]  # the same means of the stock broker's producers
    stock_silence: list[float]  # their silence
    until_stop: int  # bytes that the team's topics grew between 100 % and the stop
    after_stop: int  # the same in the STOPPED seconds after it
    retention: list[float]  # seconds until each of the team's producers continued, after retention was shortened
    deleted: list[float]  # the same after a topic was deleted
    failed: int  # records that were not delivered


class Limit(Background):
    """The limit of one of the team's producers, from a broker's metrics."""

    def __init__(self, node: KafkaNode) -> None:
        super().__init__()
        self._node: Final = node
        self._seen: Final[list[tuple[float, float]]] = []

    def factor(self) -> float:
        return float(Jmx(self._node).get("quotahost:type=Budget,name=team", "Factor"))

    def mean(self, start: float, end: float) -> float:
        """Returns the mean limit in bytes/s between two moments."""
        return statistics.fmean(limit for at, limit in self._seen if start <= at < end)

    def _see(self) -> float:
        limit = max(FLOOR, self.factor() * QUOTA)
        self._seen.append((time.monotonic(), limit))
        return limit

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            self._see()


class ByHand(Limit):
    """The limit of a stock broker's producers, set once a second to the limit from another broker's metrics."""

    def __init__(self, node: KafkaNode, stock: KafkaNode) -> None:
        super().__init__(node)
        self._stock: Final = stock

    def _run(self) -> None:
        while not self._stopping.wait(1):
            set_by_hand(self._stock, self._see())


def run(windows: int) -> Found:
    """Starts three brokers, and takes the team's budget through slowing, stop and several releases."""
    own = {"static_produce": f"{QUOTA:.0f}", "static_scope": "client", "budgets": "on"}
    with brokers(Contender.WITH_FENCE, 3, HEADROOM, windows, **own) as cluster, ExitStack() as stack:
        for number in range(OLDER):
            _fill(cluster, number)
        place_topics(cluster, {f"{whose}-{node}": node for whose in ("team", "other") for node in (1, 2, 3)})
        _set(cluster, SIZE)
        stock = stack.enter_context(_stock(windows))
        limits = [Limit(node) for node in cluster.brokers]
        eventually(lambda: all(limit.factor() == 1 for limit in limits), what="all brokers know the budget")
        started = time.monotonic()
        team, others, peers = [], [], []
        by_hand = stack.enter_context(ByHand(cluster.brokers[0], stock))
        for node, limit in zip((1, 2, 3), limits, strict=True):
            stack.enter_context(limit)
            config = cluster.client_config("app", f"other-{node}")
            others.append(stack.enter_context(PacedProducer(config, f"other-{node}", PACE * QUOTA)))
            config = cluster.client_config("app", f"team-{node}") | BATCHES
            team.append(stack.enter_context(ProducerLoad(config, f"team-{node}", RECORD)))
            config = stock.client_config(client_id=f"stock-{node}") | BATCHES
            peers.append(stack.enter_context(ProducerLoad(config, f"stock-{node}", RECORD)))
        eventually(lambda: any(limit.factor() < 1 for limit in limits), LONGEST, "a factor below 1")
        began = time.monotonic()
        assert began - started > BEFORE, "the producers were too quick for a rate before"
        eventually(lambda: any(limit.factor() < LEAST for limit in limits), LONGEST, "a small factor")
        low = time.monotonic()
        eventually(lambda: on_disk(cluster, TEAM) >= SIZE, LONGEST, "100 %", poll=0.01)
        full = time.monotonic()
        _wait_for_stop(cluster)
        stop, at_stop = time.monotonic(), on_disk(cluster, TEAM)
        time.sleep(STOPPED)
        check_alive(*cluster.brokers)
        end, at_end = time.monotonic(), on_disk(cluster, TEAM)
        waited = list(_releases(cluster, team))
        parts = [(began - BEFORE, began), (began, low), (low, full)]
        before = [load.meter.rate(*parts[0]) for load in others]
        return Found(
            slowed=[load.meter.rate(began, stop) / rate for load, rate in zip(others, before, strict=True)],
            stopped=[load.meter.rate(stop, end) / rate for load, rate in zip(others, before, strict=True)],
            means=[_means(team, limits, *each) for each in parts],
            silence=[max(longest_silence(load.meter, *each) for load in team) for each in parts],
            stock_means=[_means(peers, [by_hand] * len(peers), *each) for each in parts],
            stock_silence=[max(longest_silence(load.meter, *each) for load in peers) for each in parts],
            until_stop=at_stop - SIZE,
            after_stop=at_end - at_stop,
            retention=[seconds for each in waited[::2] for seconds in each],
            deleted=[seconds for each in waited[1::2] for seconds in each],
            failed=sum(len(load.errors) for load in team + others),
        )


@contextmanager
def _stock(windows: int) -> Iterator[KafkaNode]:
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), properties={"quota.window.num": str(windows)}) as node,
    ):
        for number in (1, 2, 3):
            create_topic(node, f"stock-{number}")
        set_by_hand(node, QUOTA)
        yield node


def _fill(cluster: Cluster, number: int) -> None:
    """Fills one of the team's older topics, as the exempt client."""
    create_topic(cluster.brokers[0], _older(number), config=SMALL)
    config = cluster.client_config("filler", "filler") | {"queue.buffering.max.kbytes": 8192, "batch.size": 500_000}
    with ProducerLoad(config, _older(number), record_size=100_000):
        eventually(lambda: on_disk(cluster, TEAM) >= FILLED * SIZE * (number + 1) / OLDER, what="older records")


def _older(number: int) -> str:
    return f"team-older-{number}"


def _set(cluster: Cluster, size: int) -> None:
    topic = CompactedTopic(cluster.client_config("filler"), "__quotahost_quotas", "quotahost-quotas")
    assert topic.write({key_of("team"): encode(Budget("team", (TEAM,), size))}) == {}


def _wait_for_stop(cluster: Cluster) -> None:
    def closed(node: KafkaNode) -> bool:
        return bool(Jmx(node).get("quotahost:type=Fence", "Closed"))

    eventually(lambda: all(closed(node) for node in cluster.brokers), what="a stop", poll=0.01)


def _releases(cluster: Cluster, team: list[ProducerLoad]) -> Iterator[list[float]]:
    """Frees enough bytes for each older topic, by retention and deletion in turn; yields each producer's seconds."""
    yield _release(cluster, team, 0, SIZE)
    for number in range(1, OLDER):
        time.sleep(GOING_ON)
        size = on_disk(cluster, TEAM)
        _set(cluster, size)
        _wait_for_stop(cluster)
        time.sleep(STOPPED_AGAIN)
        check_alive(*cluster.brokers)
        yield _release(cluster, team, number, size)


def _release(cluster: Cluster, team: list[ProducerLoad], number: int, size: int) -> list[float]:
    before = [load.meter.bytes for load in team]
    if number % 2:
        delete_topics(cluster, _older(number))
    else:
        alter_config(cluster.brokers[0], "TOPIC", _older(number), {"retention.bytes": str(MEGA)})
    eventually(lambda: on_disk(cluster, TEAM) <= ENOUGH * size, what="space", poll=0.01)
    free = time.monotonic()
    eventually(lambda: all(load.meter.bytes > had for load, had in zip(team, before, strict=True)), what="records")
    return [first_byte(load.meter, free, time.monotonic()) - free for load in team]


def _means(loads: list[ProducerLoad], limits: Sequence[Limit], start: float, end: float) -> list[float]:
    begins = [start + number * MEAN for number in range(int((end - start) / MEAN))]
    pairs = zip(loads, limits, strict=True)
    return [load.meter.rate(at, at + MEAN) / limit.mean(at, at + MEAN) for load, limit in pairs for at in begins]


def report(found: dict[int, Found]) -> str:
    """Returns a Markdown table for both numbers of windows, with the aims."""
    heads = ["", "aim", *(f"quota.window.num={windows}" for windows in found)]
    cells = zip(*map(_column, found.values()), strict=True)
    return table(heads, [[*row, *each] for row, each in zip(ROWS, cells, strict=True)])


def _column(found: Found) -> list[str]:
    follows = zip(found.means + found.stock_means, found.silence + found.stock_silence, strict=True)
    return [
        *(f"{statistics.mean(shares):.3f} ({min(shares):.3f})" for shares in (found.slowed, found.stopped)),
        *(cell for means, silence in follows for cell in (f"{min(means):.2f} - {max(means):.2f}", f"{silence:.1f}")),
        f"{found.until_stop / 1e3:,.0f}",
        f"{found.after_stop:,}",
        *(f"{statistics.median(each):.2f} / {max(each):.2f}" for each in (found.retention, found.deleted)),
        str(found.failed),
    ]


def main() -> str:
    """Measures with each number of windows; returns the Markdown table."""
    return report({windows: run(windows) for windows in WINDOWS})
