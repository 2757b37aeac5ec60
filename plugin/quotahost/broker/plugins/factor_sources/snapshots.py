"""The factor source ``snapshots`` reports each registered broker's volumes from the broker's latest snapshot.

Every broker publishes its volumes (task ``publish-volumes``) and reads the volumes of all other brokers (proposal 035,
"The data sink"). A ``Roster`` keeps the latest snapshot of each registered broker and refuses all other snapshots;
``liveness`` has the rule that makes a view from the latest snapshots.
"""

import threading
import time
from collections.abc import Iterator, Mapping

from quotahost.api import Context
from quotahost.api.broker import Shown
from quotahost.base.background import Clock
from quotahost.broker.plugins.factor_sources.budgets import Budgets, Used
from quotahost.broker.plugins.factor_sources.liveness import NO_CLUSTER_ID, UNLISTED, ExpectedBrokers, Heard, View
from quotahost.kafka.follower import Follower
from quotahost.kafka.latest_record import Arrival, ArrivalClock
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.model import ClusterVolumes
from quotahost.records.codec import Refused
from quotahost.records.snapshot import Snapshot, decode
from quotahost.records.topics import SNAPSHOTS
from quotahost.settings.broker import Settings


class Roster:
    """Takes snapshots in any order. Any thread may call.

    A snapshot's age counts from its arrival (``quotahost.kafka.latest_record``). A snapshot that has just arrived
    replaces the kept one whatever its own time is, since its broker's clock may have been set back. If the topic is
    read again, its partitions come in any order, and both its own time and Kafka's decide which of two is newer.

    The roster refuses snapshots of unregistered brokers, so its size grows only with the cluster.
    """

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self._clock = ArrivalClock(clock, wall)
        self._lock = threading.Lock()
        self._latest: dict[str, Arrival[Snapshot]] = {}
        self._expected = ExpectedBrokers(clock)

    def expects(self, broker: str) -> bool:
        return broker in (self._expected.brokers or {})

    def take(self, snapshot: Snapshot, live: bool, validity: float, written_ms: int | None = None) -> str:
        """Keep a registered broker's snapshot if it is the latest; return "", or ``late`` if it is refused.

        ``validity`` is in seconds; ``OnRecord`` explains the other arguments.
        """
        with self._lock:
            before = self._latest.get(snapshot.broker)
            if before and not _replaces(snapshot, before, live, written_ms):
                return "late"
            stamps = snapshot.captured_at, live, written_ms, snapshot.age_ms
            self._latest[snapshot.broker] = self._clock.arrival(snapshot, before, validity, *stamps)
        return ""

    def remove(self, broker: str) -> None:
        with self._lock:
            self._latest.pop(broker, None)

    def register(self, brokers: Mapping[str, bool]) -> set[str]:
        with self._lock:
            new = self._expected.register(brokers)
            self._latest = {broker: kept for broker, kept in self._latest.items() if broker in brokers}
            return new

    def view(self, but: str, settings: Settings, fault: str = "") -> View:
        """The view of all brokers but one, empty before they are listed; ``fault`` ends the sentence on a stale one."""
        validity = settings.validity.total_seconds()
        stale = f"its latest snapshot is older than validity ({validity:g} s){fault}"
        with self._lock:
            return self._expected.view(self._heard(but, validity), settings, stale)

    def latest(self, but: str) -> list[tuple[Snapshot, float, bool]]:
        """Latest snapshot and its age in s of each registered broker except one, and if the broker has served since."""
        with self._lock:
            latest, serves = self._latest.items(), self._expected.serves
            return [(kept.record, self._clock.age(kept), serves(b, kept.arrived_at)) for b, kept in latest if b != but]

    def _heard(self, but: str, validity: float) -> Iterator[Heard]:
        for broker in self._expected.brokers or ():
            kept = self._latest.get(broker)
            if kept and broker != but:
                yield Heard(broker, self._clock.age(kept) <= validity, kept.record.volumes, kept.record.offline)
            elif broker != but:
                yield Heard(broker, None)


def _replaces(snapshot: Snapshot, kept: Arrival[Snapshot], live: bool, written_ms: int | None) -> bool:
    # If one look is published again because something else has changed, the snapshot with the greater age is newer.
    one, two = [(each.captured_at, each.age_ms or 0) for each in (snapshot, kept.record)]
    if live or written_ms is None or kept.written_ms is None:
        return one != two if live else one > two
    # Either clock may have been set back, the broker's or that of the topic's leader. What arrived live is the latest
    # unless both clocks name a later one. Of those that were in the topic before, the later one comes second.
    return (all if kept.live else any)((one > two, written_ms > kept.written_ms))


class Snapshots:
    """Reads the whole topic as soon as the cluster has listed its brokers, and then follows it.

    This broker's own volumes come from its disks and not from the topic. So they are known from the first request on,
    even if the topic can't be read.
    """

    def __init__(
        self, context: Context, wall: Clock = time.time, clock: Clock = time.monotonic,
        budgets: Budgets | None = None,
    ) -> None:  # fmt: skip
        """Start to ask for the brokers. A standby gets the ``budgets`` of the source that it stands by for."""
        self._context, self._node = context, str(context.node_id)
        self._clock, self._roster = clock, Roster(clock, wall)
        self._shown = Shown(context.metrics, "Snapshot")
        context.closing.callback(self._shown.show, {})
        self._show_at = 0.0
        self._disks = context.disks
        self._follower: Follower | None = None
        if budgets is None:  # if this is a standby, the other source still shows the brokers
            context.closing.callback(context.metrics.forget, "Brokers", "")
        self._budgets = budgets or Budgets(context, clock)
        self._registered_brokers = RegisteredBrokers(context, self._register)
        self._follow()

    def _follow(self) -> None:
        """Start to read when the registered brokers and the cluster's id are known, which decide what is refused."""
        if self._follower is None and self._registered_brokers.answered and self._disks.cluster_id:
            topic = self._context.settings.named(SNAPSHOTS)
            self._follower = Follower(self._context, topic, self.record, self._silence)

    def _register(self, brokers: Mapping[str, bool]) -> None:
        # A snapshot that came before its broker was registered was refused, and a fenced broker publishes no other.
        if self._roster.register(brokers) and self._follower:
            self._follower.read_again()

    # ---- the follower's thread ----

    def _silence(self) -> float:
        """Seconds without a record after which the topic is read again; every broker publishes once a period."""
        return 3 * self._context.settings.snapshots_period.total_seconds() + 10

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        # A key may have any bytes. A name that no broker has adds and removes nothing.
        broker = (key or b"").decode(errors="replace")
        if value is None:
            # If the topic is read again, the kept snapshot may have come after this tombstone.
            if live or not (self._follower and self._follower.has_read):
                self._roster.remove(broker)
            return
        reason = "stranger"
        # The key is checked before the value is decoded: a flood of invented brokers must cost almost nothing.
        if self._roster.expects(broker):
            try:
                snapshot, reason = decode(key, value), "cluster"
            except Refused:
                if live:
                    raise
                return
            # A snapshot names no cluster if its broker doesn't know the cluster's id yet.
            if snapshot.cluster in ("", self._disks.cluster_id):
                validity = self._context.settings.validity.total_seconds()
                reason = self._roster.take(snapshot, live, validity, written_ms)
        # When the topic is read again, most of its snapshots are late, and refused ones have been counted before.
        if reason and live:
            self._context.metrics.count("Refused", reason, "Records")

    # ---- the host thread ----

    def read(self, answers: bool = True) -> ClusterVolumes:
        """Report the volumes. A standby whose ``answers`` is False gives no budgets and shows no numbers of brokers."""
        self._follow()
        fault = self._follower.connection.fault if self._follower else ""
        view, own = self._roster.view(self._node, self._context.settings, fault), self._disks.known()
        missing = UNLISTED if self._disks.cluster_id else NO_CLUSTER_ID
        waits_for = self._follower.waits_for if self._follower else missing
        if waits_for:  # which brokers are silent is not known before the topic is read
            view = View(view.volumes)
        self._show(view, answers)
        return ClusterVolumes(
            (*own.volumes, *view.volumes), (*own.unknown, *view.unknown),
            waits_for or view.waiting or own.waiting,
            self._budgets.volumes(None if waits_for else self._of_budgets()) if answers else None,
        )  # fmt: skip

    def _of_budgets(self) -> list[Used]:
        """The bytes that this broker and all others take of the budgets."""
        # A silent broker's last bytes still count, even if its volumes don't, because its replicas are still there.
        others = [(snapshot.budgets or (), serves) for snapshot, _, serves in self._roster.latest(self._node)]
        own = [(name, part.used) for name, part in (self._disks.budgets.parts or {}).items()]
        return [(own, True), *others]

    def _show(self, view: View, answers: bool) -> None:
        """Show the age of each snapshot, and the numbers of brokers that are stale and missing, once a second."""
        now = self._clock()
        if now < self._show_at:
            return
        self._show_at = now + 1
        # All ages are replaced together, so that no age of an unregistered broker stays in the metrics for ever.
        self._shown.show({each.broker: {"Age": age} for each, age, _ in self._roster.latest(self._node)})
        if answers:
            view.show(self._context.metrics)
