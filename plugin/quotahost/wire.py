"""One broker's snapshot as JSON, as the other brokers and whoever else reads the topic see it.

The form is ``schemas/snapshot.json``, the JSON schema of proposal 035 word for word. It allows more fields;
quotahost's own are ``schemaVersion`` (1), ``clusterId`` (left out while it is unknown), ``offlineLogDirs``, and
``softLimit`` and ``hardLimit`` of a volume, which override the broker's (the proposal's note 2). Unknown fields are
ignored. The limit ``{}`` is none.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from typing import Any

from quotahost.snapshot import Snapshot as Snapshot
from quotahost.volume import Limit, LimitType, Volume, exact
from quotahost.wire_read import REASONS as REASONS
from quotahost.wire_read import Refused as Refused
from quotahost.wire_read import SnapshotJson, limit, read


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as a record's value; the record's key is the broker's id in UTF-8.

    Raises:
        Refused: no reader would take it: the record is too large, a size is beyond 2**63-1, two volumes
            have one name, or a name is too long or no valid Unicode.
    """
    told: dict[str, Any] = {
        "schemaVersion": 1,
        "brokerId": snapshot.broker,
        "snapshotAt": snapshot.taken_at.isoformat().replace("+00:00", "Z"),
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


def rounded(given: Limit) -> Limit:
    """The limit as it is written: a percentage in whole numbers, upwards, so that more is kept free."""
    if given.type is LimitType.MIN_FREE_PERCENTAGE:
        return Limit(given.type, math.ceil(exact(given.level)))
    return given


def limit_json(given: Limit | None) -> dict[str, Any]:
    """As it is written; ``{}`` is none."""
    return {} if given is None else {"type": given.type, "level": rounded(given).level}


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
