"""Shares in Spark's functions: equal to the plain model, and every record taken or refused as brokers do."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from quotahost.model import QuotaType
from quotahost.pipeline import shares as pipeline
from quotahost.records import shares as share_records
from quotahost.records import usage as usage_records
from quotahost.records.clients import MAX_CLIENTS, MAX_NAMES, ClientKey
from quotahost.records.codec import Refused
from quotahost.records.shares import Shares
from quotahost.records.usage import Usage, Used
from tests.reference import max_min
from tests.unit.records import test_times as times

NOW = datetime(2026, 11, 21, 21, 30, tzinfo=UTC)
MS = int(NOW.timestamp() * 1000)
VALIDITY = 15_000
FEW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))

Record = tuple[bytes | None, bytes | None]


def raw(spark: SparkSession, records: Sequence[Record], at: datetime = NOW) -> DataFrame:
    """As Kafka's source gives them."""
    coded = [[None if part is None else b64encode(part).decode() for part in record] for record in records]
    return spark.sql(
        "SELECT unbase64(r[0]) AS key, unbase64(r[1]) AS value, 'u' AS topic, 0 AS partition, bigint(pos) AS offset, "
        "timestamp_millis(:at) AS timestamp "
        "FROM (SELECT posexplode(from_json(:rows, 'ARRAY<ARRAY<STRING>>')) AS (pos, r))",
        args={"rows": json.dumps(coded), "at": int(at.timestamp() * 1000)},
    )


def all_computed(
    spark: SparkSession, usages: Sequence[Usage], removed: Sequence[str] = ()
) -> dict[tuple[str, str], Shares]:
    """By cluster and broker; by way of the records themselves, in both directions."""
    records: list[Record] = [(u.broker.encode(), usage_records.encode(u)) for u in usages]
    parsed = pipeline.parse(raw(spark, [*records, *((broker.encode(), None) for broker in removed)]))
    assert [row.error for row in parsed.where("error IS NOT NULL").collect()] == []
    found = pipeline.shares(parsed, MS, timedelta(milliseconds=VALIDITY), 7, 42).collect()
    decoded = [share_records.decode(row.key.encode(), row.value.encode()) for row in found]
    by_broker = {(each.cluster, each.broker): each for each in decoded}
    assert len(by_broker) == len(decoded)
    return by_broker


def computed(spark: SparkSession, usages: Sequence[Usage], removed: Sequence[str] = ()) -> dict[str, Shares]:
    return {broker: each for (_, broker), each in all_computed(spark, usages, removed).items()}


names = st.sampled_from(["alice", "bob", "", "é:\t\0", "\U0001f989", "\uffee"])
keys = st.builds(ClientKey, names, names, st.sampled_from([QuotaType.PRODUCE, QuotaType.FETCH]))
rates = st.sampled_from([0.0, 1.0, 5e5, 1e6]) | st.floats(0, 1e9)
used = st.builds(Used, keys, rates, st.none() | rates, st.sampled_from([1.0, 3e6]) | st.floats(0.01, 1e12))
clients = st.lists(used, max_size=5, unique_by=lambda one: one.key).map(tuple)
ages = st.sampled_from([0, VALIDITY, VALIDITY + 1, 10 * VALIDITY])


@st.composite
def cluster(draw: st.DrawFn) -> list[Usage]:
    brokers = draw(st.lists(st.sampled_from(["1", "2", "3", "10", "\u00fc"]), unique=True, min_size=1))
    return [Usage(b, NOW - timedelta(milliseconds=draw(ages)), draw(clients)) for b in brokers]


@FEW
@given(st.lists(cluster(), min_size=10, max_size=40))
def test_the_shares_are_those_of_the_plain_model(spark: SparkSession, clusters: list[list[Usage]]) -> None:
    """Many clusters at once: what takes the time is Spark's planning."""
    named = [[replace(u, cluster=f"c{n}") for u in usages] for n, usages in enumerate(clusters)]
    found = all_computed(spark, [usage for usages in named for usage in usages])
    for usages in named:
        silent = {u.broker for u in usages if u.captured_at < NOW - timedelta(milliseconds=VALIDITY)}
        for broker, expected in max_min.shares(usages, silent).items():
            got = found.pop((usages[0].cluster, broker)).clients
            assert [(s.key, s.quota) for s in got] == [(s.key, s.quota) for s in expected]
            assert [s.share for s in got] == pytest.approx([s.share for s in expected], rel=1e-12, abs=0)
    assert found == {}


def usage(broker: str, *clients_used: tuple[str, float, float | None], cluster: str = "c") -> Usage:
    uses = (Used(ClientKey(u, "app", QuotaType.PRODUCE), rate, demand, 3e6) for u, rate, demand in clients_used)
    return Usage(broker, NOW, tuple(uses), cluster)


def test_a_record_says_which_cluster_broker_run_and_time_it_is_of(spark: SparkSession) -> None:
    found = computed(spark, [usage("1", ("alice", 1e6, None)), usage("2")])
    one = found["1"]
    assert (one.broker, one.cluster, one.run, one.sequence, one.computed_at) == ("1", "c", 7, 42, NOW)
    assert [each.clients[0].share for each in (one, found["2"])] == pytest.approx([2.925e6, 75e3])


def test_a_broker_that_is_removed_neither_counts_nor_has_a_record(spark: SparkSession) -> None:
    found = computed(spark, [usage("1", ("alice", 1e6, None)), usage("2")], removed=["3"])
    assert found.keys() == {"1", "2"}


def test_each_cluster_is_divided_by_itself_and_so_is_one_without_a_name(spark: SparkSession) -> None:
    usages = [usage("1", ("alice", 1, None)), usage("2", ("alice", 1, None), cluster="d"), usage("3", cluster="")]
    found = computed(spark, usages)
    assert [found[b].cluster for b in "123"] == ["c", "d", ""]
    assert [[s.share for s in found[b].clients] for b in "12"] == [[pytest.approx(3e6)]] * 2
    assert found["3"].clients == ()


def test_a_record_holds_the_busiest_clients_and_no_more_than_fit(spark: SparkSession) -> None:
    many = [usage(str(b), *((f"u{b}-{n:03}", b * 1000.0 + n, None) for n in range(200))) for b in (1, 2)]
    assert len(computed(spark, many)["1"].clients) == MAX_CLIENTS
    long = [usage(str(n), (f"{n}" * (MAX_NAMES // 3), float(n), None)) for n in range(5)]
    found = computed(spark, long)
    assert [each.key.principal[0] for each in found["0"].clients] == ["4", "3"]
    assert {b: [s.key for s in max_min.shares(long)[b]] for b in found} == {
        b: [s.key for s in each.clients] for b, each in found.items()
    }


GOOD: dict[str, Any] = json.loads(usage_records.encode(usage("1", ("alice", 1e6, None))))
CLIENT: dict[str, Any] = GOOD["clients"][0]
BAD: list[tuple[Record, str]] = [
    ((None, b"{}"), "key"),
    ((b"2", json.dumps(GOOD).encode()), "key"),
    ((b"1", b"not json"), "json"),
    ((b"1", b"\xff\xfe"), "json"),
    ((b"1", b""), "json"),
    ((b"1", b"[]"), "json"),
    ((b"1", b"null"), "json"),
    ((b"1", b" " * (1024 * 1024 + 1)), "size"),
    *(
        ((b"1", json.dumps(GOOD | change).encode()), reason)
        for change, reason in (
            ({"version": 2}, "version"),
            ({"version": None}, "version"),
            ({"brokerId": None}, "key"),
            ({"usageAt": "1649336400"}, "schema"),
            ({"usageAt": "2026-13-21T21:30:00Z"}, "schema"),
            ({"usageAt": None}, "schema"),
            ({"clients": None}, "schema"),
            ({"clients": "all"}, "json"),
            ({"clients": [None]}, "schema"),
            ({"clients": [CLIENT, CLIENT]}, "schema"),
            ({"clients": [CLIENT | {"user": str(n)} for n in range(MAX_CLIENTS + 1)]}, "schema"),
            ({"clients": [CLIENT | {"user": "u" * MAX_NAMES}]}, "size"),
        )
    ),
    *(
        ((b"1", json.dumps(GOOD | {"clients": [CLIENT | change]}).encode()), reason)
        for change, reason in (
            ({"rate": -1}, "schema"),
            ({"rate": float("nan")}, "schema"),
            ({"rate": None}, "schema"),
            ({"rate": "much"}, "json"),
            ({"demand": -1}, "schema"),
            ({"quota": 0}, "schema"),
            ({"quota": float("inf")}, "schema"),
            ({"user": None}, "schema"),
            ({"quotaType": "REQUEST"}, "schema"),
        )
    ),
]


def test_a_refused_record_has_its_reason_and_brokers_refuse_it_too(spark: SparkSession) -> None:
    rows = pipeline.parse(raw(spark, [record for record, _ in BAD])).orderBy("offset").collect()
    assert [(n, (row.error or "taken").split(":")[0]) for n, row in enumerate(rows)] == [
        (n, reason) for n, (_, reason) in enumerate(BAD)
    ]
    for (key, value), _ in BAD:
        with pytest.raises(Refused):
            usage_records.decode(key, value or b"")


def test_times_are_taken_and_refused_as_by_the_brokers(spark: SparkSession) -> None:
    texts = [*times.TAKEN, *times.REFUSED]
    records = [(b"1", json.dumps(GOOD | {"usageAt": text}).encode()) for text in texts]
    rows = pipeline.parse(raw(spark, records)).orderBy("offset").collect()
    taken = {text: row.ts.replace(tzinfo=UTC) for text, row in zip(texts, rows, strict=True) if not row.error}
    assert taken == times.TAKEN


def test_usage_from_the_future_is_refused_as_it_would_stay_the_newest(spark: SparkSession) -> None:
    record = (b"1", json.dumps(GOOD).encode())
    for late, error in ((61, "schema: usageAt is in the future"), (59, None)):
        (row,) = pipeline.parse(raw(spark, [record], NOW - timedelta(seconds=late))).collect()
        assert row.error == error


def test_the_fields_of_a_record_and_where_it_came_from_are_columns(spark: SparkSession) -> None:
    (row,) = pipeline.parse(raw(spark, [(b"1", json.dumps(GOOD | {"more": 1}).encode())])).collect()
    assert (row.clusterId, row.brokerId, row.removed, row.error) == ("c", "1", False, None)
    assert row.ts.replace(tzinfo=UTC) == NOW
    assert row.clients[0].asDict() == CLIENT
    assert (row.key, row.topic, row.partition, row.offset) == (b"1", "u", 0, 0)


def test_a_tombstone_removes_its_broker(spark: SparkSession) -> None:
    (row,) = pipeline.parse(raw(spark, [(b"1", None)])).collect()
    assert (row.brokerId, row.removed, row.clients, row.error) == ("1", True, [], None)


def test_a_stream_is_parsed_as_a_batch_is(spark: SparkSession, tmp_path: Path) -> None:
    """``k``, ``v``: a record's key and value as text."""
    rows = [{"k": "1", "v": json.dumps(GOOD)}, {"k": "2", "v": "nonsense"}]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/records.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = spark.readStream.schema("k STRING, v STRING").json(str(tmp_path / "in"))
    stream = records.selectExpr(
        "binary(k) AS key", "binary(v) AS value", "'u' AS topic", "0 AS partition", "0L AS offset",
        "timestamp'2026-11-21 21:30:00' AS timestamp",
    )  # fmt: skip
    parsed = pipeline.parse(stream)
    assert parsed.isStreaming
    writer = parsed.writeStream.format("memory").queryName("parsed").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(60)
    found = spark.table("parsed").orderBy("brokerId").collect()
    assert [(row.brokerId, row.error is None) for row in found] == [("1", True), ("2", False)]
