"""The demo's second half: a disk fills, producers are slowed, stopped, and let go when space is back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from demo.quotas.scenario import MEGA
from harness.clients.load import Load
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX, STATES
from quotahost.disks.file_stores import read_disks

SOFT: Final = 80 * MEGA  # above what is used when the disk's part begins
HARD: Final = 240 * MEGA
QUOTA: Final = 2 * MEGA  # bytes/s of each of the two that are slowed and stopped
USERS: Final = ("blue", "green")
SERVICE: Final = 12 * MEGA  # bytes/s of the excluded service, which goes on whatever the factor
POLL: Final = 0.5  # seconds
PAUSE_TIME: Final = 5.0
OPEN_TIME: Final = 6.0
ACT_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class Sample:
    """One look: seconds since the start, bytes consumed, factor, state, bytes/s and bytes so far by user."""

    at: float
    consumed: int
    factor: float
    state: str
    rates: dict[str, float]
    totals: dict[str, int]
    rejections: float


@dataclass
class Recording:
    """What was seen: the samples, the limits in bytes, and the moments of each act."""

    soft: int
    hard: int
    samples: list[Sample] = field(default_factory=list)
    paused_at: float | None = None
    freed_at: float | None = None
    open_at: float | None = None

    @property
    def throttled(self) -> bool:
        """Whether producers were slowed on the way."""
        return any(sample.state == "THROTTLE" for sample in self.samples)

    def appended_while_paused(self) -> int:
        """Bytes of the two that were delivered between half a second after the stop and the freeing."""
        if self.paused_at is None or self.freed_at is None:
            return -1
        paused = [s for s in self.samples if self.paused_at + 0.5 <= s.at <= self.freed_at]
        return sum(paused[-1].totals[user] - paused[0].totals[user] for user in USERS) if paused else 0


def play(node: KafkaNode, show: Callable[[Recording, str], None]) -> Recording:
    """All acts; ``show`` is called after each look, with what is going on."""
    own = dict.fromkeys(f"{PREFIX}plugin.off-peak.{name}" for name in ("produce", "from", "to"))
    alter_broker_config(node, {**own, PREFIX + "supplier": "client-quotas,static"})
    for user in USERS:
        set_quota(node, {"producer_byte_rate": QUOTA}, user=user)
    create_topic(node, "filling")
    now = consumed(node)
    recording = Recording(now + SOFT, now + HARD)
    limits = {"soft": str(recording.soft), "hard": str(recording.hard)}
    alter_broker_config(node, {f"{PREFIX}static.storage.{side}": level for side, level in limits.items()})
    # Just below their quota: who has more to send gets it in bursts, a quota window's worth at a time.
    loads: dict[str, Load] = {
        user: ProducerLoad(node.client_config(user, "app"), "written", rate=0.95 * QUOTA) for user in USERS
    }
    loads["service"] = ProducerLoad(node.client_config("service", "filler"), "filling", rate=SERVICE)
    with ExitStack() as stack:
        for load in loads.values():
            stack.enter_context(load)
        take_sample = partial(_take_sample, node, recording, loads, time.monotonic())
        _run_acts(node, recording, loads["service"], take_sample, show)
    return recording


def _run_acts(
    node: KafkaNode,
    recording: Recording,
    service: Load,
    take_sample: Callable[[], None],
    show: Callable[[Recording, str], None],
) -> None:
    _watch_until(
        lambda: _state_is(recording, "PAUSE"),
        take_sample,
        show,
        recording,
        "the disk fills: above soft all are slowed but the service",
    )
    recording.paused_at = recording.samples[-1].at
    service.stop()
    _watch_for(
        PAUSE_TIME,
        take_sample,
        show,
        recording,
        "the disk is at its hard limit: the fence turns producers back",
    )
    delete_topics(node, "filling")
    recording.freed_at = recording.samples[-1].at
    _watch_until(
        lambda: _state_is(recording, "OPEN"),
        take_sample,
        show,
        recording,
        "the service's topic is deleted: space comes back",
    )
    recording.open_at = recording.samples[-1].at
    _watch_for(OPEN_TIME, take_sample, show, recording, "and they go on")


def consumed(node: KafkaNode) -> int:
    """Bytes used of the broker's volume."""
    return read_disks("1", [str(node.data_dirs[0])]).volumes[0].consumed


def _take_sample(node: KafkaNode, recording: Recording, loads: dict[str, Load], began: float) -> None:
    table = Jmx(node).query("quotahost:type=QuotaTable")["quotahost:type=QuotaTable"]
    fence = Jmx(node).query("quotahost:type=Fence")["quotahost:type=Fence"]
    rates = {user: load.meter.rate_over(1.0) for user, load in loads.items()}
    totals = {user: load.meter.bytes for user, load in loads.items()}
    state = STATES[int(table["State"])]
    at = time.monotonic() - began
    recording.samples.append(
        Sample(at, consumed(node), table["Factor"], state, rates, totals, fence["Rejections"])
    )


def _state_is(recording: Recording, state: str) -> bool:
    return bool(recording.samples) and recording.samples[-1].state == state


def _watch_until(
    reached: Callable[[], bool],
    take_sample: Callable[[], None],
    show: Callable[[Recording, str], None],
    recording: Recording,
    caption: str,
) -> None:
    end = time.monotonic() + ACT_TIMEOUT
    while not reached() and time.monotonic() < end:
        take_sample()
        show(recording, caption)
        time.sleep(POLL)


def _watch_for(
    seconds: float,
    take_sample: Callable[[], None],
    show: Callable[[Recording, str], None],
    recording: Recording,
    caption: str,
) -> None:
    end = time.monotonic() + seconds
    _watch_until(lambda: time.monotonic() >= end, take_sample, show, recording, caption)
