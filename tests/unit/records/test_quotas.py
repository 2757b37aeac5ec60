"""Records of cluster-wide quotas: they keep their schema, come back as they were, and wrong ones are refused."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from quotahost.records.codec import REASONS, Refused
from quotahost.records.quotas import (
    CODEC,
    DEFAULT,
    MAX_NAMES,
    ClusterQuota,
    Entity,
    LatestQuotas,
    decode,
    encode,
    entity_of,
    key_of,
)

SCHEMA = Draft202012Validator(CODEC.schema())
NAMES = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["<default>", "a/b", "clients/", "users/x", "%41", "~*+ ", "\x00", "\U0001f989", MAX_NAMES * "x"]
)
USERS = NAMES.filter(bool)
ENTITIES = (
    st.builds(Entity, USERS, st.none() | NAMES)
    | st.builds(Entity, st.none(), USERS)
    | st.just(DEFAULT)
).filter(lambda entity: sum(len(name.encode()) for name in entity if name) <= MAX_NAMES)  # fmt: skip
RATES = st.none() | st.floats(0, exclude_min=True)
QUOTAS = st.builds(ClusterQuota, ENTITIES, RATES, RATES)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(QUOTAS)
def test_a_quota_keeps_its_schema_and_comes_back(quota: ClusterQuota) -> None:
    key, value = key_of(quota.entity), encode(quota)
    SCHEMA.validate(json.loads(value))
    assert decode(key, value) == quota


@given(ENTITIES, ENTITIES)
def test_an_entity_has_one_key_and_no_two_share_one(one: Entity, other: Entity) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)
    assert entity_of(key_of(one)) == one


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        (Entity("alice", None), b"users/alice"),
        (Entity(None, "app"), b"clients/app"),
        (Entity("alice", "app"), b"users/alice/clients/app"),
        (Entity("alice", ""), b"users/alice/clients/"),
        (DEFAULT, b"users/<default>"),
        (Entity("<default>", None), b"users/%3Cdefault%3E"),
        (Entity("CN=a,O=b", "x*~"), b"users/CN%3Da%2CO%3Db/clients/x%2A%7E"),
    ],
)
def test_the_key_names_the_entity_as_kafkas_config_paths_do(entity: Entity, key: bytes) -> None:
    assert key_of(entity) == key


@pytest.mark.parametrize(
    "key",
    [
        None, b"", b"users/", b"clients/", b"users/%61", b"users/%3cdefault%3E", b"users/a/clients", b"users/a/b",
        b"clients/a/users/b", b"users/<default>/clients/a", b"users/\xff", b"users/%FF", b"users/a ", b"users/a\n",
        b"users/" + (MAX_NAMES + 1) * b"a", 10_000 * b"%41",
    ],
)  # fmt: skip
def test_another_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(Refused) as refused:
        decode(key, b'{"version":1}')
    text = str(refused.value)
    assert (refused.value.reason, text.isprintable(), len(text) < 500) == ("key", True, True)


@pytest.mark.parametrize("entity", [Entity("", None), Entity(None, ""), Entity("\ud800", None), Entity("é" * 1025, "")])
def test_an_entity_that_no_key_can_name_is_refused(entity: Entity) -> None:
    with pytest.raises(Refused):
        encode(ClusterQuota(entity, 1.0))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"version":1,"produce":0}', "schema"),
        (b'{"version":1,"produce":-1}', "schema"),
        (b'{"version":1,"produce":true}', "schema"),
        (b'{"version":1,"produce":"3M"}', "schema"),
        (b'{"version":1,"produce":1e999}', "schema"),
        (b'{"version":1,"produce":NaN}', "schema"),
        (b'{"version":1,"produce":[3]}', "schema"),
        (b'{"produce":3}', "version"),
        (b'{"version":2,"produce":"other"}', "version"),
        (b"{'version':1}", "json"),
        (b'{"version":1} more', "json"),
        (b'\xef\xbb\xbf{"version":1}', "json"),
        (b"", "json"),
        (b"[" * 4000, "json"),
        (b"[]", "schema"),
        (b'{"version":1,"more":"' + b"x" * 5000 + b'"}', "size"),
    ],
)
def test_another_value_is_refused_for_its_reason(value: bytes, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        decode(b"users/alice", value)
    assert refused.value.reason == reason


def test_unknown_fields_and_a_null_rate_are_taken() -> None:
    value = b'{"version":1.0,"produce":null,"fetch":"unlimited","later":{"a":1}}'
    assert decode(b"users/alice", value) == ClusterQuota(Entity("alice", None), None, math.inf)


@given(
    st.none() | st.binary(max_size=20), st.none() | st.binary() | ANYTHING.map(lambda each: json.dumps(each).encode())
)
def test_any_bytes_are_taken_or_refused_with_a_reason(key: bytes | None, value: Any) -> None:
    for named in (key, b"users/alice"):
        quotas = LatestQuotas()
        refused = refusal(quotas, named, value)
        assert (refused is None) or quotas.by_entity == {}
        assert refused is None or (refused.reason in REASONS and str(refused).isprintable())


def refusal(quotas: LatestQuotas, key: bytes | None, value: Any) -> Refused | None:
    try:
        quotas.take(key, value)
    except Refused as refused:
        return refused
    return None
