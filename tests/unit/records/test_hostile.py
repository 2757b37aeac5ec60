"""Whatever bytes a topic contains, a reader takes the record or refuses it with a reason; it raises nothing else."""

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from quotahost.records import cluster_volumes as cluster_codec
from quotahost.records import look as look_codec
from quotahost.records import shares as shares_codec
from quotahost.records import snapshot as snapshot_codec
from quotahost.records import usage as usage_codec
from quotahost.records import watch as watch_codec
from quotahost.records.codec import REASONS, Refused
from tests.unit.records.examples import SNAPSHOT_SCHEMA, example
from tests.unit.records.test_clients import several_shares, usages
from tests.unit.records.test_cluster_volumes import clusters
from tests.unit.records.test_looks import looks, watches
from tests.unit.records.test_snapshot import QUICK, snapshots, written

#: By the name of its schema: the module that reads and writes it, records of the kind, the attribute that is its key.
KINDS: dict[str, tuple[ModuleType, st.SearchStrategy[Any], str]] = {
    "snapshot": (snapshot_codec, snapshots(), "broker"),
    "cluster-volumes": (cluster_codec, clusters, "cluster"),
    "usage": (usage_codec, usages, "broker"),
    "shares": (shares_codec, several_shares, "broker"),
    "look": (look_codec, looks, "broker"),
    "watch": (watch_codec, watches, "watcher"),
}
SCHEMAS = {
    kind: Draft7Validator(SNAPSHOT_SCHEMA) if kind == "snapshot" else Draft202012Validator(module.CODEC.schema())
    for kind, (module, *_) in KINDS.items()
}
ALL = pytest.mark.parametrize("kind", KINDS)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
overwritten = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4)


def good(data: st.DataObject, kind: str) -> tuple[bytes, bytes]:
    """A record's key and value: a random one, or the schema's example, which leaves no field out."""
    of, records, key = KINDS[kind]
    if data.draw(st.booleans()):
        return example(kind)
    record = data.draw(records)
    return getattr(record, key).encode(), of.encode(record)


def survives(kind: str, key: bytes | None, value: bytes) -> None:
    try:
        KINDS[kind][0].decode(key, value)
        return
    except Refused as error:
        refused = error
    assert refused.reason in REASONS
    assert str(refused).isprintable()
    assert len(str(refused)) < 500


@ALL
def test_the_example_is_valid_by_the_schema_and_read(kind: str) -> None:
    key, value = example(kind)
    SCHEMAS[kind].validate(json.loads(value))
    KINDS[kind][0].decode(key, value)


@pytest.mark.proves("proposal-035.snapshot")
@ALL
@QUICK
@given(st.data())
def test_what_is_written_is_valid_by_the_schema_and_comes_back(kind: str, data: st.DataObject) -> None:
    of, records, key = KINDS[kind]
    record = data.draw(records)
    value = of.encode(record)
    SCHEMAS[kind].validate(json.loads(value))
    found = of.decode(getattr(record, key).encode(), value)
    assert found == (written(record) if kind == "snapshot" else record)


@ALL
@settings(QUICK, max_examples=200)
@given(
    st.none() | st.binary(max_size=5) | st.just(b"0"),
    st.binary() | anything.map(lambda content: json.dumps(content).encode()),
)
def test_any_bytes_and_any_json(kind: str, key: bytes | None, value: bytes) -> None:
    survives(kind, key, value)


@ALL
@settings(QUICK, max_examples=150)
@given(st.data())
def test_a_record_with_anything_put_anywhere(kind: str, data: st.DataObject) -> None:
    key, value = good(data, kind)
    content = place = json.loads(value)
    while isinstance(place, (dict, list)) and place:
        outer = place
        at = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        place = place[at]
        if data.draw(st.booleans()):
            break
    outer[at] = data.draw(anything)
    survives(kind, key, json.dumps(content).encode())


@ALL
@QUICK
@given(st.data(), overwritten)
def test_a_record_with_bytes_overwritten(kind: str, data: st.DataObject, changes: list[tuple[int, int]]) -> None:
    key, good_value = good(data, kind)
    value = bytearray(good_value)
    for at, byte in changes:
        value[at % len(value)] = byte
    survives(kind, key, bytes(value))
