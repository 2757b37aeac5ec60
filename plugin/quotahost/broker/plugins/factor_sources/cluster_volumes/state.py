"""Turns the cluster's record into one broker's view: the volumes that matter to it, and what is unknown.

The record is the same for all brokers. This module adds what this broker knows better: which brokers are registered,
and which of them are fenced (``expected`` has the rule), which disks are its own, and for how long something has been
unknown. ``ClusterVolumesSource`` asks at each read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from quotahost.broker.plugins.factor_sources.expected import ExpectedBrokers, Newest, Patience, Standing
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.text import printable

_HIDDEN: Final = ""  # the key of the gap that is about no broker in particular


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster without this broker's own disks."""

    volumes: tuple[Volume, ...] = ()
    unknown: tuple[str, ...] = ()  # a sentence for each thing that is unknown
    waiting: str = ""  # what is waited for since this broker started, "" for nothing
    complete: bool = True  # False while a broker is missing that is still waited for, and so isn't unknown yet
    stale: int = 0  # other brokers in service whose newest snapshot is older than validity
    missing: int = 0  # other brokers in service without a snapshot
    last_known: int = 0  # other brokers whose last known volumes count


@dataclass(frozen=True, slots=True)
class _Gap:
    """Something that the record doesn't know."""

    text: str
    standing: Standing
    newest: Newest = Newest.FRESH
    brokers: int = 1  # how many the gap is about


class ClusterState:
    """Holds which brokers are registered, since when each gap has been there, and the last complete view.

    Brokers that aren't registered are ignored, and so is how many entries a truncated list of the record omits. The
    record also says how many brokers in service report; if more are in service than report or are listed, the others
    are unknown.
    """

    def __init__(self, own: str, clock: Callable[[], float]) -> None:
        """``own`` is this broker's id; ``clock`` monotonic, in seconds."""
        self._own, self._clock = own, clock
        self._expected = ExpectedBrokers(clock)
        self._since: dict[str, float] = {}
        self._complete = ClusterView()

    def register(self, brokers: Mapping[str, bool]) -> None:
        """These are the registered brokers now, and whether each is fenced. Any thread may call."""
        self._expected.register(brokers)

    def view(self, record: ClusterRecord | None, patience: Patience) -> ClusterView:
        """The view of the newest record, empty without one."""
        if record is None:
            return ClusterView()
        registered = self._expected.brokers
        if registered is None:
            # Who is missing is not known yet; a volume that is known must not wait for that.
            return ClusterView(tuple(v for v in record.volumes if v.broker != self._own), complete=False)
        silent = _silent(record, patience.strict)
        self._remember(silent.keys() & registered.keys())
        others = registered.keys() - {self._own}
        gaps = {broker: self._gap(broker, silent[broker], patience) for broker in silent if broker in others}
        found = [*gaps.values(), *_offline(record, others), *self._hidden(record, silent, patience)]
        unknown = [gap for gap in found if gap.standing is Standing.UNKNOWN]
        awaited = [gap for gap in found if gap.standing is Standing.AWAITED]
        problems = [*unknown, *awaited]
        counted = {broker for broker, gap in gaps.items() if gap.standing in (Standing.COUNTS, Standing.AWAITED)}
        view = ClusterView(
            (*_volumes(record, others), *_last_known(record, counted)),
            tuple(gap.text for gap in unknown),
            next((gap.text for gap in awaited if gap.newest is Newest.STALE), ""),
            all(gap.newest is Newest.STALE for gap in awaited),
            sum(gap.newest is Newest.STALE for gap in problems),
            sum(gap.brokers for gap in problems if gap.newest is Newest.NONE),
            sum(gap.standing is Standing.COUNTS for gap in gaps.values()),
        )
        return self._completed(view)

    def _remember(self, keys: set[str]) -> None:
        """Keep since when each gap has been there; one that has closed is forgotten, and waited for again later."""
        now, hidden = self._clock(), self._since.get(_HIDDEN)
        self._since = {key: self._since.get(key, now) for key in keys}
        if hidden is not None:
            self._since[_HIDDEN] = hidden

    def _gap(self, broker: str, newest: Newest, patience: Patience) -> _Gap:
        standing = self._expected.standing(broker, newest, patience, self._since[broker])
        what = "its newest snapshot is stale" if newest is Newest.STALE else "no snapshot"
        return _Gap(f"broker {printable(broker)}: {what}", standing, newest)

    def _hidden(self, record: ClusterRecord, silent: Mapping[str, Newest], patience: Patience) -> Iterator[_Gap]:
        """Brokers that are in service, and of which the record says nothing: it names no healthy broker.

        So its size doesn't grow with the cluster, and only numbers can be compared. Brokers that aren't in service are
        in none of them, so that none can stand for one that should report.
        """
        in_service = self._expected.in_service()
        hidden = len(in_service) - record.reporting - sum(broker in silent for broker in in_service)
        if hidden <= 0:
            self._since.pop(_HIDDEN, None)
            return
        waited = self._clock() - self._since.setdefault(_HIDDEN, self._clock())
        standing = Standing.AWAITED if waited <= patience.grace else Standing.UNKNOWN
        yield _Gap(f"{hidden} brokers run, of which the pipeline has no snapshot", standing, Newest.NONE, hidden)

    def _completed(self, view: ClusterView) -> ClusterView:
        """While brokers are left out of which a snapshot is still awaited, their last volumes hold."""
        if view.complete:
            self._complete = view
            return view
        # A new pipeline has not read all snapshots yet: full disks of the brokers that it lacks must not be forgotten.
        listed = {(volume.broker, volume.name) for volume in view.volumes}
        last = (v for v in self._complete.volumes if (v.broker, v.name) not in listed)
        return replace(view, volumes=(*view.volumes, *last))


def _silent(record: ClusterRecord, strict: bool) -> dict[str, Newest]:
    """The brokers without a fresh snapshot that the record names.

    Of a broker that has been silent for longer than the pipeline lists it, the record has the volumes alone. In the
    strict form such a broker is ignored, as a broker that has just started can't know for how long it was silent.
    """
    whole = len(record.stale_brokers) >= record.stale
    of_volumes = () if strict and whole else (filling.volume.broker for filling in record.silent)
    stale = dict.fromkeys((*record.stale_brokers, *of_volumes), Newest.STALE)
    return dict.fromkeys(record.missing_brokers, Newest.NONE) | stale


def _volumes(record: ClusterRecord, others: set[str]) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    for volume in listed:
        # In a truncated list a volume of this broker or a stranger stays: it may have taken the place of others that
        # are not fuller, and so it stands for them.
        if not whole or volume.broker in others:
            yield volume


def _last_known(record: ClusterRecord, counted: set[str]) -> Iterator[Volume]:
    """What silent brokers last reported, as far as it counts: that of fenced brokers, and of those just back."""
    return (filling.volume for filling in record.silent if filling.volume.broker in counted)


def _offline(record: ClusterRecord, others: set[str]) -> Iterator[_Gap]:
    for each in record.offline_dirs:
        if each.broker in others:
            # Not awaited: a directory is listed only because its broker has reported it as offline.
            text = f"broker {printable(each.broker)}, log dir {printable(each.log_dir)}"
            yield _Gap(text, Standing.UNKNOWN)
