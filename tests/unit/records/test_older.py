"""Brokers and pipelines of two versions share the topics: each reads what the other publishes.

``older/records.json`` has records as the version before ``factor.scope=topics`` published them (commit 516f3d4), and
``older/cluster-volumes.json`` is that version's schema; that of snapshots is the proposal's and hasn't changed.
"""

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import given
from jsonschema import Draft7Validator

from quotahost.model import Limit, LimitType, Volume
from quotahost.records import cluster_volumes, shares, snapshot, usage
from quotahost.records.cluster_volumes import ClusterRecord
from tests.unit.records.strategies import clusters, snapshots

OLDER: Final = Path(__file__).with_name("older")
RECORDS: Final = json.loads((OLDER / "records.json").read_text())
SCHEMA: Final = Draft7Validator(json.loads((OLDER / "cluster-volumes.json").read_text()))
SOFT, HARD = Limit(LimitType.CONSUMED_BYTES, 800), Limit(LimitType.MIN_FREE_BYTES, 50)
# What the older version knows; it ignores all other fields.
IN_A_SNAPSHOT: Final = set(json.loads(RECORDS["snapshot"]["value"]))
IN_A_VOLUME: Final = {"volumeName", "capacity", "consumed", "softLimit", "hardLimit"}


def older(name: str) -> tuple[bytes, bytes]:
    return RECORDS[name]["key"].encode(), RECORDS[name]["value"].encode()


def test_the_olders_records_are_read_and_stand_for_all_topics() -> None:
    found = snapshot.decode(*older("snapshot"))
    assert (found.broker, found.cluster, found.age_ms, found.offline) == ("1", "c", 120, ("/data/3",))
    assert (found.soft, found.hard) == (SOFT, HARD)
    percent = Limit(LimitType.MIN_FREE_PERCENTAGE, 5)
    full, free = Volume("1", "/dev/sdb", 1000, 900, SOFT, percent), Volume("1", "/dev/sdc", 1000, 10, SOFT, HARD)
    assert found.volumes == (full, free)
    assert [volume.topics for volume in found.volumes] == [None, None]

    record = cluster_volumes.decode(*older("cluster-volumes"))
    assert (record.order, record.reporting, record.stale_brokers, record.volume_count) == ((7, 42), 3, ("2",), 2)
    assert record.affected is None
    (told,) = record.fullest
    assert (told.volume, told.fill_rate) == (Volume("1", "/dev/sdb", 1000, 900, SOFT, HARD), 2.5)
    assert record.silent[0].volume.topics is None
    (used,) = usage.decode(*older("usage")).clients
    (share,) = shares.decode(*older("shares")).clients
    assert (used.key, used.key.principal, share.share) == (share.key, "alice", 5.0)


@given(snapshots(), clusters)
def test_the_older_reads_what_is_written_today_but_for_the_topics(
    value: snapshot.Snapshot, record: ClusterRecord
) -> None:
    written: dict[str, Any] = json.loads(snapshot.encode(value))
    assert written["schemaVersion"] == 1, "the older version refuses any other"
    assert set(written) <= IN_A_SNAPSHOT
    for volume in written["volumes"]:
        assert set(volume) - {"topics"} <= IN_A_VOLUME, "a new field: say in docs/upgrade.md what its absence means"

    written = json.loads(cluster_volumes.encode(record))
    SCHEMA.validate(written)
    SCHEMA.validate(written | {"affectedTopics": ["t"]})
    assert set(written) - set(json.loads(RECORDS["cluster-volumes"]["value"])) <= {"affectedTopics"}
