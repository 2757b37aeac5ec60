"""A cluster's record as JSON, as the pipeline publishes it and every broker reads it.

The form is ``schemas/cluster-volumes.json``. The record's key is the cluster's id in UTF-8. Unknown fields are ignored;
a record of another version is refused. The limit ``{}`` is none.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quotahost.clusterrecord import ClusterRecord as ClusterRecord
from quotahost.clusterrecord import Filling as Filling
from quotahost.clusterrecord import OfflineDir as OfflineDir
from quotahost.volume import LimitType, Volume
from quotahost.wire import limit_json
from quotahost.wire_cluster_read import ClusterJson, FillingJson, read
from quotahost.wire_read import Refused as Refused
from quotahost.wire_read import limit


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
        "bytesPerSecond": filling.bytes_per_second,
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
