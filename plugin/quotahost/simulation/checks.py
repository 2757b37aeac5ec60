"""What must hold in every run: each is a check with a name, and a sentence about what went wrong and when.

Times within which something must follow come from the properties: a disk is looked at every ``volumes.period``, the
host decides every ``factor.interval`` and up to 0.1 s later, and a snapshot takes the slowest way of the scene.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quotahost.model import State
from quotahost.simulation.broker import BEAT, TAKE, Broker
from quotahost.simulation.client import BACKOFF, Client

if TYPE_CHECKING:
    from quotahost.simulation.disk import Disk
    from quotahost.simulation.world import World

_FIRST: Final = 1.5  # how much of its quota a client may get in the first second after a PAUSE, beside one batch


@dataclass(frozen=True, slots=True)
class Violation:
    """What went wrong first in a run, of one kind.

    Attributes:
        check: its name.
        ms: when.
        what: in a sentence.
    """

    check: str
    ms: int
    what: str

    def __str__(self) -> str:
        return f"{self.check}, at {self.ms / 1000:.3f} s: {self.what}"


class Checks:
    """Watches a run.

    Attributes:
        found: the first violation of each check.
    """

    def __init__(self, world: World) -> None:
        self._world, self._events, scene, own = world, world.events, world.scene, world.settings
        self.found: dict[str, Violation] = {}
        self._several = len(world.disks) > 1
        self._decides = _ms(own.factor_interval) + TAKE + 1
        self.lag = _ms(own.volumes_period) + self._decides
        self._slowest, self._snapshots = scene.way.slowest, _ms(own.snapshots_period)
        self._validity, self._grace = _ms(own.validity), _ms(own.startup_grace)
        self._falls_back = State(own.fallback_action) is State.PAUSE
        self._max_mute = _ms(own.max_mute)
        self._span = (scene.windows + 1) * scene.window_ms
        self._pausing: dict[int, int] = {}  # the broker's index, and in which of its lives it saw its disk full
        self._allowed: dict[int, tuple[int, float]] = {}
        self._silent: dict[str, int] = {}
        self._factors: list[float] = []

    # ---- what brokers tell ----

    def appended(self, broker: Broker, client: Client, limit: float, mute: int) -> None:
        """A client's batch was appended, and it is muted for so many ms."""
        plan, now = client.plan, self._events.now
        self._silent[plan.name] = now + (0 if plan.kind == "reconnecting" else mute)
        for index, disk in enumerate(self._world.disks):
            if disk.full_since is not None and broker.scene.fence:
                self._hard(broker, client, index, disk)
        if mute and plan.kind != "reconnecting":
            most = self._max_mute + plan.batch / limit * 1000 + self._world.scene.window_ms
            if mute > most:
                self._wrong("mute", f"{plan.name} is muted for {mute} ms, more than max.mute and its batch: {most:.0f}")

    def fence(self, broker: Broker, lasted: int) -> None:
        """The fence has closed or opened, after so many ms in the other state."""
        now = self._events.now
        if broker.closed or lasted < self._span:
            return
        for client in self._of(broker):
            if client.plan.kind != "reconnecting":
                self._events.after(1000, lambda each=client, sent=client.sent: self._burst(each, sent))
            self._silent[client.plan.name] = now

    def looked(self, broker: Broker) -> None:
        """The host has decided."""
        if broker.shim.failed:
            self._wrong("plugin", f"{broker.shim.failed} failed on broker {broker.index + 1}")
        self._release(broker)
        self._hold(broker)
        self._unknown(broker)
        self._starve(broker)
        if self._world.scene.steady:
            self._factors.append(broker.factor)

    def end(self) -> None:
        """The run is over."""

    # ---- the checks ----

    def _hard(self, broker: Broker, client: Client, index: int, disk: Disk) -> None:
        """Nobody appends once a disk has been full for as long as it takes to notice it."""
        now, owner = self._events.now, self._world.brokers[index]
        if not owner.up or disk.full_since is None:
            return
        late = now - max(disk.full_since, broker.up_since, owner.up_since)
        allowed = self.lag
        if owner is not broker:
            if not self._several:
                return
            allowed += self._slowest
            if self._disturbed(self.lag):
                if not self._falls_back:
                    return
                allowed += self._validity + self._grace
        if late > allowed:
            self._wrong(
                "hard", f"{client.plan.name} appends {late} ms after the disk of broker {index + 1} was full ({allowed})"
            )

    def _release(self, broker: Broker) -> None:
        """A PAUSE ends soon after all disks have enough room, and below soft everything is as if nothing had been."""
        world, now = self._world, self._events.now
        disks = world.disks if self._several else [world.disks[broker.index]]
        for disk in disks:
            disk.used()
        since, bound = broker.up_since, self.lag
        if self._several:
            if self._disturbed(self.lag) or not all(each.up for each in world.brokers):
                return
            since = max(each.up_since for each in world.brokers) + self._grace
            bound += self._slowest + self._snapshots
        low = [disk.low_since for disk in disks]
        if broker.closed and None not in low and now - max([since, *filter(None, low)]) > bound:
            self._wrong("release", f"broker {broker.index + 1} is still closed, {bound} ms after the disks were freed")
        calm = [disk.calm_since for disk in disks]
        if None in calm:
            return
        late = now - max([since, *filter(None, calm)])
        if late > bound and broker.factor < 1:
            self._wrong("open", f"broker {broker.index + 1} has the factor {broker.factor:.3f} with all disks below soft")
        if late > bound + self._span + 2 * BEAT and broker.tap.value < 1:
            self._wrong("open", f"broker {broker.index + 1} keeps its limits at {broker.tap.value:.3f} of the quotas")

    def _hold(self, broker: Broker) -> None:
        """A PAUSE of the own disk holds until the release share is free."""
        known = broker.source.known.volumes
        disk = self._world.disks[broker.index]
        if not known or not broker.scene.fence:
            return
        if known[0].consumed >= disk.bounds.hard:
            self._pausing[broker.index] = broker.up_since
        elif known[0].consumed <= disk.low:
            self._pausing.pop(broker.index, None)
        if self._pausing.get(broker.index) == broker.up_since and not broker.closed:
            self._wrong("hold", f"broker {broker.index + 1} is open with {known[0].consumed} bytes, above {disk.low}")

    def _unknown(self, broker: Broker) -> None:
        """A broker that is in service and silent for longer than ``validity`` counts as full (fallback PAUSE)."""
        now, after = self._events.now, self._validity + self.lag + self._slowest + self._grace
        for which, begin, end in self._world.scene.way.silences:
            owner = self._world.brokers[which]
            since = max(begin, owner.up_since, broker.up_since)
            if owner is broker or not owner.up or not self._falls_back or not since + after < now < end:
                continue
            if broker.factor > 0:
                self._wrong("unknown", f"broker {broker.index + 1} goes on at {broker.factor:.3f}, with {which + 1} silent")

    def _starve(self, broker: Broker) -> None:
        """While the fence is open an eager client gets a batch through in a bounded time."""
        now = self._events.now
        for client in self._of(broker):
            plan = client.plan
            if plan.kind != "eager" or broker.closed or not broker.up:
                continue
            since = max(self._silent.get(plan.name, 0), broker.closed_since, broker.up_since)
            if now - since > self.lag + 10 * BACKOFF:
                self._wrong("starve", f"{plan.name} has been silent for {now - since} ms more than it was muted for")

    def _burst(self, client: Client, before: int) -> None:
        """After a PAUSE that was longer than Kafka's windows a client gets its quota, not its windows at once."""
        plan, own = client.plan, self._world.settings
        scene = self._world.scene
        floor = min(plan.quota, own.floor_bytes) * scene.windows * scene.window_ms / 1000
        most = max(_FIRST * plan.quota, floor) + plan.batch
        if client.sent - before > most:
            self._wrong("burst", f"{plan.name} got {client.sent - before} bytes in its first second, above {most:.0f}")

    # ---- helpers ----

    def _of(self, broker: Broker) -> list[Client]:
        return [each for each in self._world.clients if each.plan.home == broker.index]

    def _disturbed(self, more: int) -> bool:
        topic = self._world.topic
        return topic is not None and self._events.now < topic.disturbed_until + more

    def _wrong(self, check: str, what: str) -> None:
        self.found.setdefault(check, Violation(check, self._events.now, what))


def _ms(duration: object) -> int:
    return round(duration.total_seconds() * 1000)  # type: ignore[attr-defined]
