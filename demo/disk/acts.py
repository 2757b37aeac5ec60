"""The demo's second part: a disk fills, and producers are slowed, stopped, and let go when space is back.

The broker's limits are set live, close above what is used, so that the part takes a minute. A service that is exempt
fills the disk; the users blue and green write to it, too, and are the producers that the limits act on. The user purple
writes to another disk. ``picture`` shows the samples that are taken here.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from demo.disk.broker import QUOTA, WINDOW, topic_on
from demo.quotas.scenario import MEGA
from harness.clients.load import Load
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, delete_topics
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX, STATES
from quotahost.broker.disks.file_stores import read_disks

SOFT: Final = 80 * MEGA  # bytes above what is used when this part begins
HARD: Final = 240 * MEGA
USERS: Final = ("blue", "green")
ELSEWHERE: Final = "purple"
SERVICE: Final = 12 * MEGA  # bytes/s of the exempt service, which writes on at any factor
POLL: Final = 0.5  # seconds between two samples
PAUSE_TIME: Final = 5.0  # seconds to watch the pause before space is freed
OPEN_TIME: Final = 6.0  # seconds to watch the producers afterwards
ACT_TIMEOUT: Final = 60.0  # seconds


@dataclass(frozen=True)
class Sample:
    """The broker at one moment.

    Attributes:
        at: seconds since the start.
        consumed: bytes used of the volume that fills.
        factor: the factor in force.
        state: OPEN, THROTTLE or PAUSE.
        rates: bytes/s over Kafka's last window, 2 s, by user.
        totals: bytes delivered so far, by user.
        rejections: how many requests the fence has turned back so far.
    """

    at: float
    consumed: int
    factor: float
    state: str
    rates: dict[str, float]
    totals: dict[str, int]
    rejections: float


@dataclass
class Recording:
    """All samples, the limits in bytes, and when each act began (seconds since the start; None if it didn't).

    ``two_volumes`` is False where no file system can be mounted: then purple's disk fills, too.
    """

    soft: int
    hard: int
    two_volumes: bool
    samples: list[Sample] = field(default_factory=list)
    paused_at: float | None = None
    freed_at: float | None = None
    open_at: float | None = None

    @property
    def throttled(self) -> bool:
        """Whether producers were slowed on the way."""
        return any(sample.state == "THROTTLE" for sample in self.samples)

    def appended_while_paused(self) -> int:
        """Bytes of blue and green delivered from half a second after the stop until the freeing; -1 without a stop."""
        if self.paused_at is None or self.freed_at is None:
            return -1
        paused = [s for s in self.samples if self.paused_at + 0.5 <= s.at <= self.freed_at]
        return sum(paused[-1].totals[user] - paused[0].totals[user] for user in USERS) if paused else 0

    def share_elsewhere(self) -> float:
        """Purple's rate while others were slowed or stopped, as a share of its rate before; 0 if nobody was."""
        slowed = [sample for sample in self.samples if sample.state != "OPEN"]
        if not slowed or slowed[0].at <= 0:
            return 0.0
        first, last = slowed[0], slowed[-1]
        before = first.totals[ELSEWHERE] / first.at
        return (last.totals[ELSEWHERE] - first.totals[ELSEWHERE]) / max(0.1, last.at - first.at) / before


Show = Callable[[Recording, str], None]


def play(node: KafkaNode, two_volumes: bool, show: Show) -> Recording:
    """Plays all acts; calls ``show`` after each sample, with a caption that says what is going on."""
    full, other = node.data_dirs
    topics = {name: topic_on(node, full, name) for name in ("written", "filling")}
    topics["elsewhere"] = topic_on(node, other, "elsewhere")
    recording = _set_limits(node, two_volumes)
    # A rate just below the quota is even; so the picture shows what the factor does.
    loads: dict[str, Load] = {
        user: ProducerLoad(node.client_config(user, "app"), topics["written"], rate=0.95 * QUOTA) for user in USERS
    }
    loads[ELSEWHERE] = ProducerLoad(node.client_config(ELSEWHERE, "app"), topics["elsewhere"], rate=0.95 * QUOTA)
    loads["service"] = ProducerLoad(node.client_config("service", "filler"), topics["filling"], rate=SERVICE)
    with ExitStack() as stack:
        for load in loads.values():
            stack.enter_context(load)
        _Runner(node, recording, loads, show).run()
    return recording


def _set_limits(node: KafkaNode, two_volumes: bool) -> Recording:
    now = consumed(node)
    recording = Recording(now + SOFT, now + HARD, two_volumes)
    limits = {"soft": str(recording.soft), "hard": str(recording.hard)}
    alter_broker_config(node, {f"{PREFIX}static.storage.{side}": level for side, level in limits.items()})
    return recording


def consumed(node: KafkaNode) -> int:
    """Bytes used of the volume of the broker's first log directory."""
    return read_disks("1", [str(node.data_dirs[0])]).volumes[0].consumed


class _Runner:
    """Takes samples while it plays the acts one after the other."""

    def __init__(self, node: KafkaNode, recording: Recording, loads: dict[str, Load], show: Show) -> None:
        self._node, self._recording, self._loads, self._show = node, recording, loads, show
        self._began = time.monotonic()

    def run(self) -> None:
        recording = self._recording
        caption = "the disk fills: above the soft limit who writes to it is slowed, but not the exempt service"
        self._watch_until(lambda: self._state_is("PAUSE"), caption)
        recording.paused_at = recording.samples[-1].at
        self._loads["service"].stop()
        self._watch_for(PAUSE_TIME, "the disk is at its hard limit: the fence turns back who writes to it")
        delete_topics(self._node, self._loads["service"].topic)
        recording.freed_at = recording.samples[-1].at
        self._watch_until(lambda: self._state_is("OPEN"), "the service's topic is deleted: space comes back")
        recording.open_at = recording.samples[-1].at
        self._watch_for(OPEN_TIME, "the producers go on as before")

    def _watch_until(self, reached: Callable[[], bool], caption: str) -> None:
        end = time.monotonic() + ACT_TIMEOUT
        while not reached() and time.monotonic() < end:
            self._recording.samples.append(self._sample())
            self._show(self._recording, caption)
            time.sleep(POLL)

    def _watch_for(self, seconds: float, caption: str) -> None:
        end = time.monotonic() + seconds
        self._watch_until(lambda: time.monotonic() >= end, caption)

    def _state_is(self, state: str) -> bool:
        return bool(self._recording.samples) and self._recording.samples[-1].state == state

    def _sample(self) -> Sample:
        table = Jmx(self._node).query("quotahost:type=QuotaTable")["quotahost:type=QuotaTable"]
        fence = Jmx(self._node).query("quotahost:type=Fence")["quotahost:type=Fence"]
        rates = {user: load.meter.rate_over(WINDOW) for user, load in self._loads.items()}
        totals = {user: load.meter.bytes for user, load in self._loads.items()}
        at, state = time.monotonic() - self._began, STATES[int(table["State"])]
        return Sample(at, consumed(self._node), table["Factor"], state, rates, totals, fence["Rejections"])
