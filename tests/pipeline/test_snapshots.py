"""The pipeline refuses records of the snapshots topic as brokers do, for the same reasons."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jsonschema import Draft7Validator
from pyspark.sql import SparkSession

from harness import rollup as model
from harness.rollup import Record
from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as records
from quotahost.pipeline.frames import MAX_OF_STRANGER
from quotahost.pipeline.history import readings
from quotahost.records.cluster_volumes import MAX_LISTED
from quotahost.records.snapshot import MAX_BYTES, decode
from tests.pipeline.records import NOW, TOPIC, Planned, frame, limit, record, snapshot, volume
from tests.unit.records import examples as times

GOOD = [volume("a", 100, 40)]
CLUSTERS = {"snapshots": "home", "mirrored": "away"}
PARSED = Planned(lambda given, of_clusters: records.parse(given, CLUSTERS if of_clusters else None).orderBy("offset"))


def told(
    volumes: Sequence[dict[str, Any] | None] = GOOD, key: str | None = "1", topic: str = TOPIC, **more: Any
) -> Record:
    """A record of broker 1."""
    return record(0, key, snapshot("1", NOW, volumes, **more), topic=topic)


def odd_bytes(value: bytes) -> Record:
    return record(0, "1", value)


def without(name: bytes, instead: bytes) -> Record:
    return odd_bytes(snapshot("1", NOW, GOOD).replace(name, instead))


def tombstone(key: bytes | None) -> Record:
    return replace(record(0, "", None), key=key)


#: A record and the reason for its refusal (None if it is taken), by the record's oddity.
CASES: dict[str, tuple[Record, str | None]] = {
    "no JSON": (odd_bytes(b"{nonsense"), "json"),
    "nothing": (odd_bytes(b""), "json"),
    # If each quote began a search to the end of the text, the largest record would take minutes.
    "a text that is never closed": (odd_bytes(b"{" + b'\\"' * ((MAX_BYTES - 1) // 2)), "json"),
    "no object": (odd_bytes(b"[1]"), "schema"),
    "no fields": (odd_bytes(b"{}"), "schema"),
    "another version": (told(schemaVersion=2), "version"),
    "another broker's key": (told(key="2"), "key"),
    "no key": (told(key=None), "key"),
    "a broker without volumes": (without(b"volumes", b"columns"), "schema"),
    "no time": (told(snapshotAt="yesterday"), "schema"),
    "a negative size": (told([volume("a", -1, 0)]), "schema"),
    "a volume without a name": (without(b"volumeName", b"name"), "schema"),
    "a negative consumption": (told([*GOOD, volume("b", 1, -2)]), "schema"),
    "a volume without a size": (told([*GOOD, {"volumeName": "b", "consumed": 1}]), "schema"),
    "no volume at all": (told([*GOOD, None]), "schema"),
    "no name beside an empty one": (told([volume("", 1, 0), {"capacity": 1, "consumed": 0}]), "schema"),
    "no name of an offline directory": (told(offlineLogDirs=["/a", None]), "schema"),
    "a long name of one": (told(offlineLogDirs=["n" * 1025]), "schema"),
    "too many of them": (told(offlineLogDirs=["/a"] * 1025), "schema"),
    "no name of a topic": (told([volume("a", 1, 1), volume("b", 1, 1, topics=["t", None])]), "schema"),
    "no topic's name": (told([volume("a", 1, 1, topics=["t", "a b"])]), "schema"),
    "a line break in one": (told([volume("a", 1, 1, topics=["t\n"])]), "schema"),
    "a long one": (told([volume("a", 1, 1, topics=["t" * 250])]), "schema"),
    "too many topics": (told([volume("a", 1, 1, topics=["t"] * 1001)]), "schema"),
    "a long name": (told([volume("n" * 1025, 1, 0)]), "schema"),
    "half a volume's limit": (told([*GOOD, volume("b", 1, 0, hardLimit={"level": 5})]), "limit"),
    "one name twice": (told([*GOOD, *GOOD]), "volumes"),
    "an unknown limit": (told(softLimit=limit("Most", 1)), "limit"),
    "half a limit": (told(hardLimit={"type": "MinFreeBytes"}), "limit"),
    "more than all": (told(hardLimit=limit("MinFreePercentage", 101)), "limit"),
    "a volume's wrong limit": (told([volume("a", 1, 0, softLimit=limit("x", 1))]), "limit"),
    "an age below 0": (told(ageMs=-1), "schema"),
    "too large": (told(padding="x" * 300_000), "size"),
    # A client that may write to a topic can neither pause another cluster nor invent ten thousand clusters.
    "the topic's cluster": (told(clusterId="home"), None),
    "another cluster": (told(clusterId="away"), "cluster"),
    "that of a mirrored topic": (told(clusterId="away", topic="mirrored"), None),
    "another one there": (told(clusterId="x", topic="mirrored"), "cluster"),
    "no cluster's name": (told(clusterId="", topic="mirrored"), None),
    # The state keeps the key of a tombstone, so the key must not be too long.
    "a tombstone": (tombstone(b"1"), None),
    "a tombstone without a key": (tombstone(None), "key"),
    "a long key": (tombstone(b"k" * 1024), None),
    "too long a key": (tombstone(b"k" * 1025), "key"),
    "far too long a key": (tombstone(b"k" * 1_000_000), "key"),
    "no text for a key": (tombstone(b"\xff\xfe"), "key"),
    "no volumes": (told([]), None),
    "a volume of an empty name": (told([volume("", 1, 0)]), None),
    "the longest name": (told([volume("n" * 1024, 1, 0), *GOOD]), None),
    "a limit without fields": (told([volume("a", 0, 0, softLimit={})]), None),
    "unknown fields": (told([volume("a", 1, 0, colour="red")], nested={"deep": [{}]}), None),
}


def test_a_record_is_refused_for_the_same_reason_by_pipeline_and_brokers(spark: SparkSession) -> None:
    given = [replace(each, offset=n) for n, (each, _) in enumerate(CASES.values())]
    expected = {name: reason for name, (_, reason) in CASES.items()}
    rows = PARSED(spark, given, True)
    assert {name: row["error"] for name, row in zip(CASES, rows, strict=True)} == expected
    assert {name: model.refusal(each, CLUSTERS) for name, each in zip(CASES, given, strict=True)} == expected
    of_topic = [row["cluster"] for row in rows if row["topic"] == "mirrored" and not row["error"]]
    assert of_topic == ["away", "away"]


#: Numbers for the integer fields of a snapshot: JSON's many forms of an integer, and texts that are no integer.
NUMBERS = [
    "7", "5.0", "5.00", "5e0", "5E+1", "50e-1", "1.5e1", "-0.0", "0e0", "1.073741824E11", "9007199254740991.0",
    "9007199254740992.0", "9007199254740993.0", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "9.223372036854775807e18", "1e400", "1e999999999", "1e-999999999", "1.5", "-5.0", "15e-1", "5.", ".5", "05.0",
    "+5.0", "5.0.0", "5e", "5e+", "--5.0", "NaN", "Infinity", '"5.0"', "true", "null", "[5.0]", '{"5.0":5.0}',
    "5.0 5.0",
]  # fmt: skip
#: Fields in which a snapshot has an integer; @ stands for it. Texts and unknown fields with numbers stay as they are.
PLACES = (
    ("volumes", r'[{"volumeName":"5.0 \\\" : 6.0,", "capacity": @, "consumed":0, "other":[6.0, 1e3]}]'),
    ("volumes", '[{"volumeName":"a","capacity":10,"consumed":@}]'),
    ("volumes", '[{"volumeName":"a","capacity":1,"consumed":1,"softLimit":{"level":@,"type":"MinFreePercentage"}}]'),
    ("hardLimit", '{"type":"MinFreeBytes","level":@}'),
    ("ageMs", "@"),
    ("schemaVersion", "@"),
)


def with_other(name: str, place: str, value: str) -> bytes:
    """A snapshot of broker 7 with this value in a field."""
    fields = {"brokerId": '"7"', "snapshotAt": '"2026-01-02T03:04:05Z"', "softLimit": "{}", "hardLimit": "{}"}
    fields |= {"volumes": "[]", name: place.replace("@", value)}
    return ("{" + ",".join(f'"{key}":{text}' for key, text in fields.items()) + "}").encode()


@pytest.mark.proves("proposal-035.schema-integers")
def test_an_integer_of_json_is_one_in_all_its_forms_for_pipeline_and_brokers(spark: SparkSession) -> None:
    """In draft 7 of JSON Schema 5.0 and 5e0 are integers; a string of digits is no integer."""
    given = [
        record(n, "7", with_other(*place, number))
        for n, (place, number) in enumerate((place, number) for place in PLACES for number in NUMBERS)
    ]
    rows = PARSED(spark, given, False)
    refused = [each.value for each, row in zip(given, rows, strict=True) if row["error"]]
    assert refused == [each.value for each in given if model.refusal(each)]
    for each, row in zip(given, rows, strict=True):
        if not row["error"]:
            Draft7Validator(times.SNAPSHOT_SCHEMA).validate(json.loads(each.value or b""))
            snapshot = decode(b"7", each.value or b"")
            assert [(v["volumeName"], v["capacity"], v["consumed"]) for v in row["s"]["volumes"]] == [
                (v.name, v.capacity, v.consumed) for v in snapshot.volumes
            ]
            assert row["s"]["hardLimit"]["level"] == (snapshot.hard and snapshot.hard.level)
            assert row["s"]["ageMs"] == snapshot.age_ms
    taken = {number for number in NUMBERS if model.refusal(record(0, "7", with_other(*PLACES[0], number))) is None}
    assert taken >= {"5.0", "5e0", "1.073741824E11", "9007199254740991.0", "9223372036854775807"}
    assert not taken & {"9007199254740992.0", "1.5", "1e400", '"5.0"', "05.0"}


#: Values in the place of a text, which TEXTS marks with @.
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


TEXT_RECORDS = [with_other(name, place, value) for name, place in TEXTS for value in OTHERS]

# ---- odd JSON --------------------------------------------------------------------------------------

#: JSON values, and texts that look like JSON values, for an unknown field and for the known fields.
ODD = [
    "1", '"/b"', "{}", "null", '{"a":1,"a":2}', '{"a":{"b":[{}]}}', '"}"', '"{"', r'"\"}"', '"[1"', r'"\u0037"',
    "NaN", "Infinity", "-Infinity", "-NaN", "INF", "-INF", "+INF", "+Infinity", "NaN5", "5NaN", "nul", "True",
    "1e999", "-1e999", "1e-999", "+1", "01", "1.", "0x1", "9" * 400, "9" * 4300, "9" * 4301,
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
    "", " \r\n\t", "\0", "\v", "x", "}", "{}", "]", "]x}", ",{}", ',""]', "//c", "}{", ' {"brokerId":"2"}',
    "]}", ',"x"]{}',
]  # fmt: skip
PLAIN = [
    ('"brokerId"', '"1"'), ('"snapshotAt"', '"2026-01-02T03:04:05Z"'), ('"softLimit"', "{}"), ('"hardLimit"', "{}"),
    ('"volumes"', '[{"volumeName":"/a","capacity":10,"consumed":1}]'),
]  # fmt: skip


def odd(fields: list[tuple[str, str]], before: str = "", after: str = "", comma: str = ",") -> bytes:
    text = before + "{" + comma.join(f"{name}:{value}" for name, value in fields) + "}" + after
    return text.encode("utf-8", "surrogatepass")


def of_volume(name: str, value: str) -> list[tuple[str, str]]:
    """A snapshot whose volumes have another field, before or after the known fields."""
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


def differently(
    spark: SparkSession, values: list[bytes], broker: str = "1"
) -> list[tuple[bytes, str | None, str | None]]:
    """The values that only the pipeline or only the brokers refuse, with both reasons."""
    given = [record(n, broker, value) for n, value in enumerate(values)]
    rows = PARSED(spark, given, False)
    both = [(each.value or b"", model.refusal(each), row["error"]) for each, row in zip(given, rows, strict=True)]
    return [found for found in both if (found[1] is None) != (found[2] is None)]


@pytest.mark.proves("faults.hostile-record")
@pytest.mark.parametrize(("values", "broker"), [(ODD_RECORDS, "1"), (TEXT_RECORDS, "7")], ids=["odd", "no text"])
def test_odd_json_is_taken_or_refused_as_by_the_brokers(spark: SparkSession, values: list[bytes], broker: str) -> None:
    """Single quotes, text after the closing brace, 7 for "7", null for a field that is left out, and more."""
    assert differently(spark, values, broker) == []


def test_a_broker_whose_clock_is_far_off_is_dated_by_kafka_and_makes_no_day_of_1970(spark: SparkSession) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    given = [
        record(0, "1", snapshot("1", epoch, GOOD)),  # taken with Kafka's time, because of LogAppendTime
        record(1, "1", snapshot("1", epoch, GOOD), epoch),
        record(2, "1", snapshot("1", NOW + timedelta(hours=2), GOOD, ageMs=250)),
    ]
    rows = records.parse(frame(spark, given))
    found = rows.orderBy("offset").collect()
    assert [row["error"] for row in found] == [model.refusal(each) for each in given] == [None, "time", None]
    assert found[2]["seen"].replace(tzinfo=UTC) == NOW - timedelta(milliseconds=250)
    dates = {(row["day"], row["at"].replace(tzinfo=UTC)) for row in readings(rows).collect()}
    assert dates == {(NOW.date(), NOW)}


def test_times_are_taken_and_refused_as_by_the_brokers(spark: SparkSession) -> None:
    texts = [*times.TAKEN, *times.REFUSED]
    given = [record(n, "1", snapshot("1", NOW, GOOD, snapshotAt=text)) for n, text in enumerate(texts)]
    rows = PARSED(spark, given, False)
    taken = {text: row["at"].replace(tzinfo=UTC) for text, row in zip(texts, rows, strict=True) if not row["error"]}
    by_brokers = {text for text, each in zip(texts, given, strict=True) if model.refusal(each) is None}
    read = {text: decode(b"1", snapshot("1", NOW, GOOD, snapshotAt=text)).captured_at for text in by_brokers}
    assert taken == read == times.TAKEN


def test_of_a_broker_that_is_not_listed_little_of_a_large_snapshot_is_remembered(spark: SparkSession) -> None:
    """A client that invents 1,000 brokers of 256 KiB each doesn't fill the memory; a full disk still counts."""
    many = [volume(f"/{n}".ljust(200, "x"), 1000, n, topics=["t"]) for n in range(200)]
    large = snapshot("1", NOW, many, offlineLogDirs=["/o" * 99] * 99)
    assert len(large) > MAX_OF_STRANGER
    by_broker = {"1": large, "9": large.replace(b'"1"', b'"9"'), "8": snapshot("8", NOW, GOOD), "7": None}
    given = [record(n, broker, value) for n, (broker, value) in enumerate(by_broker.items())]
    given.append(record(4, "9", by_broker["9"], topic="mirrored"))
    good = records.parse(frame(spark, given), CLUSTERS).where("error IS NULL")
    rows = aggregate.cut_strangers(good, "home", ["1", "2"]).orderBy("offset").collect()
    listed, stranger, small, removed, mirrored = [row["s"] for row in rows]
    assert (listed, small, mirrored) == tuple(good.orderBy("offset").collect()[n]["s"] for n in (0, 2, 4))
    assert removed is None or removed["volumes"] is None
    assert [each["consumed"] for each in stranger["volumes"]] == list(range(199, 199 - MAX_LISTED, -1))
    assert {(len(each["volumeName"]), each["topics"]) for each in stranger["volumes"]} == {(128, None)}
    assert [len(each) for each in stranger["offlineLogDirs"]] == [128] * MAX_LISTED
