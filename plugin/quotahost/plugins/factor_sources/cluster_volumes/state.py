"""Turns the cluster's record into one broker's view: the volumes that matter to it, and what is unknown.

The record is the same for all brokers. This module adds what this broker knows better: which brokers are registered,
which disks are its own, and for how long something has been unknown. ``ClusterVolumesSource`` asks at each read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.text import printable

_Brokers = Mapping[str, bool]
"""Brokers by id, and whether each is fenced."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster without this broker's own disks."""

    volumes: tuple[Volume, ...] = ()
    unknown: tuple[str, ...] = ()  # a sentence for each thing that is unknown
    complete: bool = True  # False while a broker is missing that is still waited for, and so isn't unknown yet
    stale: int = 0  # other brokers whose newest snapshot is older than validity
    missing: int = 0  # other brokers without a snapshot


@dataclass(frozen=True, slots=True)
class _Gap:
    """Something that the record doesn't know."""

    key: str  # identifies the gap from record to record, in which the text may change
    text: str
    awaited: bool = False  # waited for, for startup.grace, before it is unknown
    fenced: bool = False  # the gap is about a fenced broker, and is ignored after snapshots.expiry
    brokers: int = 1  # how many the gap is about


class ClusterState:
    """Holds which brokers are registered, since when each gap has been there, and the last complete view.

    Brokers that aren't registered are ignored. If the record truncates a list, the omitted entries are unknown.
    """

    def __init__(self, own: str, clock: Callable[[], float]) -> None:
        """``own`` is this broker's id; ``clock`` monotonic, in seconds."""
        self._own, self._clock = own, clock
        self._registered: _Brokers | None = None
        self._since: dict[str, float] = {}
        self._complete = ClusterView()

    def register(self, brokers: _Brokers) -> None:
        """These are the registered brokers now, and whether each is fenced. Any thread may call."""
        # Replaced as a whole, and read once in view(), so it needs no lock.
        self._registered = dict(brokers)

    def view(self, record: ClusterRecord | None, grace: float, expiry: float) -> ClusterView:
        """The view of the newest record, empty without one; ``startup.grace``, ``snapshots.expiry`` in seconds."""
        if record is None:
            return ClusterView()
        registered, now = self._registered, self._clock()
        expected = _named(record) if registered is None else registered
        others = {broker: fenced for broker, fenced in expected.items() if broker != self._own}
        stale, missing = list(_stale(record, others)), list(_missing(record, others))
        gaps = [*stale, *missing, *_offline(record, others), *_strangers(record, registered)]
        # A gap that has closed is forgotten; if it comes again, it is waited for again.
        self._since = {gap.key: self._since.get(gap.key, now) for gap in gaps}
        # A broker that was shut down for good stays fenced until somebody unregisters it.
        expired = {gap.key for gap in gaps if gap.fenced and now - self._since[gap.key] > expiry}
        awaited = {gap.key for gap in gaps if gap.awaited and now - self._since[gap.key] <= grace} - expired
        view = ClusterView(
            tuple(_volumes(record, others)),
            tuple(gap.text for gap in gaps if gap.key not in expired | awaited),
            not awaited,
            sum(gap.brokers for gap in stale if gap.key not in expired),
            sum(gap.brokers for gap in missing if gap.key not in expired),
        )
        return self._completed(view)

    def _completed(self, view: ClusterView) -> ClusterView:
        """While brokers are left out of which a snapshot is still awaited, their last volumes hold."""
        if view.complete:
            self._complete = view
            return view
        # A new pipeline has not read all snapshots yet: full disks of the brokers that it lacks must not be forgotten.
        listed = {(volume.broker, volume.name) for volume in view.volumes}
        last = (v for v in self._complete.volumes if (v.broker, v.name) not in listed)
        return replace(view, volumes=(*view.volumes, *last))


def _named(record: ClusterRecord) -> _Brokers:
    """All brokers that the record names, which are expected until it is known which are registered."""
    of_volumes = (volume.broker for volume in record.volumes)
    of_dirs = (each.broker for each in record.offline_dirs)
    return dict.fromkeys((*of_volumes, *of_dirs, *record.stale_brokers, *record.missing_brokers), False)


def _volumes(record: ClusterRecord, others: _Brokers) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    for volume in listed:
        # In a truncated list a volume of this broker or a stranger stays: it may have taken the place of others that
        # are not fuller, and so it stands for them.
        if not whole or volume.broker in others:
            yield volume


def _stale(record: ClusterRecord, others: _Brokers) -> Iterator[_Gap]:
    for broker in record.stale_brokers:
        if broker in others:
            yield _Gap(
                f"stale {broker}", f"broker {printable(broker)}: its newest snapshot is stale", fenced=others[broker]
            )
    if (more := record.stale - len(record.stale_brokers)) > 0:
        yield _Gap("more stale", f"{more} more brokers with stale snapshots", brokers=more)


def _missing(record: ClusterRecord, others: _Brokers) -> Iterator[_Gap]:
    for broker in record.missing_brokers:
        if broker in others:
            text = f"broker {printable(broker)}: no snapshot"
            yield _Gap(f"missing {broker}", text, awaited=True, fenced=others[broker])
    if (more := record.missing - len(record.missing_brokers)) > 0:
        yield _Gap("more missing", f"{more} more brokers without a snapshot", awaited=True, brokers=more)


def _offline(record: ClusterRecord, others: _Brokers) -> Iterator[_Gap]:
    for each in record.offline_dirs:
        if each.broker in others:
            text = f"broker {printable(each.broker)}, log dir {printable(each.log_dir)}"
            # Not awaited: a directory is listed only because its broker has reported it as offline.
            yield _Gap(text, text)
    if (more := record.offline - len(record.offline_dirs)) > 0:
        yield _Gap("more offline", f"{more} more log dirs that are offline")


def _strangers(record: ClusterRecord, registered: _Brokers | None) -> Iterator[_Gap]:
    """Brokers that are in service, and of which the pipeline doesn't know."""
    in_service = sum(1 for fenced in (registered or {}).values() if not fenced)
    # The record names no healthy broker, so that its size doesn't grow with the cluster; only numbers can be compared.
    known = record.reporting + record.stale + record.missing
    if in_service > known:
        text = f"{in_service} brokers run, but the pipeline knows only {known}"
        yield _Gap("strangers", text, awaited=True)
