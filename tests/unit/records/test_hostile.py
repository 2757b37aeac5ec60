"""Tests that readers take a record or refuse it, whatever bytes a topic contains.

A refusal has a reason, and readers raise no other error.
"""

import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from quotahost.records import cluster_volumes as cluster_codec
from quotahost.records import look as look_codec
from quotahost.records import quotas as quotas_codec
from quotahost.records import shares as shares_codec
from quotahost.records import snapshot as snapshot_codec
from quotahost.records import usage as usage_codec
from quotahost.records import watch as watch_codec
from quotahost.records.codec import Refused
from tests.unit.records.examples import SNAPSHOT_SCHEMA, example
from tests.unit.records.strategies import clusters, looks, quotas, shares, snapshots, usages, watches
from tests.unit.records.test_snapshot import written

#: For each schema's name, the module that reads and writes the records, their strategy, and the key of a record.
KINDS: dict[str, tuple[ModuleType, st.SearchStrategy[Any], Callable[[Any], bytes]]] = {
    "snapshot": (snapshot_codec, snapshots(), lambda record: record.broker.encode()),
    "cluster-volumes": (cluster_codec, clusters, lambda record: record.cluster.encode()),
    "usage": (usage_codec, usages, lambda record: record.broker.encode()),
    "shares": (shares_codec, shares, lambda record: record.broker.encode()),
    "look": (look_codec, looks, lambda record: record.broker.encode()),
    "watch": (watch_codec, watches, lambda record: record.watcher.encode()),
    "quotas": (quotas_codec, quotas, lambda _: b"users/alice"),
}
SCHEMAS = {
    kind: Draft7Validator(SNAPSHOT_SCHEMA) if kind == "snapshot" else Draft202012Validator(module.CODEC.schema())
    for kind, (module, *_) in KINDS.items()
}
ALL = pytest.mark.parametrize("kind", KINDS)
ANY_KEY = ("watch", "quotas")  # the value doesn't contain the key

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
overwritten = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4)


def good(data: st.DataObject, kind: str) -> tuple[bytes, bytes]:
    """The key and value of a random record, or of the schema's example, which has all fields."""
    of, records, key_of = KINDS[kind]
    if data.draw(st.booleans()):
        return example(kind)
    record = data.draw(records)
    return key_of(record), of.encode(record)


def refusal(kind: str, key: bytes | None, value: bytes) -> Refused | None:
    try:
        KINDS[kind][0].decode(key, value)
        return None
    except Refused as error:
        refused = error
    assert refused.reason in {"size", "json", "schema", "key", "version", "volumes", "limit"}
    assert str(refused).isprintable()
    assert len(str(refused)) < 500
    return refused


def with_more(content: Any) -> Any:
    """The same JSON with fields of a later version in each object."""
    if isinstance(content, list):
        return [with_more(each) for each in content]
    if not isinstance(content, dict):
        return content
    return {name: with_more(each) for name, each in content.items()} | {"later": [None, {"x": 1}]}


def test_of_a_record_with_too_many_faults_none_is_looked_for() -> None:
    refused = refusal("cluster-volumes", b"c", json.dumps({"clusterId": "c", "fullest": [1] * 200_000}).encode())
    assert refused
    assert (refused.reason, re.sub("[0-9,]+", "N", str(refused))) == ("schema", "the record has N faults")


@pytest.mark.proves("proposal-035.schema-integers")
@ALL
def test_the_example_is_valid_by_the_schema_and_read_whatever_fields_are_added_later(kind: str) -> None:
    key, value = example(kind)
    SCHEMAS[kind].validate(json.loads(value))
    of = KINDS[kind][0]
    assert of.decode(key, json.dumps(with_more(json.loads(value))).encode()) == of.decode(key, value)


@pytest.mark.proves("proposal-035.snapshot")
@ALL
@given(st.data())
def test_what_is_written_is_valid_by_the_schema_and_comes_back(kind: str, data: st.DataObject) -> None:
    of, records, key_of = KINDS[kind]
    record = data.draw(records)
    value = of.encode(record)
    SCHEMAS[kind].validate(json.loads(value))
    assert of.decode(key_of(record), value) == (written(record) if kind == "snapshot" else record)


@ALL
def test_what_is_no_record_of_any_kind_is_refused_with_its_reason(kind: str) -> None:
    key, value = example(kind)
    content, version = json.loads(value), "schemaVersion" if kind == "snapshot" else "version"
    later = {name: {"other": 1} for name in content} | {version: 2}
    versions = [later, *(content | {version: each} for each in (2, 1.5, True, "1"))]
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


@ALL
@settings(max_examples=200)
@given(st.data(), st.none() | overwritten | st.binary() | anything.map(lambda content: json.dumps(content).encode()))
def test_any_bytes_any_json_and_a_record_with_anything_anywhere(
    kind: str, data: st.DataObject, changes: list[tuple[int, int]] | bytes | None
) -> None:
    key, value = good(data, kind)
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
