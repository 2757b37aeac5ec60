"""Whatever stands in a topic: a record is read, or refused with a reason in words; nothing else is raised."""

from __future__ import annotations

import json
from importlib.resources import files
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from quotahost import wire, wire_cluster, wire_shares, wire_usage
from quotahost.wire_read import REASONS, Refused

QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ALL = pytest.mark.parametrize(
    ("of", "schema", "key"),
    [
        (wire, "snapshot", "brokerId"),
        (wire_cluster, "cluster-volumes", "clusterId"),
        (wire_usage, "usage", "brokerId"),
        (wire_shares, "shares", "brokerId"),
    ],
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
overwritten = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4)


def example(schema: str, key: str) -> tuple[bytes, dict[str, Any]]:
    """A good record's key and value."""
    told = form(schema)["examples"][0]
    return told[key].encode(), told


def form(schema: str) -> Any:
    return json.loads(files("quotahost").joinpath(f"schemas/{schema}.json").read_text())


def survives(of: ModuleType, key: bytes | None, value: bytes) -> None:
    try:
        of.decode(key, value)
        return
    except Refused as error:
        refused = error
    assert refused.reason in REASONS
    assert str(refused).isprintable()
    assert len(str(refused)) < 500


@ALL
def test_the_example_itself_is_read(of: ModuleType, schema: str, key: str) -> None:
    name, told = example(schema, key)
    Draft7Validator(form(schema)).validate(told)
    of.decode(name, json.dumps(told).encode())


@ALL
@QUICK
@given(st.none() | st.binary(max_size=5), st.binary())
def test_any_bytes(of: ModuleType, schema: str, key: str, name: bytes | None, value: bytes) -> None:
    survives(of, name, value)


@ALL
@QUICK
@given(anything)
def test_any_json(of: ModuleType, schema: str, key: str, told: Any) -> None:
    survives(of, b"0", json.dumps(told).encode())


@ALL
@QUICK
@given(st.data())
def test_a_record_with_anything_put_anywhere(
    of: ModuleType, schema: str, key: str, data: st.DataObject
) -> None:
    name, told = example(schema, key)
    place: Any = told
    while isinstance(place, (dict, list)) and place:
        outer = place
        at = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        place = place[at]
        if data.draw(st.booleans()):
            break
    outer[at] = data.draw(anything)
    survives(of, name, json.dumps(told).encode())


@ALL
@QUICK
@given(overwritten)
def test_a_record_with_bytes_overwritten(
    of: ModuleType, schema: str, key: str, changes: list[tuple[int, int]]
) -> None:
    name, told = example(schema, key)
    value = bytearray(json.dumps(told).encode())
    for at, byte in changes:
        value[at % len(value)] = byte
    survives(of, name, bytes(value))
