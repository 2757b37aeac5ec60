"""Readers of records: whatever bytes a topic contains, they take a record or refuse it.

A refusal has a reason, and nothing else is raised. All records and readers have one grammar of times, by which the
pipeline's tests go, too.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from quotahost.model import Limit
from quotahost.records import cluster_volumes, look, quotas, shares, snapshot, usage, watch
from quotahost.records.budgets import MAX_PATTERNS, LatestBudgets
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST
from quotahost.records.codec import REASONS, Refused
from quotahost.records.fields import exact_for, rounded
from quotahost.records.snapshot import MAX_BYTES, MAX_VOLUMES, Snapshot
from quotahost.records.usage import MAX_CLIENTS, MAX_NAMES
from tests.unit.records import strategies as some
from tests.unit.records.examples import EXAMPLES, REFUSED, SNAPSHOT_SCHEMA, TAKEN, example

#: By the name of its schema: the module that reads and writes it, records of the kind, and which field is the key.
KINDS: dict[str, tuple[ModuleType, st.SearchStrategy[Any], str]] = {
    "snapshot": (snapshot, some.snapshots(), "broker"),
    "cluster-volumes": (cluster_volumes, some.clusters, "cluster"),
    "usage": (usage, some.usages, "broker"),
    "shares": (shares, some.shares, "broker"),
    "look": (look, some.looks, "broker"),
    "watch": (watch, some.watches, "watcher"),
    "quotas": (quotas, some.quotas, ""),
}
SCHEMAS = {
    kind: Draft7Validator(SNAPSHOT_SCHEMA) if kind == "snapshot" else Draft202012Validator(module.CODEC.schema())
    for kind, (module, *_) in KINDS.items()
}
ALL = pytest.mark.parametrize("kind", KINDS)
ANY_KEY = ("watch", "quotas")  # the value doesn't name what is in the key


def written(kind: str, record: Any) -> tuple[bytes, bytes]:
    of, _, key = KINDS[kind]
    return getattr(record, key).encode() if key else b"users/alice", of.encode(record)


def refusal(kind: str, key: bytes | None, value: bytes) -> Refused | None:
    try:
        KINDS[kind][0].decode(key, value)
        return None
    except Refused as error:
        return checked(error)


def checked(refused: Refused) -> Refused:
    assert refused.reason in REASONS
    assert str(refused).isprintable()
    assert len(str(refused)) < 1000
    return refused


def with_more(content: Any) -> Any:
    """The same JSON with fields of a later version in each object."""
    if isinstance(content, list):
        return [with_more(each) for each in content]
    if not isinstance(content, dict):
        return content
    return {name: with_more(each) for name, each in content.items()} | {"later": [None, {"x": 1}]}


@pytest.mark.proves("proposal-035.schema-integers")
@ALL
def test_the_example_is_valid_by_the_schema_and_read_whatever_fields_are_added_later(kind: str) -> None:
    key, value = example(kind)
    SCHEMAS[kind].validate(json.loads(value))
    of = KINDS[kind][0]
    later = json.dumps(with_more(json.loads(value)))
    # Unknown fields may have numbers that JSON lacks, and names twice.
    for more in (later, later.replace("{", '{"x": NaN, "x": -Infinity, "y": 1e999, ', 1)):
        assert of.decode(key, more.encode()) == of.decode(key, value)


def in_json(record: Snapshot) -> Snapshot:
    """The snapshot as the JSON has it: percentages are whole, or bytes of their volume."""

    def of(limit: Limit | None, capacity: int) -> Limit | None:
        return limit and exact_for(limit, capacity)

    volumes = tuple(replace(v, soft=of(v.soft, v.capacity), hard=of(v.hard, v.capacity)) for v in record.volumes)
    soft, hard = (limit and rounded(limit) for limit in (record.soft, record.hard))
    return replace(record, volumes=volumes, soft=soft, hard=hard)


@pytest.mark.proves("proposal-035.snapshot")
@ALL
@given(st.data())
def test_what_is_written_is_valid_by_the_schema_and_comes_back(kind: str, data: st.DataObject) -> None:
    record = data.draw(KINDS[kind][1])
    key, value = written(kind, record)
    SCHEMAS[kind].validate(json.loads(value))
    assert KINDS[kind][0].decode(key, value) == (in_json(record) if kind == "snapshot" else record)


@ALL
def test_what_is_no_record_of_any_kind_is_refused_with_its_reason(kind: str) -> None:
    key, value = example(kind)
    content, version = json.loads(value), "schemaVersion" if kind == "snapshot" else "version"
    later = {name: {"other": 1} for name in content} | {version: 2}
    versions = [later, *(content | {version: each} for each in (2, 1.5, True, "1"))]
    if version in content:  # that of a snapshot may be left out
        versions.append(content | {version: None})
        versions.append({name: each for name, each in content.items() if name != version})
    wrong = {
        "json": [b"", b"\xff", b"{", b"[" * 4000, value + b" more", b"\xef\xbb\xbf" + value],
        "size": [b" " * 10**7],
        "schema": [b"5", b"[]"],
        "version": [json.dumps(each).encode() for each in versions],
    }
    for reason, values in wrong.items():
        for each in values:
            refused = refusal(kind, key, each)
            assert (refused and refused.reason) == reason, each[:99]
    for other in (None, b"", key + b"/", b"\xff") if kind not in ANY_KEY else ():
        refused = refusal(kind, other, value)
        assert (refused and refused.reason) == "key", other


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
overwritten = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4)


@ALL
@settings(max_examples=200)
@given(st.data(), st.none() | overwritten | st.binary() | anything.map(lambda content: json.dumps(content).encode()))
def test_any_bytes_any_json_and_a_record_with_anything_anywhere(
    kind: str, data: st.DataObject, changes: list[tuple[int, int]] | bytes | None
) -> None:
    # A random record, or the schema's example, which leaves no field out.
    key, value = example(kind) if data.draw(st.booleans()) else written(kind, data.draw(KINDS[kind][1]))
    if isinstance(changes, bytes):
        for named in (key, data.draw(st.none() | st.binary(max_size=5) | st.just(b"0"))):
            refusal(kind, named, changes)
        return
    if changes:
        broken = bytearray(value)
        for at, byte in changes:
            broken[at % len(broken)] = byte
        refusal(kind, key, bytes(broken))
        return
    content = place = json.loads(value)
    while isinstance(place, (dict, list)) and place:
        outer = place
        at = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        place = place[at]
        if data.draw(st.booleans()):
            break
    outer[at] = data.draw(anything)
    refusal(kind, key, json.dumps(content).encode())


# ---- fields ----

LONG = 2**63 - 1
FREE, PERCENT = "MinFreeBytes", "MinFreePercentage"
NO_TOPICS: list[Any] = [
    "orders", {}, [None], [1], [["a"]], [""], ["a", "t" * 250], ["a\n"], ["a b"], [*map(str, range(1001))],
]  # fmt: skip
#: Fields of an example that are replaced.
Fields = dict[str, Any]


def wrong(reason: str, *given: Fields) -> list[tuple[Fields, str]]:
    return [(fields, reason) for fields in given]


def volume(**fields: Any) -> Fields:
    return {"brokerId": "2", "volumeName": "/dev/sdd", "capacity": 100, "consumed": 10} | fields


def of_client(kind: str, **fields: Any) -> Fields:
    return {"clients": [EXAMPLES[kind]["clients"][0] | fields]}


def of_clients(kind: str) -> list[tuple[Fields, str]]:
    """What usage and shares have in common."""
    values_of: dict[str, list[Any]] = {
        "user": [None], "clientId": [7], "quotaType": ["REQUEST", None],
        "quota": [0, -1, "3M", float("nan"), float("inf")],
    }  # fmt: skip
    one, *many = [each for n in range(MAX_CLIENTS + 1) for each in of_client(kind, user=f"u{n}")["clients"]]
    return [
        *wrong("schema", *(of_client(kind, **{name: value}) for name, given in values_of.items() for value in given)),
        *wrong("schema", *({"clients": listed} for listed in (..., None, [one, one], [one, *many])), {"brokerId": 1}),
        *wrong("size", of_client(kind, user="u" * MAX_NAMES)),
    ]  # fmt: skip


#: These are valid by the proposal's schema, which describes ``limit_type`` and ``level`` beside ``properties``, where
#: they check nothing. Formats are left to the validator by draft 7.
MEANINGLESS = [
    *wrong("limit", {"hardLimit": {"type": "ConsumedSpace", "level": 1}}, {"hardLimit": {"type": 5}},
           {"hardLimit": {"level": "much"}}, {"hardLimit": {"type": FREE, "level": -1}}),
    *wrong("volumes", {"volumes": [volume(), volume()]},
           {"volumes": [volume(volumeName=str(n)) for n in range(MAX_VOLUMES + 1)]}),
    *wrong("schema", {"snapshotAt": "yesterday"}, {"volumes": [volume(capacity=LONG + 1)]}, {"ageMs": "5"},
           {"offlineLogDirs": [1]}),
    *wrong("version", {"schemaVersion": 2}),
]  # fmt: skip
WRONG = {
    "snapshot": [
        *MEANINGLESS,
        *wrong(
            "schema", {"brokerId": 0}, {"brokerId": ...}, {"brokerId": "0" * 1025}, {"snapshotAt": ...},
            {"snapshotAt": 1649336400}, {"hardLimit": ...}, {"softLimit": ...}, {"softLimit": []}, {"volumes": ...},
            {"volumes": {}}, {"volumes": [5]}, {"volumes": [volume(), None]},
            *({"ageMs": age} for age in (-1, 5.5, LONG + 1)),
            {"volumes": [{"volumeName": "a", "consumed": 1}]}, {"volumes": [{"capacity": 1, "consumed": 1}]},
            {"volumes": [volume(volumeName="n" * 1025)]}, {"volumes": [volume(), volume(volumeName="b", consumed=-2)]},
            {"offlineLogDirs": ["/a", None]}, {"offlineLogDirs": ["n" * 1025]}, {"offlineLogDirs": ["/a"] * 1025},
            {"volumes": [volume(volumeName=5)]}, {"volumes": [volume(consumed=int("9" * 2000))]},
            {"volumes": [volume(consumed=float("nan"))]},
            *({"volumes": [volume(capacity=size)]} for size in (100.5, True, "100", -1)),
            *({"volumes": [volume(topics=listed)]} for listed in NO_TOPICS),
        ),
        *wrong(
            "limit", {"softLimit": {"type": None, "level": None}}, {"softLimit": {"type": FREE}},
            {"hardLimit": {"level": 5}}, *({"hardLimit": {"type": FREE, "level": level}} for level in (LONG + 1, "1")),
            *({"hardLimit": {"type": PERCENT, "level": level}} for level in (101, 5.5)),
            {"volumes": [volume(softLimit={"type": PERCENT, "level": 101})]},
            {"volumes": [volume(hardLimit={"type": "x", "level": 1})]},
            {"volumes": [volume(), volume(volumeName="b", hardLimit={"level": 5})]},
        ),
        *wrong("json", {"volumes": [volume(consumed=int("9" * 2001))]}),
    ],
    "cluster-volumes": [
        *wrong(
            "schema", {"clusterId": ""}, {"run": "7"}, {"run": 7.5}, {"sequence": -1}, {"stale": None},
            {"computedAt": None}, {"newestSnapshotAt": 5}, {"staleBrokers": [4]},
            {"missingBrokers": ["4"] * (MAX_LISTED + 1)}, {"offlineLogDirs": [{"brokerId": "4"}]},
            {"smallestFactor": 1.1}, {"fullest": None}, {"fullest": [volume()] * (MAX_LISTED + 1)},
            {"fullest": [volume(capacity="100")]}, {"fullest": [volume(capacity=-1)]},
            {"fullest": [volume(bytesPerSecond="NaN")]}, {"worst": []}, {"worst": {FREE: [volume()] * (MAX_WORST + 1)}},
            *({"affectedTopics": listed} for listed in NO_TOPICS),
        ),
        *wrong(
            "limit", {"fullest": [volume(hardLimit={"type": FREE})]},
            {"fullest": [volume(hardLimit={"type": PERCENT, "level": 101})]},
            {"worst": {FREE: [volume(softLimit={"type": "x", "level": 1})]}},
        ),
    ],
    "usage": [
        *of_clients("usage"),
        *wrong("schema", {"usageAt": 5}, *(of_client("usage", **{name: value}) for name, value in (
            ("rate", -1), ("demand", -0.1), ("demand", "all"), ("bytes", -1), ("bytes", "1")))),
    ],
    "shares": [
        *of_clients("shares"),
        *wrong("schema", of_client("shares", share=-1), of_client("shares", share=None), {"run": -1}, {"run": "7"},
               {"sequence": 1.5}),
    ],
    "quotas": wrong(
        "schema", *({"produce": rate} for rate in (0, -1, True, "3M", float("inf"), float("nan"), [3]))),
}  # fmt: skip


@pytest.mark.proves("proposal-035.schema-integers")
@pytest.mark.parametrize(
    ("kind", "fields", "reason"), [(kind, *each) for kind, fields in WRONG.items() for each in fields]
)
def test_what_breaks_the_form_is_refused_with_its_reason_and_place(kind: str, fields: Fields, reason: str) -> None:
    refused = refusal(kind, *example(kind, **fields))
    assert refused is not None
    assert refused.reason == reason
    assert reason in ("json", "size") or next(iter(fields)) in str(refused)


@pytest.mark.proves("proposal-035.schema-integers")
@pytest.mark.parametrize("fields", [fields for fields, _ in MEANINGLESS], ids=lambda fields: str(fields)[:60])
def test_what_is_valid_by_the_proposals_schema_and_means_nothing_is_refused(fields: Fields) -> None:
    assert "properties" not in SNAPSHOT_SCHEMA["$defs"]["limit"]
    key, value = example("snapshot", **fields)
    SCHEMAS["snapshot"].validate(json.loads(value))
    assert refusal("snapshot", key, value)


def test_a_refusal_names_the_place_and_shows_little_of_what_was_given() -> None:
    volumes = [volume(), volume(volumeName="b", capacity="x\n\x1b" * 10_000)]
    text = str(refusal("snapshot", *example("snapshot", volumes=volumes)))
    assert text.startswith("volumes.1.capacity: ")
    assert (r"not 'x\n\x1b" in text, len(text) < 200) == (True, True)


def test_the_largest_snapshot_allowed_is_read() -> None:
    key, value = example("snapshot", volumes=[volume(volumeName=str(n)) for n in range(MAX_VOLUMES)])
    assert len(snapshot.decode(key, value.ljust(MAX_BYTES)).volumes) == MAX_VOLUMES
    refused = refusal("snapshot", key, value.ljust(MAX_BYTES + 1))
    assert (refused and refused.reason) == "size"


# ---- quotas and budgets, which share a topic ----

BUDGET = {"version": 1, "topics": ["t"], "bytes": 5}
NONE = list[str]()


@pytest.mark.parametrize(
    ("take", "key", "value", "reason"),
    [
        *((quotas.LatestQuotas().take, key, b'{"version":1}', "key") for key in (
            None, b"", b"users/", b"clients/", b"users/%61", b"users/%3cdefault%3E", b"users/a/clients", b"users/a/b",
            b"clients/a/users/b", b"users/<default>/clients/a", b"users/\xff", b"users/%FF", b"users/a ", b"users/a\n",
            b"users/" + (quotas.MAX_NAMES + 1) * b"a", 10_000 * b"%41")),
        *((LatestBudgets().take, b"budgets/b", json.dumps(BUDGET | {name: wrong}).encode(), reason)
          for name, wrong, reason in (
            *(("topics", topics, "schema") for topics in (NONE, ["t"] * (MAX_PATTERNS + 1), ["a*b"], ["t\n"], "t")),
            *(("bytes", size, "schema") for size in (-1, 2**63, "5", True)),
            ("of", "followers", "schema"), ("version", 2, "version"), ("more", "x" * 100_000, "size"))),
        # Names that could not stand in Kafka's tags.
        *((LatestBudgets().take, b"budgets/" + name, value, "key")
          for name in (b"", b"a b", b"a>", b"<a", b"a\n", b"\xff", b"a" * 65) for value in (b'{"version":1}', None)),
    ],
)  # fmt: skip
def test_what_is_no_quota_or_budget_is_refused_with_its_reason(
    take: Callable[[bytes | None, bytes | None], Any], key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        take(key, value)
    assert checked(refused.value).reason == reason


# ---- times ----


@pytest.mark.parametrize(("text", "time"), TAKEN.items())
def test_a_date_time_of_rfc_3339_is_taken(text: str, time: datetime) -> None:
    assert snapshot.decode(*example("snapshot", snapshotAt=text)).captured_at == time


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_date_time_is_refused(text: str) -> None:
    refused = refusal("snapshot", *example("snapshot", snapshotAt=text))
    assert refused is not None
    assert (refused.reason, str(refused).startswith("snapshotAt: ")) == ("schema", True)
