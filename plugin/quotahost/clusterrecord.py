"""What the pipeline knows of one cluster at one time, as a frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from quotahost.snapshot import in_utc
from quotahost.volume import LimitType, Volume


@dataclass(frozen=True, slots=True)
class Filling:
    """A volume, how fast it fills in bytes/s (below 0: it empties) and when it is full, in seconds; None if unknown."""

    volume: Volume
    bytes_per_second: float | None = None
    seconds_to_full: float | None = None


@dataclass(frozen=True, slots=True)
class OfflineDir:
    """A log directory of a broker that is offline or can't be read."""

    broker: str
    log_dir: str


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The newest snapshots of a cluster's brokers, summed up; its size doesn't grow with the cluster.

    Attributes:
        cluster: its id.
        run: when the pipeline was launched, in ms since the epoch; ``sequence`` counts its records. A record with
            a larger (run, sequence) is newer.
        computed_at: when it was made; kept in UTC.
        newest_snapshot_at: when the newest snapshot in it was taken.
        reporting: how many brokers have a fresh snapshot; ``stale`` were heard of before, ``missing`` are registered
            and never were. The lists of their ids may be cut short, the counts are not.
        offline: how many log directories are; ``offline_dirs`` may be cut short.
        volume_count: how many volumes the reporting brokers have; capacity and consumed are their sums in bytes.
        smallest_factor: that the published limits give; None where none are published.
        fullest: for each (capacity, soft limit, hard limit) the volume that consumes most. All policies are monotone
            in what such volumes consume, so nothing is lost by leaving out the others.
        worst: by limit type the volumes nearest to such a limit, worst first.

    Raises:
        ValueError: a time has no time zone or is not in UTC's range.
    """

    cluster: str
    run: int
    sequence: int
    computed_at: datetime
    newest_snapshot_at: datetime | None = None
    reporting: int = 0
    stale: int = 0
    missing: int = 0
    stale_brokers: tuple[str, ...] = ()
    missing_brokers: tuple[str, ...] = ()
    offline: int = 0
    offline_dirs: tuple[OfflineDir, ...] = ()
    volume_count: int = 0
    capacity: int = 0
    consumed: int = 0
    smallest_factor: float | None = None
    fullest: tuple[Filling, ...] = ()
    worst: Mapping[LimitType, tuple[Filling, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("computed_at", "newest_snapshot_at"):
            time = getattr(self, name)
            if time is None:
                continue
            if time.tzinfo is None:
                raise ValueError(f"{name} needs a time zone: {time}")
            object.__setattr__(self, name, in_utc(time))

    @property
    def order(self) -> tuple[int, int]:
        """By which records are compared."""
        return self.run, self.sequence

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """The volumes listed, each once."""
        return tuple(dict.fromkeys(filling.volume for filling in self._fillings()))

    def _fillings(self) -> Iterator[Filling]:
        yield from self.fullest
        for some in self.worst.values():
            yield from some
