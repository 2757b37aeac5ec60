"""A volume and how fast it fills, as the cluster's record lists volumes.

Its JSON is flat, one object for the volume, its limits and its rates, and Spark writes it; so it has forms of its own
here. :mod:`quotahost.records.cluster_volumes` annotates its lists with :data:`FULLEST` and :data:`WORST`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import LimitType, Volume
from quotahost.records.declaration import As
from quotahost.records.fields import LimitJson, Name, SizesJson, limit, sizes_json, volume_limit_json

MAX_LISTED: Final = 64  # of volumes that are the fullest of their kind, and of the record's other lists
MAX_WORST: Final = 16  # volumes by limit type


@dataclass(frozen=True, slots=True)
class Filling:
    """A volume and how it fills; None where that is unknown.

    Attributes:
        volume: the volume with the limits published for it.
        fill_rate: bytes/s by which its consumption grows; below 0 it empties.
        seconds_to_full: seconds until it is full at that rate.
    """

    volume: Volume
    fill_rate: float | None = None
    seconds_to_full: float | None = None


# ---- JSON ------------------------------------------------------------------------------------------


def _without_nulls(fields: object) -> object:
    """Spark writes a limit that isn't there with nulls for its fields."""
    # A limit that isn't there comes as null, as {} or as an object of nulls; LimitJson judges anything else.
    if not isinstance(fields, dict):
        return {} if fields is None else fields
    return {name: value for name, value in fields.items() if value is not None}


SparkLimit = Annotated[LimitJson, BeforeValidator(_without_nulls)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class FillingJson(SizesJson):
    """A Filling, flat."""

    brokerId: Name
    softLimit: NotRequired[SparkLimit]
    hardLimit: NotRequired[SparkLimit]
    bytesPerSecond: NotRequired[Number | None]
    secondsToFull: NotRequired[Number | None]


def _filling(fields: FillingJson) -> Filling:
    volume = Volume(
        fields["brokerId"],
        fields["volumeName"],
        fields["capacity"],
        fields["consumed"],
        limit(fields.get("softLimit", {})),
        limit(fields.get("hardLimit", {})),
    )
    return Filling(volume, fields.get("bytesPerSecond"), fields.get("secondsToFull"))


def _fillings(listed: list[FillingJson] | None, _: ValidationInfo) -> tuple[Filling, ...]:
    return tuple(map(_filling, listed or ()))


def _fillings_json(fillings: tuple[Filling, ...]) -> list[FillingJson]:
    return [
        {
            "brokerId": each.volume.broker,
            **sizes_json(each.volume),
            "softLimit": volume_limit_json(each.volume.soft, each.volume.capacity),
            "hardLimit": volume_limit_json(each.volume.hard, each.volume.capacity),
            "bytesPerSecond": each.fill_rate,
            "secondsToFull": each.seconds_to_full,
        }
        for each in fillings
    ]


WorstList = Annotated[list[FillingJson], Field(max_length=MAX_WORST)] | None


@with_config(ConfigDict(strict=True))  # of its own: its names are no camelCase
class WorstJson(TypedDict):
    """The volumes nearest to a limit, by its type (``quotahost.model.LimitType``); other types are ignored."""

    ConsumedBytes: NotRequired[WorstList]
    MinFreeBytes: NotRequired[WorstList]
    MinFreePercentage: NotRequired[WorstList]


Worst = Mapping[LimitType, tuple[Filling, ...]]


def _worst(by_type: Mapping[str, Any] | None, info: ValidationInfo) -> Worst:
    return {kind: _fillings((by_type or {}).get(kind), info) for kind in LimitType}


def _worst_json(worst: Worst) -> dict[str, Any]:
    return {kind.value: _fillings_json(worst.get(kind, ())) for kind in LimitType}


Fullest = Annotated[list[FillingJson], Field(max_length=MAX_LISTED)]
FULLEST: Final = As(Fullest, _fillings, _fillings_json)
SILENT: Final = As(Fullest | None, _fillings, _fillings_json)
WORST: Final = As(WorstJson | None, _worst, _worst_json)
