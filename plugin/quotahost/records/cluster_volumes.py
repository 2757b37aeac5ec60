"""What the pipeline knows of one cluster at one time, summed up so that its size doesn't grow with the cluster.

A field without a value may be null or left out, as Spark leaves it out, and ``{}`` is no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Final, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import LimitType, Volume
from quotahost.model.volumes import byte_limits
from quotahost.records.budgets import MAX_BUDGETS, BudgetName
from quotahost.records.codec import IS_KEY, As, Codec, Needed, NullIs, Record, Versioned, Whole
from quotahost.records.fields import Long, Name, Number, Time, Topics, VolumeJson

MAX_BYTES: Final = 1024 * 1024  # Kafka's own default limit of a record
MAX_LISTED: Final = 64  # of volumes that are the fullest of their kind, and of the record's other lists
MAX_WORST: Final = 16  # volumes by limit type


@dataclass(frozen=True, slots=True)
class VolumeTrend:
    """A volume with its published limits, and how it fills: bytes/s, below 0 if it empties; None if unknown."""

    volume: Volume
    fill_rate: float | None = None
    seconds_to_full: float | None = None


@dataclass(frozen=True, slots=True)
class OfflineDir(Record):
    """A log directory of a broker that is offline or can't be read."""

    broker: Annotated[Name, Field(alias="brokerId")]
    log_dir: Name


# ---- JSON ------------------------------------------------------------------------------------------

_OF_VOLUME: Final = ("broker", "name", "capacity", "consumed", "soft", "hard")
_RATES: Final = ("fill_rate", "seconds_to_full")


class VolumeTrendJson(VolumeJson):
    """A VolumeTrend: one flat object for the volume, its limits and its rates."""

    broker: Annotated[Name, Field(alias="brokerId")]
    fill_rate: NotRequired[Annotated[Number | None, Field(alias="bytesPerSecond")]]
    seconds_to_full: NotRequired[Number | None]


def _trend(form: Any, _: object) -> VolumeTrend:
    rates = [form.pop(name, None) for name in _RATES]
    return VolumeTrend(Volume(**form), *rates)


def _trend_json(trend: VolumeTrend) -> dict[str, Any]:
    of_volume = {name: getattr(trend.volume, name) for name in _OF_VOLUME}
    return of_volume | {name: getattr(trend, name) for name in _RATES}


VolumeTrends = tuple[Annotated[VolumeTrend, As(VolumeTrendJson, _trend, _trend_json)], ...]
Worst = Mapping[LimitType, tuple[VolumeTrend, ...]]
_WorstList = Annotated[VolumeTrends, Field(max_length=MAX_WORST), NullIs(())]
#: By limit type; other types are ignored. Its configuration is its own, since its names are no camelCase.
_WorstJson: Any = TypedDict("_WorstJson", {kind.value: NotRequired[_WorstList] for kind in LimitType})  # type: ignore[misc]
with_config(ConfigDict(strict=True))(_WorstJson)


def _worst(by_type: Mapping[str, Any] | None, _: object) -> Worst:
    return {kind: (by_type or {}).get(kind, ()) for kind in LimitType}


def _worst_json(worst: Worst) -> dict[str, Any]:
    return {kind.value: worst.get(kind, ()) for kind in LimitType}


# A sum over no broker is null.
Count = Annotated[Long, NullIs(0)]
Sum = Annotated[Whole, Field(ge=0), NullIs(0)]  # of any size: 10,000 brokers may have more than 2**63 bytes
Ids = Annotated[tuple[Name, ...], Field(max_length=MAX_LISTED), NullIs(())]
Listed = Annotated[VolumeTrends, Field(max_length=MAX_LISTED)]


@dataclass(frozen=True, slots=True)
class ClusterRecord(Versioned):
    """The newest snapshots of a cluster's brokers, summed up."""

    cluster: Annotated[Name, Field(alias="clusterId", min_length=1), IS_KEY]  # the cluster's id
    run: Long  # when the pipeline was launched, in ms since 1970. A record with a larger (run, sequence) is newer
    sequence: Long  # the number of the record in its run
    computed_at: Time  # when the pipeline made the record
    newest_snapshot_at: Time | None = None  # when the newest snapshot in it was captured; None if there is none
    #: How many brokers have a fresh snapshot; of the pipeline's own cluster those in service only, so that a reader can
    #: compare it with how many should report.
    reporting: Needed[Long] = 0
    stale: Needed[Long] = 0  # how many brokers had a snapshot before and have no fresh one now
    missing: Needed[Long] = 0  # how many registered brokers never had a snapshot
    #: Ids of stale brokers, the first MAX_LISTED of them, those in service before the others: the pipeline doesn't know
    #: whether a broker out of service is registered, its readers do.
    stale_brokers: Ids = ()
    missing_brokers: Ids = ()  # ids of missing brokers, the first MAX_LISTED of them
    offline: Needed[Count] = 0  # how many log directories of brokers in service are offline
    #: The first MAX_LISTED of these.
    offline_dirs: Annotated[
        tuple[OfflineDir, ...], Field(alias="offlineLogDirs", max_length=MAX_LISTED), NullIs(())
    ] = ()
    volume_count: Needed[Count] = 0  # how many volumes the reporting brokers have
    capacity: Sum = 0  # bytes of these volumes together
    consumed: Sum = 0  # bytes consumed of these volumes together
    #: The smallest factor that the published limits yield; None where no limits are published.
    smallest_factor: Annotated[float, Field(ge=0, le=1)] | None = None
    #: For each kind of volumes (capacity, soft limit, hard limit) the one that consumes most. All policies are monotone
    #: in what such volumes consume, so nothing is lost by leaving out the others. Of more than MAX_LISTED kinds it has
    #: the MAX_LISTED / 2 whose published limits yield the smallest factors; so no kind that is left out has a smaller
    #: one. The other half are the rest with the least free share, first those that lack a limit, which readers judge by
    #: their own. The order is by free share, least first.
    fullest: Needed[Listed] = ()
    #: Volumes that stale brokers had in their last snapshots, at most MAX_LISTED: of each kind the one that consumes
    #: most, then the next, and among these those with the smallest factors first. A reader counts those of fenced
    #: brokers.
    silent: Annotated[Listed, NullIs(()), Field(alias="silentVolumes")] = ()
    #: By limit type the MAX_WORST volumes nearest to such a limit, nearest first.
    worst: Annotated[Worst, As(_WorstJson | None, _worst, _worst_json)] = field(
        default_factory=lambda: dict.fromkeys(LimitType, ())
    )
    #: How many kinds there are. If they are more than ``fullest`` lists, that list is cut; 0 in records of pipelines
    #: that don't count them.
    kinds: Count = 0
    #: The topics with a replica on a volume above its published soft limit, also of silent brokers; None, which stands
    #: for all topics, if one of these volumes doesn't tell them, if they are more than 1,000, and in records of
    #: pipelines that don't collect them. The listed volumes above their published soft limits have this set as theirs.
    affected: Annotated[Topics, Field(alias="affectedTopics")] = None
    #: Of each budget of storage its name, the bytes that brokers in service take of it, and those that the other
    #: brokers last told, which readers count where the bytes of all replicas count, and not where those of leaders do.
    #: Of more than MAX_BUDGETS those are listed of which brokers in service have most. None in records of pipelines
    #: that don't sum them.
    budgets: Annotated[tuple[tuple[BudgetName, Long, Long], ...], Field(max_length=MAX_BUDGETS)] | None = None

    def __post_init__(self) -> None:
        # The dataclass is frozen, so its own constructor has no other way to set a field.
        for name in ("fullest", "silent"):
            object.__setattr__(self, name, tuple(map(self._with_topics, getattr(self, name))))
        worst = {kind: tuple(map(self._with_topics, of)) for kind, of in self.worst.items()}
        object.__setattr__(self, "worst", worst)

    def _with_topics(self, listed: VolumeTrend) -> VolumeTrend:
        """With the cluster's topics if the volume is one of those that they were collected from."""
        volume = listed.volume
        # By its published limits: of one that is above its reader's alone no topics are told.
        limits = byte_limits(volume, volume.soft, volume.hard)
        topics = self.affected if limits and limits.breaches_soft(volume.consumed) else None
        return listed if volume.topics == topics else replace(listed, volume=replace(volume, topics=topics))

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """The volumes listed, each once."""
        listed = chain(self.fullest, *self.worst.values())
        return tuple(dict.fromkeys(trend.volume for trend in listed))


# Topics that don't fit are left out, which stands for all.
CODEC: Final = Codec(ClusterRecord, MAX_BYTES, lambda record: replace(record, affected=None))
encode, decode = CODEC.encode, CODEC.decode
