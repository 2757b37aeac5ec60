"""What the pipeline knows of one cluster at one time, as a frozen value."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, NotRequired

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.model import LimitType, Volume
from quotahost.records.codec import (
    LimitJson,
    Long,
    Name,
    Refused,
    checked,
    date_time,
    in_utc,
    limit,
    limit_json,
)

# TODO(merge) The JSON of a cluster's record as types; a field without a value may be null or left out, as
#   Spark likes it.

# TODO(merge) A cluster's record as JSON, as the pipeline publishes it and every broker reads it.
#
#   The form is ``schemas/cluster-volumes.json``. The record's key is the cluster's id in UTF-8. Unknown
#   fields are ignored;
#   a record of another version is refused. The limit ``{}`` is none.
#


@dataclass(frozen=True, slots=True)
class Filling:
    """A volume, how fast it fills in bytes/s (below 0: it empties) and when it is full, in seconds; None if unknown."""

    volume: Volume
    fill_rate: float | None = None
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


MAX_BYTES: Final = 1024 * 1024


MAX_LISTED: Final = 64  # brokers, log directories, volumes that are the fullest of their kind


MAX_WORST: Final = 16  # volumes by limit type


def _some(told: object) -> object:
    """Spark writes a limit that isn't there with nulls for its fields."""
    if not isinstance(told, dict):
        return {} if told is None else told
    return {name: value for name, value in told.items() if value is not None}


def _maybe_time(value: object) -> datetime | None:
    return None if value is None else date_time(value)


Number = Annotated[float, Field(allow_inf_nan=False)]


Share = Annotated[float, Field(ge=0, le=1)]


Sum = Annotated[int, Field(ge=0)]  # of any size: 10,000 brokers may have more than 2**63 bytes


MaybeLimit = Annotated[LimitJson, BeforeValidator(_some)]


Ids = Annotated[list[Name], Field(max_length=MAX_LISTED)]


class FillingJson(TypedDict):
    """A volume with the limits published for it, and how it fills."""

    brokerId: Name
    volumeName: Name
    capacity: Long
    consumed: Long
    softLimit: NotRequired[MaybeLimit]
    hardLimit: NotRequired[MaybeLimit]
    bytesPerSecond: NotRequired[Number | None]
    secondsToFull: NotRequired[Number | None]


class OfflineJson(TypedDict):
    """A log directory."""

    brokerId: Name
    logDir: Name


Worst = Annotated[list[FillingJson], Field(max_length=MAX_WORST)]


class WorstJson(TypedDict):
    """The volumes nearest to a limit, by its type (``quotahost.model.LimitType``)."""

    ConsumedBytes: NotRequired[Worst | None]
    MinFreeBytes: NotRequired[Worst | None]
    MinFreePercentage: NotRequired[Worst | None]


@with_config(ConfigDict(strict=True))
class ClusterJson(TypedDict):
    """A record's value."""

    version: Annotated[int, Field(ge=1, le=1)]
    clusterId: Annotated[Name, Field(min_length=1)]
    run: Long
    sequence: Long
    computedAt: Annotated[datetime, PlainValidator(date_time)]
    newestSnapshotAt: NotRequired[Annotated[datetime | None, PlainValidator(_maybe_time)]]
    reporting: Long
    stale: Long
    missing: Long
    staleBrokers: NotRequired[Ids | None]
    missingBrokers: NotRequired[Ids | None]
    offline: Long | None
    offlineLogDirs: NotRequired[Annotated[list[OfflineJson], Field(max_length=MAX_LISTED)] | None]
    volumeCount: Long | None  # a sum over no broker is null
    capacity: NotRequired[Sum | None]
    consumed: NotRequired[Sum | None]
    smallestFactor: NotRequired[Share | None]
    fullest: Annotated[list[FillingJson], Field(max_length=MAX_LISTED)]
    worst: NotRequired[WorstJson | None]


_ADAPTER: Final = TypeAdapter(ClusterJson)


def read(value: bytes) -> ClusterJson:
    """The fields of a record's value that are known.

    Raises:
        Refused: size, json, version, schema or limit.
    """
    return checked(_ADAPTER, value, MAX_BYTES)


def encode(record: ClusterRecord) -> bytes:
    """The record's value; its key is the cluster's id in UTF-8.

    Raises:
        Refused: no reader would take it: a list is too long, a number out of range, a name no valid Unicode.
    """
    value = json.dumps(_json(record), separators=(",", ":")).encode()
    decode(record.cluster.encode(errors="replace"), value)
    return value


def _json(record: ClusterRecord) -> dict[str, Any]:
    return {
        "version": 1,
        "clusterId": record.cluster,
        "run": record.run,
        "sequence": record.sequence,
        "computedAt": _time_json(record.computed_at),
        "newestSnapshotAt": _time_json(record.newest_snapshot_at),
        "reporting": record.reporting,
        "stale": record.stale,
        "missing": record.missing,
        "staleBrokers": record.stale_brokers,
        "missingBrokers": record.missing_brokers,
        "offline": record.offline,
        "offlineLogDirs": [{"brokerId": each.broker, "logDir": each.log_dir} for each in record.offline_dirs],
        "volumeCount": record.volume_count,
        "capacity": record.capacity,
        "consumed": record.consumed,
        "smallestFactor": record.smallest_factor,
        "fullest": [_filling_json(each) for each in record.fullest],
        "worst": {kind: [_filling_json(each) for each in record.worst.get(kind, ())] for kind in LimitType},
    }


def _time_json(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def _filling_json(filling: Filling) -> dict[str, Any]:
    volume = filling.volume
    return {
        "brokerId": volume.broker,
        "volumeName": volume.name,
        "capacity": volume.capacity,
        "consumed": volume.consumed,
        "softLimit": limit_json(volume.soft),
        "hardLimit": limit_json(volume.hard),
        "bytesPerSecond": filling.fill_rate,
        "secondsToFull": filling.seconds_to_full,
    }


def decode(key: bytes | None, value: bytes) -> ClusterRecord:
    """The record of a cluster.

    Raises:
        Refused: it is none. Nothing else is raised, whatever the bytes.
    """
    told = read(value)
    if key != told["clusterId"].encode():
        named = reprlib.repr(told["clusterId"])
        raise Refused("key", f"the record's key is {reprlib.repr(key)}, but its clusterId {named}")
    return _record(told)


def _record(told: ClusterJson) -> ClusterRecord:
    worst: Mapping[str, Any] = told.get("worst") or {}
    return ClusterRecord(
        told["clusterId"],
        told["run"],
        told["sequence"],
        told["computedAt"],
        told.get("newestSnapshotAt"),
        told["reporting"],
        told["stale"],
        told["missing"],
        tuple(told.get("staleBrokers") or ()),
        tuple(told.get("missingBrokers") or ()),
        told["offline"] or 0,
        tuple(OfflineDir(each["brokerId"], each["logDir"]) for each in told.get("offlineLogDirs") or ()),
        told["volumeCount"] or 0,
        told.get("capacity") or 0,
        told.get("consumed") or 0,
        told.get("smallestFactor"),
        tuple(map(_filling, told["fullest"])),
        {kind: tuple(map(_filling, worst.get(kind) or ())) for kind in LimitType},
    )


def _filling(told: FillingJson) -> Filling:
    volume = Volume(
        told["brokerId"],
        told["volumeName"],
        told["capacity"],
        told["consumed"],
        limit(told.get("softLimit", {})),
        limit(told.get("hardLimit", {})),
    )
    return Filling(volume, told.get("bytesPerSecond"), told.get("secondsToFull"))
