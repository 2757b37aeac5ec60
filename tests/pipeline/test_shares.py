"""Spark computes the same shares as the plain model, and takes or refuses each record as brokers do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from harness import max_min
from harness.rollup import Record
from quotahost.model import QuotaType
from quotahost.pipeline import queries
from quotahost.pipeline import shares as pipeline
from quotahost.pipeline.clock import WITNESSES, KafkaClock, Written
from quotahost.pipeline.options import Options
from quotahost.records import shares as share_records
from quotahost.records import usage as usage_records
from quotahost.records.codec import Refused
from quotahost.records.shares import Shares
from quotahost.records.usage import MAX_CLIENTS, MAX_NAMES, Usage, Used
from tests.pipeline.records import Planned, record, sent

NOW = datetime(2026, 11, 21, 21, 30, tzinfo=UTC)
MS = int(NOW.timestamp() * 1000)
VALIDITY = 15_000
FEW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))


PARSED = Planned(lambda given: pipeline.parse(given, "c").orderBy("offset"))
SHARES = Planned(
    lambda given, known: pipeline.shares(
        pipeline.parse(given, "c"), MS, timedelta(milliseconds=VALIDITY), 7, 42,
        expiry=timedelta(days=1), listed=known, partitions=1,
    )
)  # fmt: skip


def all_computed(
    spark: SparkSession, usages: Sequence[Usage], removed: Sequence[str] = ()
) -> dict[tuple[str, str], Shares]:
    """The shares by cluster and broker; usage and shares go through their records."""
    given = sent(usages, usage_records.encode)
    given += [record(len(given) + n, broker, None, NOW) for n, broker in enumerate(removed)]
    assert {row.error for row in PARSED(spark, given)} <= {None, "cluster"}
    found = SHARES(spark, given, (*"01234", "10", "\u00fc"))
    decoded = [share_records.decode(row.key.encode(), row.value.encode()) for row in found]
    by_broker = {(each.cluster, each.broker): each for each in decoded}
    assert len(by_broker) == len(decoded)
    return by_broker


names = st.sampled_from(["alice", "bob", "", "é:\t\0", "\U0001f989", "\uffee"])
types = st.sampled_from([QuotaType.PRODUCE, QuotaType.FETCH])
rates = st.sampled_from([0.0, 1.0, 5e5, 1e6, 1e308]) | st.floats(0, 1e9)
quotas = st.sampled_from([1.0, 3e6, 5e-324, 1.7e308]) | st.floats(0.01, 1e12)
used = st.builds(Used, names, names, types, rates, st.none() | rates, quotas)
clients = st.lists(used, max_size=5, unique_by=lambda one: one.key).map(tuple)
ages = st.sampled_from([0, VALIDITY, VALIDITY + 1, 10 * VALIDITY])


@st.composite
def cluster(draw: st.DrawFn) -> list[Usage]:
    brokers = draw(st.lists(st.sampled_from(["1", "2", "3", "10", "\u00fc"]), unique=True, min_size=1))
    return [Usage(b, NOW - timedelta(milliseconds=draw(ages)), draw(clients)) for b in brokers]


@FEW
@given(st.lists(cluster(), min_size=10, max_size=40))
def test_the_shares_are_those_of_the_plain_model(spark: SparkSession, clusters: list[list[Usage]]) -> None:
    """An example has many clusters, because most of the time is Spark's planning."""
    named = [[replace(u, cluster=f"c{n}") for u in usages] for n, usages in enumerate(clusters)]
    found = all_computed(spark, [usage for usages in named for usage in usages])
    for usages in named:
        silent = {u.broker for u in usages if u.captured_at < NOW - timedelta(milliseconds=VALIDITY)}
        for broker, expected in max_min.shares(usages, silent).items():
            got = found.pop((usages[0].cluster, broker)).clients
            assert [(s.key, s.quota) for s in got] == [(s.key, s.quota) for s in expected]
            # A quota may be the smallest float, and a share of it has few digits.
            assert [s.share for s in got] == pytest.approx([s.share for s in expected], rel=1e-12, abs=1e-320)
    assert found == {}


def usage(broker: str, *clients_used: tuple[str, float, float | None], cluster: str = "c") -> Usage:
    uses = (Used(u, "app", QuotaType.PRODUCE, rate, demand, 3e6) for u, rate, demand in clients_used)
    return Usage(broker, NOW, tuple(uses), cluster)


def test_a_record_says_which_cluster_broker_run_and_time_it_is_of(spark: SparkSession) -> None:
    """Broker 3 was removed; it neither counts nor has a record."""
    usages = [usage("1", ("alice", 1e6, None)), usage("2", cluster="")]
    found = all_computed(spark, usages, removed=["3"])
    assert found.keys() == {("c", "1"), ("c", "2")}
    one, two = found["c", "1"], found["c", "2"].clients[0]
    assert (one.broker, one.cluster, one.run, one.sequence, one.computed_at) == ("1", "c", 7, 42, NOW)
    assert one.clients[0].share == pytest.approx(2.925e6)
    assert two.share / two.quota == pytest.approx(0.025)


def test_a_record_holds_the_busiest_clients_and_no_more_than_fit(spark: SparkSession) -> None:
    many = [usage(str(b), *((f"u{b}-{n:03}", b * 1e3 + n, None) for n in range(200)), cluster="many") for b in (1, 2)]
    names = ["pqstu"[n] * (pipeline.MAX_CLIENT - 2) for n in range(5)]
    long = [usage(str(n), (name, 1.0, None), ("alice", 1.0, None), cluster="long") for n, name in enumerate(names)]
    wide = [usage(str(n), *((f"{n}{k:02}" * 500, 1.0, None) for k in range(50)), cluster="wide") for n in range(3)]
    found = {key: [s.key for s in each.clients] for key, each in all_computed(spark, [*many, *long, *wide]).items()}
    assert len(found["many", "1"]) == MAX_CLIENTS
    assert {key.principal for key in found["long", "0"]} == {"alice"}
    assert len(found["wide", "0"]) == MAX_NAMES // 1503
    assert {broker: [s.key for s in each] for broker, each in max_min.shares(wide).items()} == {
        broker: keys for (cluster, broker), keys in found.items() if cluster == "wide"
    }


def test_usage_of_brokers_that_were_never_listed_and_of_expired_ones_counts_for_nothing(spark: SparkSession) -> None:
    honest = [usage("1", ("alice", 1e6, None)), usage("2", ("alice", 1e6, None))]
    invented = [usage(str(n), ("alice", 1e308, None)) for n in range(100, 400)]
    late = [replace(usage("3", ("alice", 1.0, None)), captured_at=NOW - timedelta(days=2))]
    usages = sent([*honest, *invented, *late], usage_records.encode)
    found = {row.key: row.value for row in SHARES(spark, usages, ("1", "2", "3"))}
    expected = {row.key: row.value for row in SHARES(spark, usages[:2], ("1", "2"))}
    assert found == expected
    assert found.keys() == {"1", "2"}


def test_a_broker_that_is_down_counts_on() -> None:
    made = queries.Queries(MagicMock(), Options(bootstrap="a:1", checkpoint="/c"), "c", KafkaClock(), MagicMock())
    made.registered(["1", "2"])
    made.registered(["1"])
    assert made.listed == {"1", "2"}


class World:
    """A publisher and its clocks; its records are kept and not written to Kafka."""

    def __init__(self, spark: SparkSession, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spark, self.directory, self.partitions, self.seconds = spark, directory, 1, 0.0
        self.batch, self.fails, self.other_leads = 0, False, False
        self.known = [*map(str, range(8)), "2147483647", "x"]
        monkeypatch.setattr(pipeline, "kafka_sink", lambda writer, *_: Sink(self, writer))
        leader: Any = SimpleNamespace(role=lambda: (self.other_leads, 7))
        self.clock = KafkaClock(lambda: MS, lambda: 0)
        self.publisher = pipeline.SharesPublisher(
            Options(bootstrap="b:1", checkpoint="/c"), leader, self.clock, lambda: self.known,
            lambda: self.partitions, lambda: self.seconds,
        )  # fmt: skip
        self.written: dict[str, Shares] = {}

    def publish(self, *usages: Usage) -> set[str]:
        """Publishes a batch; returns the brokers whose records were written."""
        self.written, self.batch = {}, self.batch + 1
        self.publisher(PARSED.frame(self.spark, sent(usages, usage_records.encode)), self.batch)
        return set(self.written)


class Sink:
    """Stands for the writer to Kafka."""

    def __init__(self, world: World, writer: Any) -> None:
        self._world, self._writer = world, writer

    def save(self) -> None:
        if self._world.fails:
            raise ConnectionError("Kafka is down")
        self._writer.mode("overwrite").json(str(self._world.directory))
        for line in "".join(file.read_text() for file in self._world.directory.glob("*.json")).splitlines():
            row = json.loads(line)
            assert row["partition"] == share_records.partition_of(row["key"], self._world.partitions)
            self._world.written[row["key"]] = share_records.decode(row["key"].encode(), row["value"].encode())


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, tmp_path / "written", monkeypatch)


def test_shares_that_are_unchanged_are_not_written_again_but_every_few_seconds(world: World) -> None:
    one, two = usage("1", ("alice", 1e6, None)), usage("2", ("bob", 1e6, 1e6))
    assert world.publish(one, two, usage("3")) == {"1", "2", "3"}
    assert world.publish(one, two, usage("3")) == set()
    world.seconds = 3
    assert world.publish(usage("1", ("alice", 9e5, None)), two, usage("3")) == set(), "a rate alone changes no share"
    busier = usage("2", ("bob", 1e6, 1.01e6))
    assert world.publish(one, busier, usage("3")) == {"2"}, "on other brokers bob's share changes only in steps"
    world.seconds = 5
    assert world.publish(one, busier, usage("3")) == {"1", "3"}
    world.seconds, world.batch = 8, 0
    assert world.publish(one, busier, usage("3")) == {"2"}
    assert world.written["2"].sequence == 5, "a restarted query repeats its first batch, with a newer sequence"


def test_a_broker_that_comes_or_goes_is_news_for_all(world: World) -> None:
    one, two = usage("1", ("alice", 1e6, None)), usage("2")
    world.publish(one)
    assert world.publish(one, two) == {"1", "2"}
    world.known = ["1", "2"]
    assert world.publish(one, two, usage("4")) == set(), "broker 4 isn't registered"


def test_what_was_not_written_and_after_more_partitions_and_after_a_standby_all_is_written(world: World) -> None:
    usages = [usage(broker, ("alice", 1e6, None)) for broker in ("0", "1", "7", "2147483647", "x")]
    world.fails = True
    with pytest.raises(ConnectionError):
        world.publish(*usages)
    world.fails = False
    assert len(world.publish(*usages)) == 5
    world.partitions = 3
    assert len(world.publish(*usages)) == 5
    world.other_leads = True
    assert world.publish(*usages) == set()
    world.other_leads = False
    assert len(world.publish(*usages)) == 5


def test_the_shares_go_by_kafkas_clock(world: World) -> None:
    for _ in range(WITNESSES):
        world.clock.correct(Written(MS, MS + 3_600_000, MS))
    world.publish(usage("1", ("alice", 1e6, None)), usage("2"))
    assert world.written["1"].clients == (), "the usage is an hour old, so it counts for nothing"
    assert world.written["1"].computed_at == NOW + timedelta(hours=1)


GOOD: dict[str, Any] = json.loads(usage_records.encode(usage("1", ("alice", 1e6, None))))
CLIENT: dict[str, Any] = GOOD["clients"][0]
TEXT = json.dumps(GOOD)


def bad(reason: str, *values: bytes, key: bytes | None = b"1") -> list[tuple[bytes | None, bytes, str]]:
    return [(key, value, reason) for value in values]


def changed(reason: str, *changes: dict[str, Any]) -> list[tuple[bytes | None, bytes, str]]:
    """Good records with changed fields; a field of a client is changed in the record's client."""
    made = [{"clients": [CLIENT | each]} if each.keys() <= CLIENT.keys() | {"bytes"} else each for each in changes]
    return bad(reason, *(json.dumps(GOOD | each).encode() for each in made))


BAD = [
    *bad("key", b"{}", key=None),
    *bad("key", TEXT.encode(), key=b"2"),
    *bad("key", json.dumps(GOOD | {"brokerId": "1" * 2000}).encode(), key=b"1" * 2000),
    *bad("json", b"not json", b"\xff\xfe", b"", b"[]", b"null", TEXT.replace('"', "'").encode()),
    *bad("json", *(f"{TEXT}{after}".encode() for after in ("x", "}", "{}", "]x}", ",{}"))),
    *bad("size", b" " * (1024 * 1024 + 1)),
    *changed("json", {"more": "\ud800"}, {"clients": "all"}, {"rate": "much"}),
    *changed("version", {"version": 2}, {"version": None}),
    *changed("key", {"brokerId": None}),
    *changed("schema", {"usageAt": "1649336400"}, {"usageAt": "2026-13-21T21:30:00Z"}, {"usageAt": None}),
    *changed("schema", {"clients": None}, {"clients": [None]}, {"clients": [CLIENT, CLIENT]}),
    *changed("schema", {"clients": [CLIENT | {"user": str(n)} for n in range(MAX_CLIENTS + 1)]}),
    *changed("size", {"user": "u" * MAX_NAMES}),
    *changed("schema", {"rate": -1}, {"rate": float("nan")}, {"rate": None}, {"demand": -1}, {"bytes": -1}),
    *changed("schema", {"quota": 0}, {"quota": float("inf")}, {"user": None}, {"quotaType": "REQUEST"}),
]


def parsed(spark: SparkSession, *pairs: tuple[bytes | None, bytes | None]) -> list[Row]:
    return PARSED(spark, [Record("u", 0, n, NOW, *pair) for n, pair in enumerate(pairs)])


def test_a_refused_record_has_its_reason_and_brokers_refuse_it_too(spark: SparkSession) -> None:
    rows = parsed(spark, *((key, value) for key, value, _ in BAD))
    assert [row.error for row in rows] == [reason for *_, reason in BAD]
    for key, value, _ in BAD:
        with pytest.raises(Refused):
            usage_records.decode(key, value)


def test_a_version_with_a_fraction_of_zeros_is_that_version_as_for_the_brokers(spark: SparkSession) -> None:
    versions = ("1", "1.0", "1e0", "1.5", "2.0")
    given = [(b"1", TEXT.replace('"version": 1', f'"version": {each}').encode()) for each in versions]
    assert [row.error is None for row in parsed(spark, *given)] == [True] * 3 + [False] * 2
    assert len({usage_records.decode(*each) for each in given[:3]}) == 1
