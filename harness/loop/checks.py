"""The checks that must hold in every run; each has a name, and a sentence that says what went wrong and when.

``Checks`` watches the brokers of a world and keeps the first violation of each check; ``violations`` plays the scene of
a seed with it, and ``failing`` many seeds on all cores. docs/adr/0019-a-simulator-of-the-loop.md lists the checks. The
properties give the times within which something must follow: a broker looks at a disk every ``volumes.period``, the
host decides every ``factor.interval`` and up to 0.1 s later, and a snapshot takes the slowest way of the scene.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from typing import Final

from harness.loop.cluster import Cluster, MortalBroker, Reconnecting, WatchedDisk
from harness.loop.seeds import scene_of_seed
from quotahost.cli.lab.traffic import ms
from quotahost.cli.lab.world import BACKOFF, BEAT, TAKE, Client
from quotahost.model import State
from quotahost.throttling import rise

_LAST: Final = 90_000  # ms of a steady scene in which the factor must be settled
_BAND: Final = 0.15  # the largest difference of its means over 30 s
_FIRST: Final = 1.5  # the share of its quota that a client may get in the first second after a PAUSE, beside one batch
_CHUNK: Final = 50  # seeds that a process takes at once


@dataclass(frozen=True, slots=True)
class Violation:
    """The first violation of one check in a run: the check, the time, and a sentence."""

    check: str
    ms: int
    what: str

    def __str__(self) -> str:
        return f"{self.check}, at {self.ms / 1000:.3f} s: {self.what}"


class Checks:
    """Watches a run of a world, from before the start; ``first`` is the first violation of each check."""

    def __init__(self, world: Cluster) -> None:
        self._world, self._events, scene, settings = world, world.events, world.scene, world.settings
        self.first: dict[str, Violation] = {}
        self._several = len(world.disks) > 1
        self._decides = ms(settings.factor_interval) + TAKE + 1
        self.lag = ms(settings.volumes_period) + self._decides
        slowest = world.topic.slowest if world.topic else 0
        self._slowest, self._snapshots = slowest, ms(settings.snapshots_period)
        self._validity, self._grace = ms(settings.validity), ms(settings.startup_grace)
        self._falls_back = State(settings.fallback_action) is State.PAUSE
        self._max_mute = ms(settings.max_mute)
        self._lease_over = self._validity + BEAT + TAKE  # ms of a host's silence after which the fallback is in force
        self._span = (scene.windows + 1) * scene.window_ms
        self._way = self._span + 2 * BEAT  # ms that a tap needs
        self._by_topics = settings.factor_scope == "topics" and scene.fence
        self._pausing: dict[int, int] = {}  # by a broker's index: the life in which the broker saw its disk full
        self._allowed: dict[int, tuple[int, float]] = {}
        self._silent: dict[str, int] = {}
        self._held: dict[str, int] = {}  # by client: when it was first turned back since its last append
        # For each broker the values of its taps, for all clients and for the slowed, with their start times.
        self._values: list[list[tuple[int, float, float]]] = [[] for _ in world.disks]
        self._factors: list[float] = []
        for broker in world.brokers:
            broker.tell = partial(self._told, broker)
        for index, begins, ends in scene.hangs:
            if begins + self._lease_over < ends:
                silent = partial(self._is_silent, world.brokers[index], begins)
                self._events.at(begins + self._lease_over, silent)

    # ---- what brokers tell ----

    def _told(self, broker: MortalBroker, event: str, *facts: object) -> None:
        getattr(self, event)(broker, *facts)

    def appended(self, broker: MortalBroker, client: Client, limit: float, mute: int) -> None:
        """Checks an append: a client's batch was appended, and Kafka mutes the client for so many ms."""
        plan, now = client.plan, self._events.now
        self._silent[plan.name] = now + (0 if isinstance(plan, Reconnecting) else mute)
        self._held.pop(plan.name, None)
        for index, disk in enumerate(self._world.disks):
            concerned = not self._by_topics or index in plan.places
            if concerned and disk.full_since is not None and broker.scene.fence:
                self._hard(broker, client, index, disk)
                self._flight(index, disk, disk.full_since)
        if mute > self._max_mute:
            self._mute(broker, client, limit, mute)
        if self._by_topics and limit < plan.quota:
            self._bystander(broker, client, self._way, f"is held to {limit:.0f} bytes/s")

    def turned_back(self, broker: MortalBroker, client: Client) -> None:
        """Checks bystanders after a closed fence, or a dead broker, has turned a client back."""
        self._held.setdefault(client.plan.name, self._events.now)
        if self._by_topics and broker.up:
            self._bystander(broker, client, 0, "is turned back")

    def moved(self, broker: MortalBroker) -> None:
        """Notes a tap's new value; the first call gives the first value."""
        self._values[broker.index].append((self._events.now, broker.tap.value, broker.slowed.value))

    def fence(self, broker: MortalBroker, lasted: int, for_all: bool) -> None:
        """Starts the check for bursts when the fence opens; it was closed for so many ms, for all clients or not."""
        if broker.closed:
            return
        for client in self._of(broker):
            # With factor.scope=topics the fence lets a client pass if its topic isn't held, or wasn't at first.
            held = self._events.now - self._held.get(client.plan.name, self._events.now)
            silent = min(lasted, held) if self._by_topics else lasted
            if not isinstance(client.plan, Reconnecting) and silent >= self._span:
                tap = broker.tap.value if self._by_topics and for_all else 0.0
                self._events.after(1000, partial(self._burst, client, client.sent, silent, tap))

    def looked(self, broker: MortalBroker) -> None:
        """Runs the checks that follow each decision of the host."""
        if broker.shim.failed:
            self._wrong("plugin", f"{broker.shim.failed} failed on broker {broker.index + 1}")
        self._release(broker)
        self._hold(broker)
        self._unknown(broker)
        self._starve(broker)
        if self._world.scene.steady and self._events.now > self._world.scene.ms - _LAST:
            self._factors.append(broker.factor)

    def _is_silent(self, broker: MortalBroker, since: int) -> None:
        """Checks the fallback of a host that has hung since then, for longer than its lease: it must be in force."""
        if broker.hung and broker.answers_since < since and broker.fallback != float(not self._falls_back):
            self._wrong("lease", f"broker {broker.index + 1} has no fallback, and its host is silent since {since} ms")
        if broker.hung and self._falls_back and broker.scene.fence and not broker.closed:
            self._wrong("lease", f"broker {broker.index + 1} is open, and its host is silent since {since} ms")

    def end(self) -> None:
        """Checks at the end of the run that the factor has settled under a steady load."""
        if not self._factors:
            return
        third = len(self._factors) // 3
        means = [sum(self._factors[i * third :][:third]) / third for i in range(3)]
        if max(means) - min(means) > _BAND:
            self._wrong("settle", f"30 s means of the factor at the end: {', '.join(f'{mean:.3f}' for mean in means)}")

    # ---- the checks ----

    def _hard(self, broker: MortalBroker, client: Client, index: int, disk: WatchedDisk) -> None:
        """No client appends after a disk has been full for as long as it takes to notice that."""
        now, owner = self._events.now, self._world.brokers[index]
        if not owner.up or disk.full_since is None:
            return
        late = now - max(disk.full_since, broker.answers_since, owner.up_since)
        allowed = self.lag + BEAT * (broker.answers_since > broker.up_since)
        if broker.hung:
            if not self._falls_back:
                return
            allowed += self._lease_over
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
                "hard",
                f"{client.plan.name} appends {late} ms after the disk of broker {index + 1} was full ({allowed})",
            )

    def _flight(self, index: int, disk: WatchedDisk, full_since: int) -> None:
        """Beyond hard, clients append only what Kafka's windows let through until the fence closes, at those limits."""
        world = self._world
        writers = [client for client in world.clients if index in client.plan.places]
        began, allowed = self._allowed.get(index, (-1, 0.0))
        if began != full_since:
            seconds = (self._span + self.lag + self._slowest) / 1000
            limits = sum(self._limit(world.brokers[writer.plan.home], writer) for writer in writers)
            allowed = limits * seconds + sum(writer.plan.batch for writer in writers)
            self._allowed[index] = full_since, allowed
        # The limits of the first append count. If a snapshot is lost, or connections are new, the amount is unknown.
        if (
            self._disturbed(self.lag)
            or world.scene.hangs
            or any(isinstance(writer.plan, Reconnecting) for writer in writers)
        ):
            return
        if disk.appended_full > allowed and self._events.now - world.brokers[index].up_since > self.lag:
            self._wrong("flight", f"{disk.appended_full} bytes beyond hard on broker {index + 1}, above {allowed:.0f}")

    def _mute(self, broker: MortalBroker, client: Client, limit: float, mute: int) -> None:
        """A client that Kafka would not mute at the highest limit of its windows is muted for max.mute at most.

        Kafka mutes for S / limit - W, where S are the bytes in its windows and W the seconds that they span. Let M be
        this value at the highest limit H of that time. A step takes the limit to H x K / (K + max.mute) at least, where
        K is the longest possible W. So the mute is at most M (1 + max.mute / K) + max.mute.
        """
        plan, now = client.plan, self._events.now
        tags = broker.slowing.tags(plan.name, now)
        if broker.slowing.share(tags, now) < 1:
            return  # no step: the client's windows were empty, and its limit is rising
        past = self._values[broker.index]
        while len(past) > 1 and past[1][0] <= now - self._span:
            past.pop(0)
        which = 2 if broker.slowing.slows(plan.name) else 1
        highest = max(limit, max(values[which] for values in past) * plan.quota)
        without = max(0.0, (tags.rate.measure(now) / highest - 1) * tags.rate.window_size_ms(now))
        most = without * (1 + self._max_mute / self._span) + self._max_mute
        if mute > most + 1:
            self._wrong(
                "mute",
                f"{plan.name} is muted for {mute} ms; without steps it were {without:.0f}, so {most:.0f} at most",
            )

    def _release(self, broker: MortalBroker) -> None:
        """A PAUSE ends soon after all disks have enough space; below the soft limits factor and tap return to 1."""
        world, now = self._world, self._events.now
        disks = world.disks if self._several else [world.disks[broker.index]]
        since, bound = broker.answers_since, self.lag
        if self._several:
            if self._disturbed(self.lag) or not all(other.up for other in world.brokers):
                return
            since = max(broker.answers_since, max(other.up_since for other in world.brokers) + self._grace)
            bound += self._slowest + self._snapshots
        low = [disk.low_since for disk in disks]
        if broker.closed and None not in low and now - max([since, *filter(None, low)]) > bound:
            self._wrong("release", f"broker {broker.index + 1} is still closed, {bound} ms after the disks were freed")
        calm = [disk.calm_since for disk in disks]
        if None in calm:
            return
        late = now - max([since, *filter(None, calm)])
        if late > bound and broker.factor < 1:
            self._wrong(
                "open", f"broker {broker.index + 1} has the factor {broker.factor:.3f} with all disks below soft"
            )
        way = self._way
        if late > bound + way and not self._disturbed(bound + way) and broker.tap.value < 1:
            self._wrong("open", f"broker {broker.index + 1} keeps its limits at {broker.tap.value:.3f} of the quotas")

    def _bystander(self, broker: MortalBroker, client: Client, more: int, what: str) -> None:
        """With ``factor.scope=topics`` a client is not held back if all its disks are known to be below soft."""
        world, now = self._world, self._events.now
        if broker.fallback is not None or not all(other.up for other in world.brokers):
            return
        began = max(broker.answers_since, max(other.up_since for other in world.brokers) + self._grace)
        calm = [world.disks[place].calm_since for place in client.plan.places]
        bound = self.lag + self._slowest + self._snapshots + more
        if None in calm or self._disturbed(bound):
            return
        late = now - max([began, *filter(None, calm)])
        if late > bound:
            self._wrong("bystander", f"{client.plan.name} {what}, {late} ms after all its disks were below soft")

    def _hold(self, broker: MortalBroker) -> None:
        """A PAUSE of the own disk holds until the release share is free."""
        known = broker.source.known.volumes
        disk = self._world.disks[broker.index]
        if not known or not broker.scene.fence:
            return
        if known[0].consumed >= disk.bounds.hard:
            self._pausing[broker.index] = broker.up_since
        elif known[0].consumed <= disk.low:
            self._pausing.pop(broker.index, None)
        pausing = self._pausing.get(broker.index) == broker.up_since and broker.fallback is None
        if pausing and not broker.closed:
            self._wrong("hold", f"broker {broker.index + 1} is open with {known[0].consumed} bytes, above {disk.low}")

    def _unknown(self, broker: MortalBroker) -> None:
        """A broker that is in service and silent for longer than ``validity`` counts as full (fallback PAUSE)."""
        now, after = self._events.now, self._validity + self.lag + self._slowest + self._grace
        pipeline = self._world.scene.pipeline
        if pipeline and pipeline.deaths:
            after += self._validity  # the standby answers only after that
        for which, begin, end in self._world.scene.way.silences:
            owner = self._world.brokers[which]
            since = max(begin, owner.up_since, broker.answers_since)
            if owner is broker or not owner.up or not self._falls_back or not since + after < now < end:
                continue
            if broker.factor > 0:
                self._wrong(
                    "unknown", f"broker {broker.index + 1} goes on at {broker.factor:.3f}, with {which + 1} silent"
                )

    def _starve(self, broker: MortalBroker) -> None:
        """While the fence is open, an eager client gets a batch through within a bounded time."""
        now = self._events.now
        for client in self._of(broker):
            plan = client.plan
            if plan.kind != "eager" or isinstance(plan, Reconnecting) or broker.closed or not broker.up:
                continue
            since = max(self._silent.get(plan.name, 0), broker.closed_since, broker.up_since)
            if now - since > self.lag + 10 * BACKOFF:
                self._wrong("starve", f"{plan.name} has been silent for {now - since} ms more than it was muted for")

    def _burst(self, client: Client, before: int, lasted: int, tap: float) -> None:
        """After a PAUSE that was longer than Kafka's windows a client gets its quota, not its whole windows at once.

        During a PAUSE the tap goes down only as fast as ``max.mute`` allows, for clients that pass the fence. If the
        tap is not down yet, or the floor is higher, a client gets that much. With ``factor.scope=topics`` the tap for
        all may begin to go down only when the PAUSE becomes one for all.
        """
        plan, scene = client.plan, self._world.scene
        windows = scene.windows * scene.window_ms / 1000
        floor = min(plan.quota, self._world.settings.floor_bytes)
        lowest = plan.quota * (self._span / (self._span + self._max_mute)) ** (lasted // self._span)
        lowest += plan.quota * rise(1000, scene.windows, scene.window_ms)
        lowest = max(lowest, plan.quota * tap)
        # Its own tags and the slowed ones, since it may change between them in that second.
        by_client, since = self._world.brokers[plan.home].slowing.by_client, self._events.now - 1000
        pairs = sum(tags.seen >= since for (name, _), tags in by_client.items() if name == plan.name)
        most = max(_FIRST * plan.quota, pairs * max(floor, lowest) * windows) + pairs * plan.batch
        if client.sent - before > most:
            self._wrong("burst", f"{plan.name} got {client.sent - before} bytes in its first second, above {most:.0f}")

    # ---- helpers ----

    def _limit(self, broker: MortalBroker, client: Client) -> float:
        """Returns a client's limit in bytes/s; the client may get other tags soon."""
        slowed = client.plan.quota * broker.slowed.value if self._by_topics else 0.0
        return max(broker.limit(client), slowed)

    def _of(self, broker: MortalBroker) -> list[Client]:
        return [client for client in self._world.clients if client.plan.home == broker.index]

    def _disturbed(self, more: int) -> bool:
        topic = self._world.topic
        return topic is not None and self._events.now < topic.disturbed_until + more

    def _wrong(self, check: str, what: str) -> None:
        self.first.setdefault(check, Violation(check, self._events.now, what))


def violations(seed: int) -> list[Violation]:
    """Returns the violations in the scene of this seed, the first of each kind."""
    world = Cluster(scene_of_seed(seed))
    checks = Checks(world)
    world.run()
    checks.end()
    return sorted(checks.first.values(), key=lambda violation: violation.ms)


def failing(seeds: Iterable[int]) -> Iterator[str]:
    """Yields a line for each violation in these seeds, and how to reproduce it; one process per core plays them."""
    with get_context("spawn").Pool(cpu_count()) as pool:
        for lines in pool.imap(_lines, seeds, _CHUNK):
            yield from lines


def _lines(seed: int) -> list[str]:
    return [f"seed {seed}: {wrong}\n  see it again: python -m harness.loop {seed}" for wrong in violations(seed)]
