"""One broker's volumes at one time: proposal 035's Metrics Snapshot.

The task ``publish-volumes`` of each broker writes it to the compacted topic ``snapshots.topic`` under the broker's id;
the factor source ``snapshots`` of the other brokers and the pipeline read it. The form is ``schemas/snapshot.json``,
the proposal's JSON schema word for word. The schema allows more fields; quotahost's own are ``schemaVersion`` (1),
``clusterId`` (left out while it is unknown), ``offlineLogDirs``, ``ageMs`` (how old the look at the disks was when it
was published; :mod:`quotahost.records.age`), and of a volume ``softLimit`` and ``hardLimit``, which override the
broker's (the proposal's note 2), and ``topics``, those with a replica on it; left out, it stands for all topics.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, NotRequired

from pydantic import Field, ValidationInfo, with_config

from quotahost.model import Volume
from quotahost.model.affected import MAX_TOPICS
from quotahost.records.codec import Codec, Refused
from quotahost.records.declaration import IS_KEY, RECORD, VERSION, As, Needed, NullIs, Record, Whole
from quotahost.records.fields import (
    LimitJson,
    Long,
    Name,
    OwnLimit,
    SizesJson,
    Time,
    Topic,
    exact_for,
    in_utc,
    limit,
    limit_json,
    sizes_json,
    topic_set,
)

MAX_BYTES: Final = 256 * 1024
MAX_VOLUMES: Final = 1024


class VolumeJson(SizesJson):
    """A volume; its own limits override the broker's."""

    softLimit: NotRequired[LimitJson]
    hardLimit: NotRequired[LimitJson]
    topics: NotRequired[Annotated[list[Topic], Field(max_length=MAX_TOPICS)] | None]


def _volumes(listed: list[VolumeJson], info: ValidationInfo) -> tuple[Volume, ...]:
    """The volumes of the broker that the record names, which is read before them."""
    counts = Counter(each["volumeName"] for each in listed)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise Refused("volumes", f"the volume {reprlib.repr(twice[0])} is listed more than once")
    # The broker is absent where its id was refused: pydantic goes on to the other fields, to find all faults.
    broker = info.data.get("broker", "")
    return tuple(
        Volume(
            broker,
            each["volumeName"],
            each["capacity"],
            each["consumed"],
            limit(each.get("softLimit", {})),
            limit(each.get("hardLimit", {})),
            topic_set(each.get("topics")),
        )
        for each in listed
    )


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class Snapshot(Record):
    """One broker's volumes at one time (proposal 035, Metrics Snapshot).

    A volume without limits of its own gets the broker's (the proposal's note 2).

    Attributes:
        broker: the broker's id.
        captured_at: when the volumes were read, by the broker's clock; kept in UTC.
        volumes: the broker's volumes.
        soft: from where producers are throttled, for all its volumes; None if the broker sets no such limit.
        hard: where producers are paused; None if the broker sets no such limit.
        offline: log directories that are offline or can't be read.
        cluster: the id of the broker's cluster; "" while it is unknown.
        age_ms: how long before the record was written the volumes were read, in ms by the broker's monotonic clock;
            None if the record doesn't state it.

    Raises:
        ValueError: ``captured_at`` has no time zone or is not in UTC's range, or a volume is another broker's.
    """

    # The broker stands before the volumes: pydantic reads fields in this order, and the volumes take its id.
    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]
    captured_at: Annotated[Time, Field(alias="snapshotAt")]
    volumes: Annotated[
        tuple[Volume, ...],
        As(Annotated[list[VolumeJson], Field(max_length=MAX_VOLUMES)], _volumes, list),  # written by encode
    ]
    soft: Needed[Annotated[OwnLimit, Field(alias="softLimit")]] = None
    hard: Needed[Annotated[OwnLimit, Field(alias="hardLimit")]] = None
    offline: Annotated[tuple[Name, ...], Field(alias="offlineLogDirs", max_length=MAX_VOLUMES)] = ()
    cluster: Annotated[Name, Field(alias="clusterId")] = ""
    age_ms: Long | None = None
    schema_version: Annotated[Whole, Field(ge=VERSION, le=VERSION), NullIs(VERSION)] = field(
        default=VERSION, kw_only=True, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if others := {volume.broker for volume in self.volumes} - {self.broker}:
            raise ValueError(f"a snapshot of broker {self.broker!r} holds volumes of {sorted(others)}")
        object.__setattr__(self, "captured_at", in_utc(self.captured_at))
        object.__setattr__(self, "volumes", tuple(self._with_limits(volume) for volume in self.volumes))

    def _with_limits(self, volume: Volume) -> Volume:
        if volume.soft and volume.hard:
            return volume
        return replace(volume, soft=volume.soft or self.soft, hard=volume.hard or self.hard)


_CODEC: Final = Codec(Snapshot, MAX_BYTES, lambda snapshot: snapshot.broker)
decode = _CODEC.decode


def encode(snapshot: Snapshot) -> bytes:
    """As :meth:`quotahost.records.codec.Codec.encode`; a limit that a volume has from its broker isn't repeated.

    But for one case: the proposal's schema has whole percentages only. So one that isn't whole is written rounded up
    for the broker, and with each volume as the bytes of that volume that it means.

    Where the topics don't fit into the record, they are left out, which stands for all topics.
    """
    volumes = [_volume_json(volume, snapshot) for volume in snapshot.volumes]
    # First by their number: a megabyte of JSON isn't worth making to see that it is too large.
    if sum(len(topic) for volume in snapshot.volumes for topic in volume.topics or ()) < MAX_BYTES:
        listed = [
            {**json, **({} if volume.topics is None else {"topics": sorted(volume.topics)})}
            for json, volume in zip(volumes, snapshot.volumes, strict=True)
        ]
        try:
            return _CODEC.encode(snapshot, volumes=listed)
        except Refused as refused:
            if refused.reason != "size":
                raise
    return _CODEC.encode(snapshot, volumes=volumes)


def _volume_json(volume: Volume, snapshot: Snapshot) -> dict[str, Any]:
    limits = {"hardLimit": (volume.hard, snapshot.hard), "softLimit": (volume.soft, snapshot.soft)}
    # The constructor has given the broker's limits to all volumes without their own.
    exact = {name: (own and exact_for(own, volume.capacity), brokers) for name, (own, brokers) in limits.items()}
    return {**sizes_json(volume), **{name: limit_json(own) for name, (own, brokers) in exact.items() if own != brokers}}
