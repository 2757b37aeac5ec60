"""The factor source ``cluster-volumes``: the pipeline's record; ``snapshots`` stands by where none comes.

With ``snapshots`` each of N brokers reads N snapshots; here the pipeline reads them and publishes one record for the
cluster, whose size doesn't grow with N. So that the pipeline is never the only way to be safe, the source ``snapshots``
stands by: it answers while no record comes.

``ClusterState`` turns the newest record of this broker's cluster into a ``View``: the volumes that matter to this
broker, and what is unknown. The record is the same for all brokers. This broker knows better which brokers are
registered and fenced (``liveness`` has the rule), which disks are its own, and for how long something has been unknown.

**A failover** goes like this. When no record has come for half of ``validity``, the standby is built. After
``validity`` the standby answers; until it has read enough to answer without waiting, the last record's volumes and
unknowns still hold, so that no full disk is forgotten in between. The next fresh record switches back at once, unless
it is incomplete: the first record of a new pipeline may leave out brokers of which the pipeline has not read a snapshot
yet. Then the standby goes on, and is closed after the first complete record.
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
from quotahost.settings.broker import Settings

_NAME: Final = "snapshots"  # of the standby, in logs and metrics
_SILENCE: Final = 30.0  # seconds without any record after which the topic is read again; one is due every few seconds


# ---- what follows from a record for one broker ----


class ClusterState:
    """Holds which brokers are registered, since when each gap has been there, and the volumes without any gap.

    Brokers that aren't registered are ignored, and so is how many entries a truncated list of the record omits.
    """

    def __init__(self, node: str, clock: Clock) -> None:
        self._node, self._clock = node, clock
        self._expected = ExpectedBrokers(clock)
        self._since: dict[str, float] = {}  # when a silent broker was first missed
        self._hidden_since: float | None = None
        self._complete: tuple[Volume, ...] = ()  # the volumes of the last complete view

    def register(self, brokers: Mapping[str, bool]) -> None:
        self._expected.register(brokers)

    def view(self, record: ClusterRecord | None, settings: Settings) -> View:
        if record is None:
            return View(complete=False)
        registered = self._expected.brokers
        if registered is None:
            # Who is missing is not known yet; a volume that is known must not wait for that.
            return View([v for v in record.volumes if v.broker != self._node], waiting=UNLISTED, complete=False)
        others = registered.keys() - {self._node}
        # The brokers without a fresh snapshot that the record names; None for one that has none. It lists the volumes
        # of a silent broker for as long as the broker is registered, but not for ever its name.
        stale = (*record.stale_brokers, *(trend.volume.broker for trend in record.silent))
        silent: dict[str, bool | None] = {**dict.fromkeys(record.missing_brokers), **dict.fromkeys(stale, False)}
        # Who is no longer silent is forgotten, and waited for again later.
        now = self._clock()
        self._since = {broker: self._since.get(broker, now) for broker in silent.keys() & registered.keys()}
        view = self._expected.view(self._heard(record, silent, others), settings, "its newest snapshot is stale")
        view.volumes[:0] = _volumes(record, others)
        self._add_hidden(view, record, silent, settings)
        if view.complete:
            self._complete = tuple(view.volumes)
        else:
            # A new pipeline has not read all snapshots yet: full disks that it lacks must not be forgotten.
            listed = {(volume.broker, volume.name) for volume in view.volumes}
            view.volumes += [v for v in self._complete if (v.broker, v.name) not in listed]
        return view

    def _heard(self, record: ClusterRecord, silent: Mapping[str, bool | None], others: set[str]) -> Iterator[Heard]:
        """What the record says of other brokers: it names no healthy one but for its directories."""
        last: dict[str, list[Volume]] = defaultdict(list)
        for trend in record.silent:
            last[trend.volume.broker].append(trend.volume)
        for broker in (broker for broker in silent if broker in others):
            yield Heard(broker, silent[broker], tuple(last[broker]), since=self._since[broker])
        for lost in record.offline_dirs:
            if lost.broker in others:
                # Not awaited: a directory is listed only because its broker has reported it as offline.
                yield Heard(lost.broker, True, offline=(lost.log_dir,))

    def _add_hidden(self, view: View, record: ClusterRecord, silent: Container[str], settings: Settings) -> None:
        """Add the brokers that are in service, and of which the record says nothing: it names no healthy broker.

        So its size doesn't grow with the cluster, and only numbers can be compared. Brokers that aren't in service are
        in none of them, so that none can stand for one that should report.
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
            view.unknown.append(f"{hidden} brokers run, of which the pipeline has no snapshot")


def _volumes(record: ClusterRecord, others: set[str]) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    # In a truncated list a volume of this broker or a stranger stays: it may have taken the place of others that
    # are not fuller, and so it stands for them.
    return (volume for volume in listed if not whole or volume.broker in others)


# ---- the standby, and the source ----


class Standby:
    """The source ``snapshots`` while it is needed: built when it is, read, and closed, which takes a second at most."""

    def __init__(self, context: Context, build: Callable[[Context], Snapshots]) -> None:
        self._context, self._build = context, build
        self._of_source = context
        self._source: Snapshots | None = None
        self.ready = False  # whether it has answered without waiting for anything since it was built
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
        """None where it isn't needed; ``answers`` if the standby answers now, and not the record."""
        if self._source is None:
            return None
        # The host hands a live change to its own plugins only, and the standby is none of them.
        self._of_source.settings = self._context.settings
        # Until it is ready the record's sums count, and two that took turns would look like a loss.
        answer = self._source.read(answers and self.ready)
        if not self.ready and not answer.waiting:
            self.ready, answer = True, self._source.read(answers)
        return answer


class ClusterVolumesSource:
    """Reports the volumes of the pipeline's record, and this broker's own disks as the host's monitor sees them.

    It reads the whole topic at the start and then follows it. The pipeline writes one record for each cluster, with the
    cluster's id as its key; those of other clusters are passed over.
    """

    def __init__(
        self, context: Context, wall: Clock = time.time, clock: Clock = time.monotonic,
        build: Callable[[Context], Snapshots] | None = None,
        brokers: Callable[[Context, Callable[[Mapping[str, bool]], None]], RegisteredBrokers] = RegisteredBrokers,
        follower: Callable[..., Follower] = Follower,
    ) -> None:  # fmt: skip
        """Begin to read; the last three are from Kafka, but in the simulator of the loop."""
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
        self.newest: LatestRecord[ClusterRecord] = LatestRecord(clock, wall)
        self._topic, self._absent = context.settings.cluster_volumes_topic, threading.Event()
        self._new_follower = follower
        self._follower: Follower | None = None
        self._follow()

    def _follow(self) -> None:
        """The id may be unknown until the disks have answered."""
        if self._follower is None and self._disks.cluster_id:
            self._follower = self._new_follower(
                self._context, self._topic, self.record, lambda: _SILENCE, absent=self._absent.set
            )

    def read(self) -> ClusterVolumes:
        self._follow()
        settings = self._context.settings
        validity = settings.validity.total_seconds()
        record, age = self.newest.known()
        view = self._state.view(record, settings)
        # The first record of a new pipeline may leave out brokers, and with them full disks that the standby knows.
        by_standby = self._is_silent(age, validity) or (self._by_standby and not view.complete)
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
        # Until the standby knows enough, the last record holds, so that no full disk is forgotten in between.
        view.unknown += answer.unknown
        return self._by_record(record, view, answer.waiting)

    def _is_silent(self, age: float, seconds: float) -> bool:
        """Whether no record has come for so long. While the topic is still read, the time runs from the start."""
        # Without a record the age is infinite; a topic that was not read yet may still hold a fresh one.
        return age > seconds and (not self._unread() or self._clock() - self._started > seconds)

    def _unread(self) -> str:
        """What is waited for until the topic is read, as a sentence; "" then, and where there is no topic."""
        if self._follower is None:
            return NO_CLUSTER_ID
        # Of a topic that doesn't exist nothing can be read, so the standby needn't wait for it.
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
        # Asked for once more: the topic may have been read to its end since the record was looked up.
        without = "" if record else f"topic {self._topic} holds no record of this cluster yet"
        waiting = waiting or self._unread() or without or view.waiting or own.waiting
        others = tuple(self._as_full_as_now(volume, own.volumes) for volume in view.volumes)
        # The standby may say the same sentence of the same disk.
        unknown = tuple(dict.fromkeys((*own.unknown, *view.unknown)))
        # The sums of a new pipeline that has not read all snapshots yet would let those on whose budget is used up.
        told: list[Used] | None = None
        if record and view.complete and record.budgets is not None:
            in_service = [(name, used) for name, used, _ in record.budgets]
            told = [(in_service, True), ([(name, used) for name, _, used in record.budgets], False)]
        return ClusterVolumes(own.volumes + others, unknown, waiting, self._budgets.volumes(told))

    def _as_full_as_now(self, listed: Volume, own: Iterable[Volume]) -> Volume:
        """A volume of this broker that the record lists for all of its kind, with what its disk holds now.

        The record is older than the look at the disk, and a volume that is there twice, full and not full, would be
        out of its PAUSE at once (``quotahost.broker.host.volume_evaluation``).
        """
        limits_of = self._context.settings.static.storage.limits_of
        for volume in own:
            kind = volume.broker, volume.name, volume.capacity, *limits_of(volume)
            if kind == (listed.broker, listed.name, listed.capacity, listed.soft, listed.hard):
                return replace(listed, consumed=max(listed.consumed, volume.consumed))
        return listed

    def _show(self, record: ClusterRecord | None, age: float, view: View) -> None:
        """Show who answers and the record, and if that answers, the numbers of brokers of its view."""
        metrics = self._context.metrics
        for name, answers in ((self._context.name, not self._by_standby), (_NAME, self._by_standby)):
            metrics.gauge("FactorSource", name, "Answers", float(answers))
            metrics.count("FactorSource", name, "Switches", 0)
        # After a tombstone the record's numbers say nothing any more.
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
            self.newest.remove()
            return
        record, validity = decode(key, value), self._context.settings.validity.total_seconds()
        # A pipeline that has lost its place reads all snapshots again, and meanwhile publishes how the disks once were.
        # Judged before LatestRecord sees it: kept, it would count as fresh by its arrival.
        newest = record.newest_snapshot_at if record.reporting else None
        if newest is None or (record.computed_at - newest).total_seconds() <= validity:
            self.newest.take(record, live, validity, written_ms)
        elif live:
            text = f"the pipeline is behind: the newest snapshot in its records is older than validity ({validity:g} s)"
            raise Refused("behind", text)
