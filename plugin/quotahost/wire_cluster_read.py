"""The JSON of a cluster's record as types; a field without a value may be null or left out, as Spark likes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, NotRequired

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.wire_read import LimitJson, Long, Name, checked, date_time

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
    """The volumes nearest to a limit, by its type (``quotahost.volume.LimitType``)."""

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
