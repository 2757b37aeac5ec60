"""The cluster record: the pipeline's summary of one cluster's snapshots, whose size doesn't grow with the cluster.

A field without a value may be null or absent, because Spark leaves it out. ``{}`` means no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Final, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this TypedDict before Python 3.12

from quotahost.model import LimitType, Volume
from quotahost.model.volumes import byte_limits
from quotahost.records.budgets import MAX_BUDGETS, BudgetName
from quotahost.records.codec import IS_KEY, As, Codec, Needed, NullIs, Record, Versioned, Whole
from quotahost.records.fields import Long, Name, Number, Time, Topics, VolumeJson

MAX_BYTES: Final = 1024 * 1024  # Kafka's own default limit of a record
MAX_LISTED: Final = 64  # entries of ``fullest``, and of each list without a limit of its own
MAX_WORST: Final = 16  # volumes of each limit type


@dataclass(frozen=True, slots=True)
class VolumeTrend:
    """A volume with its published limits and its fill rate in bytes/s, below 0 if it empties, None if unknown."""

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
    """A VolumeTrend as one flat JSON object with the volume, its limits and its rates."""

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
#: The lists by limit type; other types are ignored. It has its own configuration, since its names aren't camelCase.
_WorstJson: Any = TypedDict("_WorstJson", {kind.value: NotRequired[_WorstList] for kind in LimitType})  # type: ignore[misc]
with_config(ConfigDict(strict=True))(_WorstJson)


_BY_TYPE: Final = As(
    _WorstJson | None,
    lambda by_type, _: {kind: (by_type or {}).get(kind, ()) for kind in LimitType},
    lambda worst: {kind.value: worst.get(kind, ()) for kind in LimitType},
)

# Spark's sum over no broker is null.
Count = Annotated[Long, NullIs(0)]
Sum = Annotated[Whole, Field(ge=0), NullIs(0)]  # unbounded: 10,000 brokers may have more than 2**63 bytes
Ids = Annotated[tuple[Name, ...], Field(max_length=MAX_LISTED), NullIs(())]
Listed = Annotated[VolumeTrends, Field(max_length=MAX_LISTED)]


@dataclass(frozen=True, slots=True)
class ClusterRecord(Versioned):
    """The summary of the latest snapshots of a cluster's brokers."""

    cluster: Annotated[Name, Field(alias="clusterId", min_length=1), IS_KEY]  # the cluster's id
    run: Long  # when the pipeline was launched, in ms since 1970. A record with a larger (run, sequence) is newer
    sequence: Long  # the number of the record in its run
    computed_at: Time  # when the pipeline made the record
    newest_snapshot_at: Time | None = None  # when the latest snapshot in the record was captured; None if it has none
    #: How many brokers have a fresh snapshot. In the pipeline's own cluster only brokers in service count, so that a
    #: reader can compare this number with the number of brokers that should report.
    reporting: Needed[Long] = 0
    stale: Needed[Long] = 0  # how many brokers had a snapshot before and have no fresh one now
    missing: Needed[Long] = 0  # how many registered brokers never had a snapshot
    #: The ids of the first MAX_LISTED stale brokers; brokers in service come first. The pipeline doesn't know whether a
    #: broker out of service is registered, but its readers do.
    stale_brokers: Ids = ()
    missing_brokers: Ids = ()  # the ids of the first MAX_LISTED missing brokers
    offline: Needed[Count] = 0  # how many log directories of brokers in service are offline
    #: The first MAX_LISTED of these log directories.
    offline_dirs: Annotated[
        tuple[OfflineDir, ...], Field(alias="offlineLogDirs", max_length=MAX_LISTED), NullIs(())
    ] = ()
    volume_count: Needed[Count] = 0  # how many volumes the brokers with a fresh snapshot have
    capacity: Sum = 0  # the capacity of these volumes together, in bytes
    consumed: Sum = 0  # the consumed bytes of these volumes together
    #: The smallest factor that the published limits yield; None if no limits are published.
    smallest_factor: Annotated[float, Field(ge=0, le=1)] | None = None
    #: For each kind of volumes (same capacity, soft limit and hard limit) the volume that consumes most. All policies
    #: are monotone in the consumed bytes, so the others can be left out. If there are more than MAX_LISTED kinds,
    #: MAX_LISTED / 2 entries are the kinds whose published limits yield the smallest factors, so no kind that is left
    #: out has a smaller factor. The other half are kinds with the smallest free shares; kinds that lack a limit are
    #: taken first, as readers judge them by their own limits. The list is ordered by free share, the smallest first.
    fullest: Needed[Listed] = ()
    #: The volumes in the last snapshots of brokers without a fresh one, at most MAX_LISTED: of each kind the volume
    #: that consumes most, then of each kind the next one, and among these the kinds with the smallest factors first.
    #: Volumes of expired brokers come last. A reader counts the volumes of fenced brokers.
    silent: Annotated[Listed, NullIs(()), Field(alias="silentVolumes")] = ()
    #: For each limit type the MAX_WORST volumes nearest to such a limit, the nearest first.
    worst: Annotated[Worst, _BY_TYPE] = field(default_factory=lambda: dict.fromkeys(LimitType, ()))
    #: The number of kinds. If ``fullest`` lists fewer kinds, that list is cut. 0 in records of pipelines that don't
    #: count kinds.
    kinds: Count = 0
    #: The topics with a replica on a volume above its published soft limit, on silent brokers, too. None, which means
    #: all topics, if one of these volumes doesn't tell its topics, if there are more than 1,000, or if the pipeline
    #: doesn't collect them. Each listed volume above its published soft limit gets this set as its topics.
    affected: Annotated[Topics, Field(alias="affectedTopics")] = None
    #: For each budget of storage its name, the bytes on brokers in service, and the bytes that others last reported.
    #: Readers count the latter if the bytes of all replicas count, and not if the bytes of leaders do. If there are
    #: more than MAX_BUDGETS, those with the most bytes on brokers in service are listed. None in records of pipelines
    #: that don't sum up budgets.
    budgets: Annotated[tuple[tuple[BudgetName, Long, Long], ...], Field(max_length=MAX_BUDGETS)] | None = None

    def __post_init__(self) -> None:
        # The dataclass is frozen, so its own constructor has no other way to set a field.
        for name in ("fullest", "silent"):
            object.__setattr__(self, name, tuple(map(self._with_topics, getattr(self, name))))
        worst = {kind: tuple(map(self._with_topics, of)) for kind, of in self.worst.items()}
        object.__setattr__(self, "worst", worst)

    def _with_topics(self, listed: VolumeTrend) -> VolumeTrend:
        """Give the volume the cluster's topics if they were collected from it."""
        volume = listed.volume
        # The published limits decide: of a volume above its reader's limits alone, the pipeline collects no topics.
        limits = byte_limits(volume, volume.soft, volume.hard)
        topics = self.affected if limits and limits.breaches_soft(volume.consumed) else None
        return listed if volume.topics == topics else replace(listed, volume=replace(volume, topics=topics))

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """The volumes of ``fullest`` and ``worst``, each once."""
        listed = chain(self.fullest, *self.worst.values())
        return tuple(dict.fromkeys(trend.volume for trend in listed))


# If the topics don't fit, the record leaves them out, which means all topics.
CODEC: Final = Codec(ClusterRecord, MAX_BYTES, lambda record: replace(record, affected=None))
encode, decode = CODEC.encode, CODEC.decode
