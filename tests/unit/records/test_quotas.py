"""Records of cluster-wide quotas: which entities and rates they may have."""

import math

import pytest
from hypothesis import given

from quotahost.records.codec import Refused
from quotahost.records.quotas import DEFAULT, MAX_NAMES, ClusterQuota, Entity, decode, encode, entity_of, key_of
from tests.unit.records.strategies import entities


@given(entities, entities)
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


@pytest.mark.parametrize("rate", ["0", "-1", "true", '"3M"', "1e999", "NaN", "[3]"])
def test_what_is_no_rate_is_refused_and_null_is_none(rate: str) -> None:
    with pytest.raises(Refused) as refused:
        decode(b"users/alice", f'{{"version":1,"produce":{rate}}}'.encode())
    assert refused.value.reason == "schema"
    value = b'{"version":1.0,"produce":null,"fetch":"unlimited"}'
    assert decode(b"users/alice", value) == ClusterQuota(Entity("alice", None), None, math.inf)
