"""Tests cluster records: a field without a value may be missing, and wrong records are refused with a reason."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, nan
from typing import Any

import jsonschema
import pytest

from quotahost.model import Limit, LimitType, Volume
from quotahost.records import cluster_volumes
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST, ClusterRecord, VolumeTrend, decode, encode
from quotahost.records.codec import Refused

SCHEMA: Any = cluster_volumes.CODEC.schema()
NOW = datetime(2026, 11, 21, 21, 30, tzinfo=UTC)
HARD = Limit(LimitType.MIN_FREE_BYTES, 5)
DISK = Volume("2", "/d", 100, 97, hard=HARD)
RECORD = ClusterRecord("c", 7, 42, NOW, reporting=1, volume_count=1, fullest=(VolumeTrend(DISK, -12.5, None),))


def content(**fields: Any) -> dict[str, Any]:
    return {**json.loads(encode(RECORD)), **fields}


def volume(**fields: Any) -> dict[str, Any]:
    return {"brokerId": "2", "volumeName": "/d", "capacity": 100, "consumed": 97, **fields}


def read(value: dict[str, Any]) -> ClusterRecord:
    return decode(b"c", json.dumps(value).encode())


def test_what_has_no_value_may_be_null_or_left_out() -> None:
    needed = set(SCHEMA["required"])
    bare = {name: value for name, value in content().items() if name in needed}
    nulls = dict.fromkeys(name for name in content() if name not in needed)
    assert read(bare) == read(bare | nulls)
    assert read(bare).volumes == (DISK,)
    assert read(bare).affected is None, "a record without topics, from an earlier pipeline, is for all clients"
    assert read(content(worst={"MinFreeTea": [5]})).worst[LimitType.MIN_FREE_BYTES] == (), "unknown limits are ignored"
    nobody = read(content(reporting=0, volumeCount=None, offline=None, capacity=None, consumed=None, fullest=[]))
    assert (nobody.volume_count, nobody.offline, nobody.capacity, nobody.consumed) == (0, 0, 0, 0)
    unlimited = [content(fullest=[volume(softLimit=none, hardLimit=none)]) for none in ({}, {"x": 1})]
    assert [read(each).volumes for each in unlimited] == [(replace(DISK, hard=None),)] * 2
    for value in (bare, bare | nulls, *unlimited):
        jsonschema.validate(value, SCHEMA)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"version": None}, "version"),
        *((each, "schema") for each in (
            {"clusterId": ""}, {"run": "7"}, {"run": 7.5}, {"sequence": -1}, {"stale": None}, {"computedAt": None},
            {"newestSnapshotAt": 5}, {"staleBrokers": [4]},
            {"missingBrokers": ["4"] * (MAX_LISTED + 1)}, {"offlineLogDirs": [{"brokerId": "4"}]},
            {"smallestFactor": 1.1}, {"fullest": None}, {"fullest": [volume()] * (MAX_LISTED + 1)},
            {"fullest": [volume(capacity=-1)]},
            *({"fullest": [volume(bytesPerSecond=wrong)]} for wrong in ("NaN", nan, inf)), {"worst": []},
            {"fullest": [volume(secondsToFull=nan)]}, {"smallestFactor": nan},
            {"worst": {"MinFreeBytes": [volume()] * (MAX_WORST + 1)}}, {"affectedTopics": ["a b"]})),
        ({"worst": {"MinFreeBytes": [volume(softLimit={"type": "x", "level": 1})]}}, "limit"),
    ],
)  # fmt: skip
def test_what_breaks_the_form_is_refused_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as caught:
        read(content(**fields))
    assert caught.value.reason == reason


SOFT = Limit(LimitType.MIN_FREE_BYTES, 50)
ABOVE, BELOW, UNLIMITED = replace(DISK, soft=SOFT), replace(DISK, soft=SOFT, consumed=50), Volume("3", "/d", 100, 100)


def test_listed_volumes_above_their_published_limits_have_the_clusters_topics_and_others_are_for_all() -> None:
    """The record's topics lack those of the other volumes, which readers may judge by limits of their own."""
    filled = tuple(VolumeTrend(each) for each in (ABOVE, BELOW, UNLIMITED))
    worst = {LimitType.CONSUMED_BYTES: filled}
    given = replace(RECORD, fullest=filled, silent=filled, worst=worst, affected=frozenset("ab"))
    found = decode(b"c", encode(given))
    for listed in (found.fullest, found.silent, found.worst[LimitType.CONSUMED_BYTES]):
        assert [each.volume.topics for each in listed] == [frozenset("ab"), None, None]


def test_topics_that_do_not_fit_into_the_record_are_left_out() -> None:
    topics = frozenset(f"{n:03}".ljust(249, "x") for n in range(1000))
    # As many names as the record lists; each character takes twelve bytes in JSON.
    brokers = tuple(f"{n:04}" + "\U0001f600" * 1020 for n in range(64))
    given = replace(RECORD, stale_brokers=brokers, missing_brokers=brokers[:9], affected=topics)
    found = decode(b"c", encode(given))
    assert (found.affected, found.stale_brokers) == (None, brokers)
    assert decode(b"c", encode(replace(given, missing_brokers=()))).affected == topics
