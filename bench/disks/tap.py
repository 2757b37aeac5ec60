"""Measures how evenly producers follow a falling factor, a stop, and the release, with 2 and with 11 quota windows.

All brokers run at the same time, each on a small file system of its own, whose used bytes follow the same path. They go
from the soft limit to where the policy ``limits`` gives 0.3, in FALL seconds, and stay there for HELD seconds; then the
volume is full for STOPPED seconds, and then nearly empty. The stock broker's quota is set by hand to the same factor
once a second, and at the stop to quotahost's ``floor.bytes``, since Kafka knows no stop. Strimzi's plugin has no factor
between 1 and 0.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.disks.brokers import MEGA, Ballast, Holder, Room, check_alive, set_by_hand, small_broker
from bench.disks.load import first_byte, longest_silence, means
from bench.jvm import strimzi_jars
from bench.markdown import table
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode

ROOM: Final = Room(quota=2 * MEGA, soft=100 * MEGA, hard=300 * MEGA, capacity=400 * MEGA)
WINDOWS: Final = (2, 11)  # quota.window.num
HOLDERS: Final[tuple[Holder, ...]] = (Holder.QUOTAHOST, Holder.STOCK, Holder.STRIMZI)
CLIENTS: Final = 3  # one with Strimzi's plugin, as its clients share the quota
LEAST: Final = 0.3  # a factor
FLOOR: Final = 35_000.0  # bytes/s
KEEPS: Final = {"segment.bytes": str(1 << 20), "retention.bytes": str(8 << 20)}  # so that the ballast fills the rest
WARM_UP: Final = 20.0  # seconds at factor 1
FALL: Final = 60.0  # seconds, like the next three
HELD: Final = 50.0
STOPPED: Final = 20.0
AFTER: Final = 25.0
MEAN: Final = 5.0  # seconds that each mean covers
BACK: Final = 0.9  # share of the quota


def factor_at(second: float) -> float:
    """Returns the factor for the volume's level, so many seconds after it begins to fill and before the stop."""
    return 1 - (1 - LEAST) * min(1.0, second / FALL)


@dataclass(frozen=True)
class Followed:
    """The results of one client on one broker."""

    means: list[float]  # bytes/s over MEAN seconds each, divided by factor x quota, until the stop
    silence: float  # the longest time in seconds in which nothing was acknowledged, until the stop
    throttle: float  # the longest throttle time in seconds that the client got from the broker, until the release
    beyond: int  # bytes acknowledged after the volume was full, until the release
    first: float  # bytes/s in the second from the first byte after the release, divided by the quota
    back: float | None  # seconds from the release until a whole second had 90 % of the quota; None if none had
    after: list[float]  # bytes/s as means over MEAN seconds from that first byte, divided by the quota


def run(holder: Holder, windows: int) -> list[Followed]:
    """Takes one broker through the whole path; returns one result for each client."""
    with ExitStack() as stack:
        node = stack.enter_context(small_broker(holder, ROOM, windows))
        create_topic(node, "t", config=KEEPS)
        names = [f"eager-{number}" for number in range(1 if holder is Holder.STRIMZI else CLIENTS)]
        loads = [stack.enter_context(ProducerLoad(node.client_config(client_id=name), "t")) for name in names]
        ballast = stack.enter_context(Ballast(node.directory / "ballast", ROOM.soft))
        time.sleep(WARM_UP)
        began = time.monotonic()
        full, free = _play(holder, node, ballast, began)
        return [_followed(load, began, full, free) for load in loads]


def _play(holder: Holder, node: KafkaNode, ballast: Ballast, began: float) -> tuple[float, float]:
    """Takes volume (and the stock broker's quota) through the whole path; returns when it was full, and when free."""
    by_hand = holder is Holder.STOCK
    while (second := time.monotonic() - began) < FALL + HELD:
        ballast.to(ROOM.hard - factor_at(second) * ROOM.band)
        if by_hand and second < FALL + 1:
            set_by_hand(node, factor_at(second) * ROOM.quota)
        check_alive(node)
        time.sleep(1.0 if by_hand else 0.1)
    moments = []
    for level, quota, length in ((ROOM.hard + MEGA, FLOOR, STOPPED), (ROOM.soft / 2, ROOM.quota, AFTER)):
        moments.append(time.monotonic())
        ballast.to(level)
        if by_hand:
            set_by_hand(node, quota)
        time.sleep(moments[-1] + length - time.monotonic())
        check_alive(node)
    return moments[0], moments[1]


def _followed(load: ProducerLoad, began: float, full: float, free: float) -> Followed:
    meter, end = load.meter, free + AFTER
    middles = [MEAN * (n + 0.5) for n in range(int((full - began) / MEAN))]
    rates = means(meter, began, full, MEAN)
    first = first_byte(meter, free, end)
    return Followed(
        means=[rate / ROOM.quota / factor_at(middle) for middle, rate in zip(middles, rates, strict=True)],
        silence=longest_silence(meter, began, full),
        throttle=load.max_throttle(began),
        beyond=meter.total_at(free) - meter.total_at(full),
        first=meter.rate(first, first + 1) / ROOM.quota,
        back=_back(meter, free, end),
        after=[rate / ROOM.quota for rate in means(meter, first, end, MEAN)],
    )


def _back(meter: Meter, free: float, end: float) -> float | None:
    """Returns the seconds from the release until the second before had 90 % of the quota."""
    steps = (n / 10 for n in range(1, int(10 * (end - free))))
    return next((each for each in steps if meter.rate(free + each - 1, free + each) >= BACK * ROOM.quota), None)


def report(windows: int, runs: dict[Holder, list[Followed]]) -> str:
    """Returns a Markdown table of all clients of each broker."""
    heads = [f"quota.window.num={windows}", f"{MEAN:.0f} s means / (factor x quota)", "longest silence, s"]
    heads += ["longest throttle time told, s", "kB beyond hard", "first second after the release / quota"]
    heads += ["s until 90 % of the quota", f"{MEAN:.0f} s means after that / quota"]
    return table(heads, [_row(holder, each) for holder, each in runs.items()])


def _row(holder: Holder, each: list[Followed]) -> list[str]:
    backs = [client.back for client in each if client.back is not None]
    return [
        holder,
        _range([mean for client in each for mean in client.means]),
        f"{max(client.silence for client in each):.1f}",
        f"{max(client.throttle for client in each):,.1f}",
        f"{sum(client.beyond for client in each) / 1e3:,.0f}",
        _range([client.first for client in each]),
        _range(backs) if len(backs) == len(each) else f"not within {AFTER:.0f}",
        _range([mean for client in each for mean in client.after]) or "-",
    ]


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} - {max(values):.2f}" if values else ""


def main(runs: int | None = None) -> str:
    """Measures all brokers at once, with each number of windows; returns the Markdown tables."""
    strimzi_jars()  # downloads the jars once: otherwise all threads would do it at the same time
    tables = []
    for windows in WINDOWS:
        found: dict[Holder, list[Followed]] = {holder: [] for holder in HOLDERS}
        for _ in range(runs or 1):
            with ThreadPoolExecutor(len(HOLDERS)) as pool:
                for holder, clients in zip(HOLDERS, pool.map(run, HOLDERS, [windows] * len(HOLDERS)), strict=True):
                    found[holder] += clients
        tables.append(report(windows, found))
    return "\n\n".join(tables)
