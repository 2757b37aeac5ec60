"""The pipeline refuses records of the snapshots topic as brokers do, for the same reasons."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as records
from quotahost.pipeline.frames import MAX_OF_STRANGER, large_of_stranger, seen_at
from quotahost.pipeline.history import readings
from quotahost.records.cluster_volumes import MAX_LISTED
from quotahost.records.fields import MAX_DELAY_MS, delay_ms
from quotahost.records.snapshot import MAX_BYTES, decode
from tests.pipeline.support.records import NOW, Planned, ago, frame, limit, record, snapshot, volume
from tests.reference import volumes as model
from tests.reference.volumes import Record
from tests.unit.records import test_times as times

GOOD = [volume("a", 100, 40)]
CLUSTERS = {"snapshots": "home", "mirrored": "away"}
PARSED = Planned(lambda given, of_clusters: records.parse(given, CLUSTERS if of_clusters else None).orderBy("offset"))
REFUSED = {
    "no JSON": (b"{nonsense", "json"),
    "no text": (b"\xff\xfe", "json"),
    "nothing": (b"", "json"),
    "no object": (b"[1]", "schema"),
    "no fields": (b"{}", "schema"),
    "another version": (snapshot("1", NOW, GOOD, schemaVersion=2), "version"),
    "another broker's key": (snapshot("2", NOW, GOOD), "key"),
    "a broker without volumes": (snapshot("1", NOW, GOOD).replace(b"volumes", b"columns"), "schema"),
    "no time": (snapshot("1", NOW, GOOD, snapshotAt="yesterday"), "schema"),
    "a time without zone": (snapshot("1", NOW, GOOD, snapshotAt="2026-01-01T00:00:00"), "schema"),
    "a time in seconds": (snapshot("1", NOW, GOOD, snapshotAt="1767225600"), "schema"),
    "a negative size": (snapshot("1", NOW, [volume("a", -1, 0)]), "schema"),
    "a size with a fraction": (snapshot("1", NOW, GOOD).replace(b'"capacity": 100', b'"capacity": 1.5'), "schema"),
    "a size beyond a long": (snapshot("1", NOW, [volume("a", 2**63, 0)]), "schema"),
    "a volume without a name": (snapshot("1", NOW, GOOD).replace(b"volumeName", b"name"), "schema"),
    "a negative consumption": (snapshot("1", NOW, [*GOOD, volume("b", 1, -2)]), "schema"),
    "a volume without a size": (snapshot("1", NOW, [*GOOD, {"volumeName": "b", "consumed": 1}]), "schema"),
    "no volume at all": (snapshot("1", NOW, [*GOOD, None]), "schema"),
    "no name beside an empty one": (snapshot("1", NOW, [volume("", 1, 0), {"capacity": 1, "consumed": 0}]), "schema"),
    "no name of an offline directory": (snapshot("1", NOW, GOOD, offlineLogDirs=["/a", None]), "schema"),
    "a long name of one": (snapshot("1", NOW, GOOD, offlineLogDirs=["n" * 1025]), "schema"),
    "too many of them": (snapshot("1", NOW, GOOD, offlineLogDirs=["/a"] * 1025), "schema"),
    "no list of them": (snapshot("1", NOW, GOOD, offlineLogDirs="/a"), "schema"),
    "no name of a topic": (snapshot("1", NOW, [volume("a", 1, 1), volume("b", 1, 1, topics=["t", None])]), "schema"),
    "no topic's name": (snapshot("1", NOW, [volume("a", 1, 1, topics=["t", "a b"])]), "schema"),
    "a line break in one": (snapshot("1", NOW, [volume("a", 1, 1, topics=["t\n"])]), "schema"),
    "a long one": (snapshot("1", NOW, [volume("a", 1, 1, topics=["t" * 250])]), "schema"),
    "too many topics": (snapshot("1", NOW, [volume("a", 1, 1, topics=["t"] * 1001)]), "schema"),
    "no list of topics": (snapshot("1", NOW, [volume("a", 1, 1, topics="t")]), "schema"),
    "another cluster": (snapshot("1", NOW, GOOD, clusterId="away"), "cluster"),
    "a long name": (snapshot("1", NOW, [volume("n" * 1025, 1, 0)]), "schema"),
    "half a volume's limit": (snapshot("1", NOW, [*GOOD, volume("b", 1, 0, hardLimit={"level": 5})]), "limit"),
    "one name twice": (snapshot("1", NOW, [*GOOD, *GOOD]), "volumes"),
    "an unknown limit": (snapshot("1", NOW, GOOD, softLimit=limit("Most", 1)), "limit"),
    "half a limit": (snapshot("1", NOW, GOOD, hardLimit={"type": "MinFreeBytes"}), "limit"),
    "more than all": (snapshot("1", NOW, GOOD, hardLimit=limit("MinFreePercentage", 101)), "limit"),
    "a volume's wrong limit": (snapshot("1", NOW, [volume("a", 1, 0, softLimit=limit("x", 1))]), "limit"),
    "an age below 0": (snapshot("1", NOW, GOOD, ageMs=-1), "schema"),
    "an age with a fraction": (snapshot("1", NOW, GOOD, ageMs=1.5), "schema"),
    "an age as a text": (snapshot("1", NOW, GOOD, ageMs="5"), "schema"),
    "an age beyond a long": (snapshot("1", NOW, GOOD, ageMs=2**63), "schema"),
    "too large": (snapshot("1", NOW, GOOD, padding="x" * 300_000), "size"),
}


def parsed(spark: SparkSession, given: Sequence[Record], of_clusters: bool = False) -> list[Row]:
    """The pipeline's rows, in the order of the records."""
    return PARSED(spark, given, of_clusters)


def test_a_record_is_refused_for_the_same_reason_by_pipeline_and_brokers(spark: SparkSession) -> None:
    given = [record(n, "1", value) for n, (value, _) in enumerate(REFUSED.values())]
    errors = [row["error"] for row in parsed(spark, given, of_clusters=True)]
    assert dict(zip(REFUSED, errors, strict=True)) == {name: reason for name, (_, reason) in REFUSED.items()}
    assert {name: model.refusal(each, CLUSTERS) for name, each in zip(REFUSED, given, strict=True)} == {
        name: reason for name, (_, reason) in REFUSED.items()
    }


#: Numbers for the integer fields of a snapshot: JSON has many forms of an integer, and some that are none.
NUMBERS = [
    "7", "5.0", "5.00", "5e0", "5E+1", "50e-1", "1.5e1", "-0.0", "0e0", "1.073741824E11", "9007199254740991.0",
    "9007199254740992.0", "9007199254740993.0", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "9.223372036854775807e18", "1e400", "1e999999999", "1e-999999999", "1.5", "-5.0", "15e-1", "5.", ".5", "05.0",
    "+5.0", "5.0.0", "5e", "5e+", "--5.0", "NaN", "Infinity", '"5.0"', "true", "null", "[5.0]", '{"5.0":5.0}',
    "5.0 5.0",
]  # fmt: skip
#: Where a snapshot has an integer; @ stands for the number. Texts and unknown fields with numbers stay as they are.
PLACES = (
    r'"volumes": [{"volumeName":"5.0 \\\" : 6.0,", "capacity": @, "consumed":0, "other":[6.0, 1e3]}], "hardLimit":{}',
    '"volumes":[{"volumeName":"a","capacity":10,"consumed":@}],"hardLimit":{}',
    '"volumes":[],"hardLimit":{"type":"MinFreeBytes","level":@}',
    '"volumes":[{"volumeName":"a","capacity":1,"consumed":1,"softLimit":{"level":@,"type":"MinFreePercentage"}}],'
    '"hardLimit":{}',
    '"volumes":[],"hardLimit":{},"ageMs":@',
    '"volumes":[],"hardLimit":{},"schemaVersion":@',
)


def with_number(place: str, number: str) -> bytes:
    head = '{"brokerId":"1","snapshotAt":"2026-01-02T03:04:05.000Z","softLimit":{},'
    return f"{head}{place.replace('@', number)}}}".encode()


@pytest.mark.proves("proposal-035.schema-integers")
def test_an_integer_of_json_is_one_in_all_its_forms_for_pipeline_and_brokers(spark: SparkSession) -> None:
    """Draft 7 of JSON Schema takes 5.0 and 5e0 for integers; a text of digits is none."""
    given = [
        record(n, "1", with_number(place, number))
        for n, (place, number) in enumerate((place, number) for place in PLACES for number in NUMBERS)
    ]
    rows = parsed(spark, given)
    refused = [each.value for each, row in zip(given, rows, strict=True) if row["error"]]
    assert refused == [each.value for each in given if model.refusal(each)]
    for each, row in zip(given, rows, strict=True):
        if not row["error"]:
            snapshot = decode(b"1", each.value or b"")
            assert [(v["volumeName"], v["capacity"], v["consumed"]) for v in row["s"]["volumes"]] == [
                (v.name, v.capacity, v.consumed) for v in snapshot.volumes
            ]
            assert row["s"]["hardLimit"]["level"] == (snapshot.hard and snapshot.hard.level)
            assert row["s"]["ageMs"] == snapshot.age_ms
    taken = {number for number in NUMBERS if model.refusal(record(0, "1", with_number(PLACES[0], number))) is None}
    assert taken >= {"5.0", "5e0", "1.073741824E11", "9007199254740991.0", "9223372036854775807"}
    assert not taken & {"9007199254740992.0", "1.5", "1e400", '"5.0"', "05.0"}


def test_a_text_that_is_never_closed_is_refused_and_looked_through_once(spark: SparkSession) -> None:
    """If each of its quotes began a search to the end, the largest record would take minutes."""
    given = record(0, "1", b"{" + b'\\"' * ((MAX_BYTES - 1) // 2))
    assert [row["error"] for row in parsed(spark, [given])] == [model.refusal(given)]


#: What may stand in the place of a text; @ stands for any of the others.
OTHERS = [
    "7", "-7", "1.5", "5e0", "1e400", "NaN", "Infinity", "-Infinity", "true", "false", "null", "{}", "[]", '["t"]',
    "[7]", '[["t"]]', "[[null]]", '["t", 7]', "[null]", '["t", [7, "u"], null]', '{"a":1}', '{"a":1,"a":2}', '"7"',
    '"true"', '"null"', '"[7]"', '"-"', '"\\u0037"', '["7"]', '["true", "NaN", "-1"]', '["\\u0037"]', '[["7"]]',
]  # fmt: skip
TEXTS = (
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1,"topics":@}]'),
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1},'
                '{"volumeName":"b","capacity":1,"consumed":1,"topics":["t",@]}]'),
    ("volumes", '[{"volumeName":@,"capacity":1,"consumed":1}]'),
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1,"softLimit":@}]'),
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1,"softLimit":{"type":@,"level":1}}]'),
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1,"other":[@, null]}]'),
    ("clusterId", "@"),
    ("brokerId", "@"),
    ("snapshotAt", "@"),
    ("hardLimit", '{"type":@,"level":1}'),
    ("offlineLogDirs", "@"),
    ("offlineLogDirs", '["/a",@]'),
    ("other", '{"brokerId":"1","clusterId":@}'),
)  # fmt: skip


def with_other(name: str, place: str, value: str) -> bytes:
    fields = {"brokerId": '"7"', "snapshotAt": '"2026-01-02T03:04:05Z"', "softLimit": "{}", "hardLimit": "{}"}
    fields |= {"volumes": "[]", name: place.replace("@", value)}
    return ("{" + ",".join(f'"{key}":{text}' for key, text in fields.items()) + "}").encode()


def test_what_is_no_text_is_taken_for_none_as_by_the_brokers(spark: SparkSession) -> None:
    """from_json takes 7 for "7", true for "true", and null for a field that is left out."""
    given = [
        record(n, "7", with_other(name, place, value))
        for n, (name, place, value) in enumerate((*place, value) for place in TEXTS for value in OTHERS)
    ]
    rows = parsed(spark, given)
    found = {each.value: row["error"] for each, row in zip(given, rows, strict=True)}
    expected = {each.value: model.refusal(each) for each in given}
    assert {value: reason is None for value, reason in found.items()} == {
        value: reason is None for value, reason in expected.items()
    }
    for value, reason in expected.items():  # what stands for no JSON: NaN, or a key twice, is "json" for Spark
        assert found[value] == reason or found[value] == "json", value
    assert {bool(reason) for reason in found.values()} == {True, False}


scalars = st.sampled_from(["t", "7", "-1", "true", "NaN", "a b", "", None, 7, -1.5, 10**30, True])
topics = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("t"), inner))


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@drawn_from(st.lists(st.tuples(topics, st.lists(topics, max_size=4)), min_size=100, max_size=300))
def test_any_topics_are_taken_or_refused_as_by_the_brokers(spark: SparkSession, drawn: list[tuple[Any, Any]]) -> None:
    """Many records at once: what takes the time is Spark's planning."""
    volumes = [[volume("a", 1, 1, topics=first), volume("b", 1, 1, topics=second)] for first, second in drawn]
    made = [record(n, "1", snapshot("1", NOW, each)) for n, each in enumerate(volumes)]
    rows = parsed(spark, made)
    assert [(each.value, row["error"]) for each, row in zip(made, rows, strict=True)] == [
        (each.value, model.refusal(each)) for each in made
    ]


# ---- odd JSON --------------------------------------------------------------------------------------

#: Values of JSON, and what looks like some, for a field that nobody knows and for those that are known.
ODD = [
    "1", '"/b"', "{}", "null", '{"a":1,"a":2}', '{"a":{"b":[{}]}}', '"}"', '"{"', r'"\"}"', '"[1"', r'"\u0037"',
    "NaN", "Infinity", "-Infinity", "-NaN", "INF", "-INF", "+INF", "+Infinity", "NaN5", "5NaN", "nul", "True",
    "1e999", "-1e999", "1e-999", "+1", "01", "1.", "0x1", "9" * 400, "9" * 2000, "9" * 2001, "-" + "9" * 1999,
    "-" + "9" * 2000, "1." + "0" * 1996 + "e1", "1." + "0" * 1997 + "e1", "1." + "0" * 1200 + "e" + "1" * 1200,
    '"' + "e" * 2001 + '"',
    r'"\ud800"', r'"\udc00"', r'"\ud83d\ude00"',
    r'"\\ud800"', r'"\\\ud800"', r'"\ud800\u0041"', '"\\x"', '"\x01"', '"\t"',
    "'a'", "/*c*/1", "1/*c*/", "#c\n1", "a", "", *("[" * levels + "]" * levels for levels in (199, 200, 201, 202, 999)),
]  # fmt: skip
NAMES = [
    '"x"', '"brokerId"', '"volumes"', '"softLimit"', '"ageMs"', '"clusterId"', '"offlineLogDirs"', r'"\ud800"', "'x'",
    "x", '"_corrupt"', '"broker\\u0049d"', '"BROKERID"', '"schemaVersion"', '""',
]  # fmt: skip
BEFORE = ["", "\ufeff", " \n", "//c\n", "\0", "[", "x"]
AFTER = [
    "",
    " \r\n\t",
    "\0",
    "\v",
    "x",
    "}",
    "{}",
    "]",
    "]x}",
    ",{}",
    ',""]',
    "//c",
    "}{",
    ' {"brokerId":"2"}',
    "]}",
    ',"x"]{}',
]
PLAIN = [
    ('"brokerId"', '"1"'), ('"snapshotAt"', '"2026-01-02T03:04:05Z"'), ('"softLimit"', "{}"), ('"hardLimit"', "{}"),
    ('"volumes"', '[{"volumeName":"/a","capacity":10,"consumed":1}]'),
]  # fmt: skip


def odd(fields: list[tuple[str, str]], before: str = "", after: str = "", comma: str = ",") -> bytes:
    text = before + "{" + comma.join(f"{name}:{value}" for name, value in fields) + "}" + after
    return text.encode("utf-8", "surrogatepass")


def of_volume(name: str, value: str) -> list[tuple[str, str]]:
    """A snapshot with another field in its volume, before and after those that are known."""
    known = '"volumeName":"/a","capacity":10,"consumed":1'
    return [*PLAIN[:4], ('"volumes"', f"[{{{name}:{value},{known}}},{{{known.replace('/a', '/b')},{name}:{value}}}]")]


ODD_RECORDS = [
    *(odd([*PLAIN, ('"x"', value)]) for value in ODD),
    *(odd([*PLAIN, (name, "1")]) for name in NAMES),
    *(odd(PLAIN, before) for before in BEFORE),
    *(odd(PLAIN, after=after) for after in AFTER),
    *(odd([(name, value), *PLAIN]) for name, _ in PLAIN for value in ('"1"', "5", "{}")),
    *(odd(of_volume('"capacity"', value)) for value in ('"x"', "10", "10.0")),
    *(odd(of_volume('"softLimit"', value)) for value in ('{"type":5,"type":"MinFreeBytes","level":1}', "{}")),
    odd([*PLAIN[:4], ('"volumes"', '{"volumeName":"/a","capacity":10,"consumed":1}')]),
    odd([*PLAIN, ('"offlineLogDirs"', '{"a":"/b"}')]),
    odd([*PLAIN, ('"offlineLogDirs"', '"/b"')]),
    odd(of_volume('"softLimit"', '[{"type":"MinFreeBytes","level":1}]')),
    odd(PLAIN).replace(b'"', b"'"),
    *(odd(PLAIN).replace(b"/a", bad) for bad in (b"/\xff", b"\xc0\x80", b"\xed\xa0\x80")),
    *(odd(PLAIN).decode().encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-32-be")),
]
odd_fields = st.tuples(st.sampled_from(NAMES), st.sampled_from(ODD))
odd_records = st.builds(
    odd,
    st.builds(
        lambda known, more, at: [*known[:at], *more, *known[at:]],
        st.just(PLAIN) | odd_fields.map(lambda field: of_volume(*field)),
        st.lists(odd_fields, max_size=2),
        st.integers(0, 5),
    ),
    st.just("") | st.sampled_from(BEFORE),
    st.just("") | st.sampled_from(AFTER),
    st.sampled_from([",", ", ", ",\n", ",", ",,"]),
)


def differently(spark: SparkSession, values: list[bytes]) -> list[tuple[bytes, str | None, str | None]]:
    """The values that the pipeline takes and brokers refuse, or the other way round, with both reasons."""
    given = [record(n, "1", value) for n, value in enumerate(values)]
    rows = parsed(spark, given)
    both = [(each.value or b"", model.refusal(each), row["error"]) for each, row in zip(given, rows, strict=True)]
    return [found for found in both if (found[1] is None) != (found[2] is None)]


@pytest.mark.proves("faults.hostile-record")
def test_odd_json_is_taken_or_refused_as_by_the_brokers(spark: SparkSession) -> None:
    """Single quotes, text after the closing brace, and more: brokers and pipeline once knew different volumes by it."""
    assert differently(spark, ODD_RECORDS) == []


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@drawn_from(st.lists(odd_records, min_size=200, max_size=400))
def test_any_odd_json_is_taken_or_refused_as_by_the_brokers(spark: SparkSession, values: list[bytes]) -> None:
    assert differently(spark, values) == []


def test_a_record_without_a_key_is_refused_tombstone_or_not(spark: SparkSession) -> None:
    given = [record(0, None, None), record(1, None, snapshot("1", NOW, GOOD))]
    assert [row["error"] for row in parsed(spark, given)] == ["key", "key"]


def test_a_topic_speaks_for_its_own_cluster_alone(spark: SparkSession) -> None:
    """Who may write to a topic neither pauses another cluster nor invents ten thousand."""
    named = [("snapshots", "home"), ("snapshots", "away"), ("mirrored", "away"), ("mirrored", "x"), ("mirrored", "")]
    given = [
        record(n, "1", snapshot("1", NOW, GOOD, clusterId=cluster), topic=topic)
        for n, (topic, cluster) in enumerate(named)
    ]
    rows = parsed(spark, given, of_clusters=True)
    assert [row["error"] for row in rows] == [None, "cluster", None, "cluster", None]
    assert [row["cluster"] for row in rows if not row["error"]] == ["home", "away", "away"]
    assert [model.refusal(each, CLUSTERS) for each in given] == [row["error"] for row in rows]


def test_the_key_of_a_tombstone_is_bounded_since_it_stays_in_the_state(spark: SparkSession) -> None:
    keys = [b"1", b"k" * 1024, b"k" * 1025, b"k" * 1_000_000, b"\xff\xfe"]
    given = [replace(record(n, "", None), key=key) for n, key in enumerate(keys)]
    errors = [row["error"] for row in parsed(spark, given)]
    assert errors == [None, None, "key", "key", "key"]
    assert [model.refusal(each) for each in given] == errors


def test_a_broker_whose_clock_stands_at_1970_makes_no_day_of_1970_in_the_history(spark: SparkSession) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    by_kafka = record(0, "1", snapshot("1", epoch, GOOD))  # with LogAppendTime it is taken, by Kafka's time
    by_itself = record(1, "1", snapshot("1", epoch, GOOD), epoch)
    rows = records.parse(frame(spark, [by_kafka, by_itself]))
    assert [row["error"] for row in rows.orderBy("offset").collect()] == [None, "time"]
    assert [model.refusal(each) for each in (by_kafka, by_itself)] == [None, "time"]
    days = [row["day"] for row in readings(records.resolved(rows.where("error IS NULL"))).collect()]
    assert days == [NOW.date()]


def test_a_broker_whose_clock_is_hours_ahead_is_taken_as_by_the_brokers_and_dated_by_kafka(spark: SparkSession) -> None:
    ahead = record(0, "1", snapshot("1", NOW + timedelta(hours=2), GOOD, ageMs=250))
    assert model.refusal(ahead) is None
    rows = records.parse(frame(spark, [ahead]))
    (row,) = rows.collect()
    assert (row["error"], row["seen"].replace(tzinfo=UTC)) == (None, NOW - timedelta(milliseconds=250))
    (reading,) = readings(records.resolved(rows)).collect()
    assert reading["at"].replace(tzinfo=UTC) == NOW


def test_times_are_taken_and_refused_as_by_the_brokers(spark: SparkSession) -> None:
    texts = [*times.TAKEN, *times.REFUSED]
    given = [record(n, "1", snapshot("1", NOW, GOOD, snapshotAt=text)) for n, text in enumerate(texts)]
    rows = parsed(spark, given)
    taken = {text: row["at"].replace(tzinfo=UTC) for text, row in zip(texts, rows, strict=True) if not row["error"]}
    assert taken == times.TAKEN


@pytest.mark.parametrize(
    "volumes", [[], [volume("", 1, 0)], [volume("n" * 1024, 1, 0), *GOOD], [volume("a", 0, 0, softLimit={})]]
)
def test_a_rare_but_good_snapshot_is_not_refused(spark: SparkSession, volumes: list[dict[str, object]]) -> None:
    given = record(0, "1", snapshot("1", NOW, volumes))
    assert model.refusal(given) is None
    assert [row["error"] for row in parsed(spark, [given])] == [None]


def test_unknown_fields_are_harmless(spark: SparkSession) -> None:
    given = record(0, "1", snapshot("1", ago(1), [volume("a", 1, 0, colour="red")], nested={"deep": [{}]}))
    assert [row["error"] for row in parsed(spark, [given])] == [None]


def test_of_a_broker_that_the_cluster_does_not_list_little_of_a_large_snapshot_is_remembered(
    spark: SparkSession,
) -> None:
    """A stranger who invents 1,000 brokers of 256 KiB each doesn't fill the memory; a full disk counts on."""
    many = [volume(f"/{n}".ljust(200, "x"), 1000, n, topics=["t"]) for n in range(200)]
    large = snapshot("1", NOW, many, offlineLogDirs=["/o" * 99] * 99)
    assert len(large) > MAX_OF_STRANGER
    by_broker = {"1": large, "9": large.replace(b'"1"', b'"9"'), "8": snapshot("8", NOW, GOOD), "7": None}
    given = [record(n, broker, value) for n, (broker, value) in enumerate(by_broker.items())]
    given.append(record(4, "9", by_broker["9"], topic="mirrored"))
    good = records.parse(frame(spark, given)).where("error IS NULL")
    rows = aggregate.cut_strangers(good, "snapshots", ["1", "2"]).orderBy("offset").collect()
    listed, stranger, small, removed, mirrored = [row["s"] for row in rows]
    assert (listed, small, mirrored) == tuple(good.orderBy("offset").collect()[n]["s"] for n in (0, 2, 4))
    assert removed is None or removed["volumes"] is None
    assert [each["consumed"] for each in stranger["volumes"]] == list(range(199, 199 - MAX_LISTED, -1))
    assert {(len(each["volumeName"]), each["topics"]) for each in stranger["volumes"]} == {(128, None)}
    assert [len(each) for each in stranger["offlineLogDirs"]] == [128] * MAX_LISTED


def test_a_stranger_s_large_usage_is_not_remembered(spark: SparkSession) -> None:
    rows = frame(spark, [record(0, "1", b"x" * 20_000), record(1, "9", b"x" * 20_000), record(2, "9", None)])
    kept = rows.selectExpr("*", "string(key) AS k").where(~large_of_stranger("snapshots", "k", ["1"]))
    assert sorted(row["offset"] for row in kept.collect()) == [0, 2]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = 1_700_000_000_000
VALIDITY = timedelta(seconds=15, milliseconds=1)


def rows() -> list[tuple[Any, ...]]:
    random = Random(35)
    offsets = [0, 1, -1, 999, 1000, 7_499, 7_500, 7_501, 10**6, -(10**6), 10**12]
    found: list[tuple[Any, ...]] = []
    for stated in [None, None, 0, 1, 30_000, MAX_DELAY_MS, MAX_DELAY_MS + 1, 2**63 - 1]:
        for offset in offsets:
            written = EPOCH + timedelta(milliseconds=WRITTEN + random.randint(0, 10**6))
            captured = written - timedelta(milliseconds=offset, microseconds=random.randint(0, 999))
            found += [(stated, captured, written), (stated, None, written)]
    return found


def test_the_rule_in_sql_equals_the_rule_in_python(spark: SparkSession) -> None:
    given = rows()
    frame = spark.createDataFrame(given, "stated BIGINT, captured TIMESTAMP, written TIMESTAMP")
    seen = f"unix_micros({seen_at('stated', 'captured', 'written', VALIDITY)}) AS seen"
    found = frame.selectExpr("stated", "unix_micros(captured) AS c", "unix_millis(written) AS w", seen).collect()
    for stated, captured_us, written_ms, seen_us in found:
        # A tombstone states nothing and was captured when it was written.
        captured = EPOCH + timedelta(microseconds=written_ms * 1000 if captured_us is None else captured_us)
        delay = delay_ms(stated, captured, written_ms, VALIDITY // timedelta(milliseconds=1))
        assert seen_us == (written_ms - delay) * 1000, (stated, captured_us, written_ms)
    assert len(found) == len(given)
