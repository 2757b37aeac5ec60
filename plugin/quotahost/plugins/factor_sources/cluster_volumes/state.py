"""From a cluster's record to its volumes and what is unknown of them, as one of its brokers sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.text import printable


@dataclass(frozen=True, slots=True)
class Told:
    """What a record tells: volumes, what is unknown, and how many of the other brokers are stale and missing.

    ``patient`` while something is unknown that isn't missed yet.
    """

    volumes: tuple[Volume, ...]
    unknown: tuple[str, ...]
    patient: bool
    stale: int
    missing: int


@dataclass(frozen=True, slots=True)
class _Lack:
    """Something unknown: the sentence, whether it is waited for at first, whether its broker is stopped.

    ``key`` is by what it is known again, "" for the sentence; ``number`` is how many brokers it is about.
    """

    text: str
    awaited: bool = False
    stopped: bool = False
    key: str = ""
    number: int = 1

    @property
    def id(self) -> str:
        """By what it is known again."""
        return self.key or self.text


class ClusterState:
    """Applies to records what this broker knows: its own id, who is registered, how long something has been unknown.

    This broker's own part is left to whoever looks at its disks. Unregistered brokers don't count, and one that is
    stopped and was silent for ``snapshots.expiry`` counts no more. What a list of the record was too short for counts
    as unknown.
    """

    def __init__(self, own: str, clock: Callable[[], float]) -> None:
        """``own`` is this broker's id; ``clock`` monotonic, in seconds."""
        self._own, self._clock = own, clock
        self._registered: Mapping[str, bool] | None = None
        self._since: dict[str, float] = {}

    def register(self, brokers: Mapping[str, bool]) -> None:
        """The brokers of the cluster, and whether each is fenced (stopped), are these now; any thread may call."""
        self._registered = dict(brokers)

    def of(self, record: ClusterRecord, grace: float, expiry: float) -> Told:
        """What it tells now; ``startup.grace`` and ``snapshots.expiry`` in seconds."""
        registered, now = self._registered, self._clock()
        parts = (_stale(record, self._counts), _missing(record, self._counts), _offline(record, self._counts))
        stale, missing, *rest = map(list, (*parts, _strangers(record, registered)))
        everything = [*stale, *missing, *(lack for part in rest for lack in part)]
        self._since = {lack.id: self._since.get(lack.id, now) for lack in everything}

        def holds(lack: _Lack) -> bool:
            return not (lack.stopped and now - self._since[lack.id] > expiry)

        def is_awaited(lack: _Lack) -> bool:
            return lack.awaited and now - self._since[lack.id] <= grace

        lacks = [lack for lack in everything if holds(lack)]
        return Told(
            tuple(self._volumes(record)),
            tuple(lack.text for lack in lacks if not is_awaited(lack)),
            any(map(is_awaited, lacks)),
            sum(lack.number for lack in stale if holds(lack)),
            sum(lack.number for lack in missing if holds(lack)),
        )

    def _counts(self, broker: str) -> bool | None:
        """None for a broker that doesn't count here; else whether it is stopped."""
        if broker == self._own:
            return None
        return False if self._registered is None else self._registered.get(broker)

    def _volumes(self, record: ClusterRecord) -> Iterator[Volume]:
        listed = record.volumes
        whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
        for volume in listed:
            # One that doesn't count itself may have taken the place of others that are not fuller: it stands for them.
            if not whole or self._counts(volume.broker) is not None:
                yield volume


_Counts = Callable[[str], bool | None]


def _stale(record: ClusterRecord, counts: _Counts) -> Iterator[_Lack]:
    for broker in record.stale_brokers:
        if (stopped := counts(broker)) is not None:
            yield _Lack(f"broker {printable(broker)}: its newest snapshot is stale", stopped=stopped)
    if (more := record.stale - len(record.stale_brokers)) > 0:
        yield _Lack(f"{more} more brokers with stale snapshots", number=more)


def _missing(record: ClusterRecord, counts: _Counts) -> Iterator[_Lack]:
    for broker in record.missing_brokers:
        if (stopped := counts(broker)) is not None:
            yield _Lack(f"broker {printable(broker)}: no snapshot", awaited=True, stopped=stopped)
    if (more := record.missing - len(record.missing_brokers)) > 0:
        yield _Lack(f"{more} more brokers without a snapshot", awaited=True, key="missing", number=more)


def _offline(record: ClusterRecord, counts: _Counts) -> Iterator[_Lack]:
    for each in record.offline_dirs:
        if counts(each.broker) is not None:
            yield _Lack(f"broker {printable(each.broker)}, log dir {printable(each.log_dir)}")
    if (more := record.offline - len(record.offline_dirs)) > 0:
        yield _Lack(f"{more} more log dirs that are offline")


def _strangers(record: ClusterRecord, registered: Mapping[str, bool] | None) -> Iterator[_Lack]:
    running = sum(1 for fenced in (registered or {}).values() if not fenced)
    known = record.reporting + record.stale + record.missing
    if running > known:
        text = f"{running} brokers run, but the pipeline knows only {known}"
        yield _Lack(text, awaited=True, key="strangers")
