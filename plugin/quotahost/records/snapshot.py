"""One broker's volumes at one time, as a frozen value."""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.model import Limit, Volume
from quotahost.records.codec import LimitJson, Long, Name, Refused, Time, checked, in_utc, limit, limit_json

# TODO(merge) The JSON of a snapshot as types, and from bytes to such types, with every refusal in words.

# TODO(merge) One broker's snapshot as JSON, as the other brokers and whoever else reads the topic see it.
#
#   The form is ``schemas/snapshot.json``, the JSON schema of proposal 035 word for word. It allows more
#   fields;
#   quotahost's own are ``schemaVersion`` (1), ``clusterId`` (left out while it is unknown),
#   ``offlineLogDirs``, and
#   ``softLimit`` and ``hardLimit`` of a volume, which override the broker's (the proposal's note 2).
#   Unknown fields are
#   ignored. The limit ``{}`` is none.
#


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One broker's volumes at one time (proposal 035, Metrics Snapshot).

    A volume without limits of its own gets the broker's (the proposal's note 2).

    Attributes:
        broker: its id.
        captured_at: when the volumes were looked at; kept in UTC.
        volumes: its volumes.
        soft: from where producers are throttled, for all its volumes; None if it sets no such limit.
        hard: where producers are paused; None if it sets no such limit.
        offline: log dirs that are offline or can't be read.
        cluster: the id of its cluster; "" while it is unknown.

    Raises:
        ValueError: ``captured_at`` has no time zone or is not in UTC's range, or a volume is another broker's.
    """

    broker: str
    captured_at: datetime
    volumes: tuple[Volume, ...]
    soft: Limit | None = None
    hard: Limit | None = None
    offline: tuple[str, ...] = ()
    cluster: str = ""

    def __post_init__(self) -> None:
        if self.captured_at.tzinfo is None:
            raise ValueError(f"the time of a snapshot needs a time zone: {self.captured_at}")
        if others := {volume.broker for volume in self.volumes} - {self.broker}:
            raise ValueError(f"a snapshot of broker {self.broker!r} holds volumes of {sorted(others)}")
        object.__setattr__(self, "captured_at", in_utc(self.captured_at))
        object.__setattr__(self, "volumes", tuple(self._with_limits(volume) for volume in self.volumes))

    def _with_limits(self, volume: Volume) -> Volume:
        if volume.soft and volume.hard:
            return volume
        return replace(volume, soft=volume.soft or self.soft, hard=volume.hard or self.hard)


MAX_BYTES: Final = 256 * 1024


MAX_VOLUMES: Final = 1024


class VolumeJson(TypedDict):
    """A volume; its own limits override the broker's."""

    volumeName: Name
    capacity: Long
    consumed: Long
    softLimit: NotRequired[LimitJson]
    hardLimit: NotRequired[LimitJson]


@with_config(ConfigDict(strict=True))
class SnapshotJson(TypedDict):
    """A record's value."""

    schemaVersion: NotRequired[Annotated[int, Field(ge=1, le=1)]]
    brokerId: Name
    clusterId: NotRequired[Name]
    snapshotAt: Time
    hardLimit: LimitJson
    softLimit: LimitJson
    volumes: Annotated[list[VolumeJson], Field(max_length=MAX_VOLUMES)]
    offlineLogDirs: NotRequired[Annotated[list[Name], Field(max_length=MAX_VOLUMES)]]


_ADAPTER: Final = TypeAdapter(SnapshotJson)


def read(value: bytes) -> SnapshotJson:
    """The fields of a record's value that are known.

    Raises:
        Refused: size, json, version, schema, volumes (too many) or limit.
    """
    return checked(_ADAPTER, value, MAX_BYTES)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as a record's value; the record's key is the broker's id in UTF-8.

    Raises:
        Refused: no reader would take it: the record is too large, a size is beyond 2**63-1, two volumes
            have one name, or a name is too long or no valid Unicode.
    """
    told: dict[str, Any] = {
        "schemaVersion": 1,
        "brokerId": snapshot.broker,
        "snapshotAt": snapshot.captured_at.isoformat().replace("+00:00", "Z"),
        "hardLimit": limit_json(snapshot.hard),
        "softLimit": limit_json(snapshot.soft),
        "volumes": [_volume_json(volume, snapshot) for volume in snapshot.volumes],
        "offlineLogDirs": snapshot.offline,
    }
    if snapshot.cluster:
        told["clusterId"] = snapshot.cluster
    value = json.dumps(told, separators=(",", ":")).encode()
    decode(snapshot.broker.encode(errors="replace"), value)
    return value


def _volume_json(volume: Volume, snapshot: Snapshot) -> dict[str, Any]:
    told = {"volumeName": volume.name, "capacity": volume.capacity, "consumed": volume.consumed}
    limits = {"hardLimit": (volume.hard, snapshot.hard), "softLimit": (volume.soft, snapshot.soft)}
    return told | {name: limit_json(own) for name, (own, brokers) in limits.items() if own != brokers}


def decode(key: bytes | None, value: bytes) -> Snapshot:
    """The snapshot in a record of the topic.

    Raises:
        Refused: it is none. Nothing else is raised, whatever the bytes.
    """
    told = read(value)
    if key != told["brokerId"].encode():
        named = reprlib.repr(told["brokerId"])
        raise Refused("key", f"the record's key is {reprlib.repr(key)}, but its brokerId {named}")
    counts = Counter(volume["volumeName"] for volume in told["volumes"])
    if twice := [name for name, count in counts.items() if count > 1]:
        raise Refused("volumes", f"the volume {reprlib.repr(twice[0])} is listed more than once")
    return _snapshot(told)


def _snapshot(told: SnapshotJson) -> Snapshot:
    broker = told["brokerId"]
    volumes = (
        Volume(
            broker,
            volume["volumeName"],
            volume["capacity"],
            volume["consumed"],
            limit(volume.get("softLimit", {})),
            limit(volume.get("hardLimit", {})),
        )
        for volume in told["volumes"]
    )
    return Snapshot(
        broker,
        told["snapshotAt"],
        tuple(volumes),
        limit(told["softLimit"]),
        limit(told["hardLimit"]),
        tuple(told.get("offlineLogDirs", ())),
        told.get("clusterId", ""),
    )
