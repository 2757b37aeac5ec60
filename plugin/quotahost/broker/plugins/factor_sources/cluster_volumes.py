"""The factor source ``cluster-volumes`` reads the pipeline's record; if no record arrives, ``snapshots`` stands by.

With ``snapshots``, each of N brokers reads N snapshots. With this source, the pipeline reads them and publishes one
record, whose size doesn't grow with N. If the pipeline is down, the standby ``snapshots`` protects the disks.

``ClusterState`` turns the latest record of this broker's cluster into a ``View``: the volumes that matter to this
broker, and what is unknown. The record is the same for all brokers. This broker itself knows better which brokers are
registered and fenced (``liveness`` has the rule), which disks it has, and how long something has been unknown.

**A failover** has these steps:

1. If no record has arrived for half of ``validity``, this source builds the standby.
2. After ``validity`` the standby answers. Until it has read enough to answer without waiting, the volumes and unknowns
   of the last record still count, so that no full disk is forgotten in between.
3. At the next fresh and complete record this source answers again, and closes the standby. A new pipeline's first
   record may be incomplete: it lacks the brokers whose snapshots the pipeline has not read yet. A record in which no
   broker reports doesn't count either: the topic of snapshots may have been made anew.
"""

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.broker.plugins.factor_sources.budgets import Budgets, Used
from quotahost.broker.plugins.factor_sources.liveness import NO_CLUSTER_ID, UNLISTED, ExpectedBrokers, Heard, View
from quotahost.broker.plugins.factor_sources.snapshots import Snapshots
from quotahost.kafka.follower import Follower
from quotahost.kafka.latest_record import LatestRecord
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.model import ClusterVolumes, Volume
from quotahost.records.cluster_volumes import ClusterRecord, decode
from quotahost.records.codec import Refused
from quotahost.records.topics import CLUSTER_VOLUMES
from quotahost.settings.broker import Settings

_NAME: Final = "snapshots"  # the name of the standby in logs and metrics
_SILENCE: Final = 30.0  # seconds without a record after which the topic is read again; one is due every few seconds


# ---- from a record to the view of one broker ----


class ClusterState:
    """Keeps the registered brokers, the start of each gap in the records, and the volumes of the last complete view.

    It ignores brokers that aren't registered, and the number of entries that a truncated list of the record omits.
    """

    def __init__(self, node: str, clock: Clock) -> None:
        self._node, self._clock = node, clock
        self._expected = ExpectedBrokers(clock)
        self._since: dict[str, float] = {}  # by silent broker, the time when it was first missed
        self._hidden_since: float | None = None
        self._complete: tuple[Volume, ...] = ()  # the volumes of the last complete view

    def register(self, brokers: Mapping[str, bool]) -> None:
        self._expected.register(brokers)

    def view(self, record: ClusterRecord | None, settings: Settings) -> View:
        if record is None:
            return View(complete=False)
        registered = self._expected.brokers
        if registered is None:
            # The missing brokers are not known yet, but the known volumes must count without waiting for that.
            return View([v for v in record.volumes if v.broker != self._node], waiting=UNLISTED, complete=False)
        others = registered.keys() - {self._node}
        # The brokers that the record names as without a fresh snapshot; the value is None if there is no snapshot. The
        # record lists a silent broker's volumes for as long as the broker is registered, but its name not for ever.
        stale = (*record.stale_brokers, *(trend.volume.broker for trend in record.silent))
        silent: dict[str, bool | None] = {**dict.fromkeys(record.missing_brokers), **dict.fromkeys(stale, False)}
        # A broker that is no longer silent is forgotten. If it falls silent again, it is waited for again.
        now = self._clock()
        self._since = {broker: self._since.get(broker, now) for broker in silent.keys() & registered.keys()}
        view = self._expected.view(self._heard(record, silent, others), settings, "its latest snapshot is stale")
        view.volumes[:0] = _volumes(record, others)
        self._add_hidden(view, record, silent, settings)
        if view.complete:
            self._complete = tuple(view.volumes)
        else:
            # A new pipeline has not read all snapshots yet. The full disks that its record lacks must still count.
            listed = {(volume.broker, volume.name) for volume in view.volumes}
            view.volumes += [v for v in self._complete if (v.broker, v.name) not in listed]
        return view

    def _heard(self, record: ClusterRecord, silent: Mapping[str, bool | None], others: set[str]) -> Iterator[Heard]:
        """Yield what the record says of other brokers; it names a healthy broker only for its offline directories."""
        last: dict[str, list[Volume]] = defaultdict(list)
        for trend in record.silent:
            last[trend.volume.broker].append(trend.volume)
        for broker in (broker for broker in silent if broker in others):
            yield Heard(broker, silent[broker], tuple(last[broker]), since=self._since[broker])
        for lost in record.offline_dirs:
            if lost.broker in others:
                # There is no wait: the record lists a directory only if the broker has reported it as offline.
                yield Heard(lost.broker, True, offline=(lost.log_dir,))

    def _add_hidden(self, view: View, record: ClusterRecord, silent: Container[str], settings: Settings) -> None:
        """Add the number of brokers in service for which the pipeline has no snapshot.

        The record names no healthy broker, so that its size doesn't grow with the cluster. So only numbers can be
        compared. They leave out brokers that aren't in service, which could hide a broker that should report.
        """
        in_service, now = self._expected.in_service_since, self._clock()
        hidden = len(in_service) - record.reporting - sum(broker in silent for broker in in_service)
        if hidden <= 0:
            self._hidden_since = None
            return
        self._hidden_since = now if self._hidden_since is None else self._hidden_since
        view.missing += hidden
        if now - self._hidden_since <= settings.startup_grace.total_seconds():
            view.complete = False
        else:
            view.unknown.append(f"the pipeline has no snapshot of {hidden} running brokers")


def _volumes(record: ClusterRecord, others: set[str]) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    # A truncated list keeps the volumes of this broker and of unregistered brokers: such a volume may have taken the
    # place of other brokers' volumes, which are not fuller, so it represents them.
    return (volume for volume in listed if not whole or volume.broker in others)


# ---- the standby, and the source ----


class Standby:
    """Builds, reads and closes the source ``snapshots`` as needed; closing takes at most a second."""

    def __init__(self, context: Context, build: Callable[[Context], Snapshots]) -> None:
        self._context, self._build = context, build
        self._of_source = context
        self._source: Snapshots | None = None
        self.ready = False  # whether the source has answered since it was built without waiting for anything
        context.closing.callback(self.keep, False)

    def keep(self, needed: bool) -> None:
        if needed and self._source is None:
            log = logging.getLogger(f"quotahost.plugin.{_NAME}")
            self._of_source = replace(self._context, name=_NAME, section=None, log=log, closing=ExitStack())
            self._source = self._build(self._of_source)
        elif not needed and self._source is not None:
            self._source, self.ready = None, False
            self._of_source.closing.close()

    def read(self, answers: bool) -> ClusterVolumes | None:
        """The standby's answer, None if there is no standby; ``answers``: whether it counts instead of the record."""
        if self._source is None:
            return None
        # The host applies a live change only to its own plugins, and the standby is not one of them.
        self._of_source.settings = self._context.settings
        # Until the standby is ready, the record's sums of budgets count: alternating sums would look like a loss.
        answer = self._source.read(answers and self.ready)
        if not self.ready and not answer.waiting:
            self.ready, answer = True, self._source.read(answers)
        return answer


class ClusterVolumesSource:
    """Reports the volumes of the pipeline's record, and this broker's own disks as the host's monitor sees them.

    The source reads the whole topic at the start and then follows it. The pipeline writes one record for each cluster,
    with the cluster's id as the key; the source skips records of other clusters.
    """

    def __init__(
        self, context: Context, wall: Clock = time.time, clock: Clock = time.monotonic,
        build: Callable[[Context], Snapshots] | None = None,
        brokers: Callable[[Context, Callable[[Mapping[str, bool]], None]], RegisteredBrokers] = RegisteredBrokers,
        follower: Callable[..., Follower] = Follower,
    ) -> None:  # fmt: skip
        """Start to read. The last three arguments use Kafka; the simulator of the loop passes its models instead."""
        self._context, self._clock, self._started = context, clock, clock()
        shown = ("FactorSource", context.name), ("FactorSource", _NAME), ("ClusterRecord", ""), ("Brokers", "")
        for type, name in shown:
            context.closing.callback(context.metrics.forget, type, name)
        self._state = ClusterState(str(context.node_id), clock)
        self._budgets = Budgets(context, clock)
        self._standby = Standby(context, build or partial(Snapshots, wall=wall, clock=clock, budgets=self._budgets))
        self._disks = context.disks
        self._registered_brokers = brokers(context, self._state.register)
        self._by_standby = False
        self.latest: LatestRecord[ClusterRecord] = LatestRecord(clock, wall)
        self._topic, self._absent = context.settings.named(CLUSTER_VOLUMES), threading.Event()
        self._new_follower = follower
        self._follower: Follower | None = None
        self._follow()

    def _follow(self) -> None:
        """Follow the topic once the cluster id is known; it is unknown until the disks have answered."""
        if self._follower is None and self._disks.cluster_id:
            self._follower = self._new_follower(
                self._context, self._topic, self.record, lambda: _SILENCE, absent=self._absent.set
            )

    def read(self) -> ClusterVolumes:
        self._follow()
        settings = self._context.settings
        validity = settings.validity.total_seconds()
        record, age = self.latest.read()
        view = self._state.view(record, settings)
        # A new pipeline's first record may lack brokers that the standby knows; that of a topic made anew may lack all.
        heard = view.complete and record is not None and record.reporting > 0
        by_standby = self._is_silent(age, validity) or (self._by_standby and not heard)
        if by_standby != self._by_standby:
            self._switch(by_standby)
        self._show(record, age, view)
        # While the record still answers, the standby is read only so that it is ready in time.
        self._standby.keep(by_standby or self._is_silent(age, validity / 2))
        answer = self._standby.read(by_standby)
        if answer is None or not by_standby:
            return self._by_record(record, view)
        if self._standby.ready:
            return answer
        # Until the standby knows enough, the last record counts, so that no full disk is forgotten in between.
        view.unknown += answer.unknown
        return self._by_record(record, view, answer.waiting)

    def _is_silent(self, age: float, seconds: float) -> bool:
        """Whether no record has come for so long. While the topic is still read, the time counts from the start."""
        # If there is no record, the age is infinite. A topic that was not read yet may still hold a fresh record.
        return age > seconds and (not self._unread() or self._clock() - self._started > seconds)

    def _unread(self) -> str:
        """A sentence about the wait for the topic; "" once the topic was read or if it doesn't exist."""
        if self._follower is None:
            return NO_CLUSTER_ID
        # A topic that doesn't exist can't be read, so the standby doesn't wait for it.
        return "" if self._absent.is_set() else self._follower.waits_for

    def _switch(self, by_standby: bool) -> None:
        self._by_standby = by_standby
        log, settings = self._context.log, self._context.settings
        if by_standby:
            text = "no record of this cluster in %s within validity (%g s): factor source %s answers"
            log.warning(text, self._topic, settings.validity.total_seconds(), _NAME)
        else:
            log.info("factor source %s answers again", self._context.name)
        self._context.metrics.count("FactorSource", _NAME if by_standby else self._context.name, "Switches", 1)

    def _by_record(self, record: ClusterRecord | None, view: View, waiting: str = "") -> ClusterVolumes:
        own = self._disks.known()
        # _unread() is called again, because the follower may have reached the topic's end since the first call.
        without = "" if record else f"topic {self._topic} holds no record of this cluster yet"
        waiting = waiting or self._unread() or without or view.waiting or own.waiting
        others = tuple(self._as_full_as_now(volume, own.volumes) for volume in view.volumes)
        # The standby may report the same sentence for the same disk.
        unknown = tuple(dict.fromkeys((*own.unknown, *view.unknown)))
        # A new pipeline that has not read all snapshots has too small sums, and would free writers of used-up budgets.
        told: list[Used] | None = None
        if record and view.complete and record.budgets is not None:
            in_service = [(name, used) for name, used, _ in record.budgets]
            told = [(in_service, True), ([(name, used) for name, _, used in record.budgets], False)]
        return ClusterVolumes(own.volumes + others, unknown, waiting, self._budgets.volumes(told))

    def _as_full_as_now(self, listed: Volume, own: Iterable[Volume]) -> Volume:
        """Return the listed volume. If it is this broker's own, it gets the bytes that its disk holds now.

        The record lists it in place of all volumes of its kind, and is older than the look at the disk. With the volume
        listed twice, full and not full, its PAUSE would end immediately (``quotahost.broker.host.volume_evaluation``).
        """
        limits_of = self._context.settings.static.storage.limits_of
        for volume in own:
            kind = volume.broker, volume.name, volume.capacity, *limits_of(volume)
            if kind == (listed.broker, listed.name, listed.capacity, listed.soft, listed.hard):
                return replace(listed, consumed=max(listed.consumed, volume.consumed))
        return listed

    def _show(self, record: ClusterRecord | None, age: float, view: View) -> None:
        """Show which source answers, the record, and, if the record answers, the numbers of brokers in its view."""
        metrics = self._context.metrics
        for name, answers in ((self._context.name, not self._by_standby), (_NAME, self._by_standby)):
            metrics.gauge("FactorSource", name, "Answers", float(answers))
            metrics.count("FactorSource", name, "Switches", 0)
        # After a tombstone the record's numbers are no longer valid.
        if record is None or age == math.inf:
            metrics.forget("ClusterRecord", "")
        else:
            for attribute, value in (("Age", age), ("Run", record.run), ("Sequence", record.sequence)):
                metrics.gauge("ClusterRecord", "", attribute, value)
        if not self._by_standby or not self._standby.ready:
            view.show(metrics)

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        if key != self._disks.cluster_id.encode():
            return
        if value is None:
            self.latest.remove()
            return
        record, validity = decode(key, value), self._context.settings.validity.total_seconds()
        # A pipeline that has lost its position reads all snapshots again, and meanwhile publishes old states of disks.
        # LatestRecord must not get such a record, because it would count as fresh by its arrival.
        latest = record.newest_snapshot_at if record.reporting else None
        if latest is None or (record.computed_at - latest).total_seconds() <= validity:
            self.latest.take(record, live, validity, written_ms)
        elif live:
            text = f"the pipeline is behind: the latest snapshot in its records is older than validity ({validity:g} s)"
            raise Refused("behind", text)
