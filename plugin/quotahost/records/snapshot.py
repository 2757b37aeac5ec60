"""One broker's volumes at one time: proposal 035's Metrics Snapshot.

``schemas/snapshot.json`` is the proposal's JSON schema word for word. The schema allows more fields; quotahost adds
``schemaVersion`` (1), ``clusterId``, ``offlineLogDirs``, ``ageMs`` (:mod:`quotahost.records.fields`) and ``budgets`` (a
wrong list counts as none). To a volume it adds ``softLimit`` and ``hardLimit``, which override the broker's (the
proposal's note 2), and ``topics``; a volume without ``topics`` stands for all topics.
"""

import reprlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_serializer,
)

from quotahost.model import Volume
from quotahost.records.budgets import MAX_BUDGETS, BudgetName
from quotahost.records.codec import IS_KEY, VERSION, As, Codec, Needed, NullIs, Record, Refused, Whole
from quotahost.records.fields import Long, Name, OwnLimit, Time, Topics, VolumeJson, exact_for

MAX_BYTES: Final = 256 * 1024
MAX_VOLUMES: Final = 1024


class _Volume(VolumeJson):
    """A volume, whose own limits override the broker's."""

    topics: NotRequired[Topics]


def _volumes(listed: list[_Volume], info: ValidationInfo) -> tuple[Volume, ...]:
    """The volumes, each with the id of the record's broker, which was read before the volumes."""
    counts = Counter(volume["name"] for volume in listed)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise Refused("volumes", f"the volume {reprlib.repr(twice[0])} is listed more than once")
    # The broker is absent if its id was refused: pydantic then still reads the other fields, to find all faults.
    broker = info.data.get("broker", "")
    return tuple(Volume(broker, **volume) for volume in listed)


def _once(budgets: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    if len(dict(budgets)) < len(budgets):
        raise ValueError("a budget is listed twice")
    return budgets


_Budgets = Annotated[tuple[tuple[BudgetName, Long], ...], Field(max_length=MAX_BUDGETS), AfterValidator(_once)]


def _or_none(value: object, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a list of budgets. A wrong list counts as none, so that the record's volumes still apply."""
    try:
        # JSON has only lists. pydantic reads what this function passes on as Python values, where a list is no tuple.
        return read(tuple(map(tuple, value)) if isinstance(value, list) else value)
    except (ValidationError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class Snapshot(Record):
    """One broker's volumes at one time. A volume without limits of its own gets the broker's (proposal 035, note 2)."""

    # The broker stands before the volumes, because pydantic reads fields in this order, and the volumes take its id.
    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]  # the broker's id
    captured_at: Annotated[Time, Field(alias="snapshotAt")]  # when the volumes were read, by the broker's clock
    #: The broker's volumes.
    volumes: Annotated[
        tuple[Volume, ...],
        As(Annotated[list[_Volume], Field(max_length=MAX_VOLUMES)], _volumes, list),  # written by _volumes_json
    ]
    #: The broker's limit above which producers are throttled, for all its volumes; ``{}`` in JSON if it sets none.
    soft: Needed[Annotated[OwnLimit, Field(alias="softLimit")]] = None
    #: The broker's limit at which producers are paused, for all its volumes; ``{}`` in JSON if it sets none.
    hard: Needed[Annotated[OwnLimit, Field(alias="hardLimit")]] = None
    #: Log directories that are offline or can't be read.
    offline: Annotated[tuple[Name, ...], Field(alias="offlineLogDirs", max_length=MAX_VOLUMES)] = ()
    cluster: Annotated[Name, Field(alias="clusterId")] = ""  # the id of the broker's cluster; "" while it is unknown
    #: The time from the reading of the volumes to the writing of the record, in ms by the broker's monotonic clock;
    #: None if the record doesn't state it.
    age_ms: Long | None = None
    #: The budgets of storage that have replicas on this broker, each with the bytes on this broker that count for it;
    #: None if there is no budget.
    budgets: Annotated[_Budgets | None, WrapValidator(_or_none)] = None
    schema_version: Annotated[Whole, Field(ge=VERSION, le=VERSION), NullIs(VERSION)] = field(
        default=VERSION, kw_only=True, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        limited = (replace(v, soft=v.soft or self.soft, hard=v.hard or self.hard) for v in self.volumes)
        object.__setattr__(self, "volumes", tuple(limited))

    @field_serializer("volumes", mode="wrap")
    def _volumes_json(self, volumes: tuple[Volume, ...], as_json: SerializerFunctionWrapHandler) -> Any:
        return as_json(list(map(self._volume_json, volumes)))

    def _volume_json(self, volume: Volume) -> _Volume:
        form: _Volume = {"name": volume.name, "capacity": volume.capacity, "consumed": volume.consumed}
        # The constructor has given the broker's limits to all volumes without their own, and JSON doesn't repeat them.
        # But a percentage that isn't whole is written rounded up for the broker, and here as the volume's bytes.
        soft, hard = (limit and exact_for(limit, volume.capacity) for limit in (volume.soft, volume.hard))
        if soft != self.soft:
            form["soft"] = soft
        if hard != self.hard:
            form["hard"] = hard
        if volume.topics is not None:
            form["topics"] = volume.topics
        return form


def _without_topics(snapshot: Snapshot) -> Snapshot:
    """The snapshot without topics, for a record in which they don't fit; absent topics mean all topics."""
    return replace(snapshot, volumes=tuple(replace(volume, topics=None) for volume in snapshot.volumes))


CODEC: Final = Codec(Snapshot, MAX_BYTES, _without_topics)
encode, decode = CODEC.encode, CODEC.decode

_BUDGETS: Final = TypeAdapter(_Budgets, config=ConfigDict(strict=True))


def budgets(json: str) -> tuple[tuple[str, int], ...]:
    """A snapshot's budgets from their JSON alone, by the rule of :func:`decode`: a wrong list counts as none."""
    try:
        return _BUDGETS.validate_json(json)
    except ValidationError:
        return ()
