"""Tests records of cluster-wide quotas and of budgets, which share a topic: records that are read or refused."""

import json
from contextlib import nullcontext

import pytest
from hypothesis import given

from quotahost.model.budgets import Budget
from quotahost.records import quotas as codec
from quotahost.records.budgets import MAX_BUDGETS, MAX_PATTERNS, LatestBudgets
from quotahost.records.budgets import encode as encode_budget
from quotahost.records.budgets import key_of as key_of_budget
from quotahost.records.codec import Refused
from quotahost.records.quotas import ClusterQuota, Entity, LatestQuotas, encode, entity_of, key_of
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
        (codec.DEFAULT, b"users/<default>"),
        (Entity("<default>", None), b"users/%3Cdefault%3E"),
        (Entity("CN=a,O=b", "x*~"), b"users/CN%3Da%2CO%3Db/clients/x%2A%7E"),
    ],
)
def test_the_key_names_the_entity_as_kafkas_config_paths_do(entity: Entity, key: bytes) -> None:
    assert key_of(entity) == key


@pytest.mark.parametrize("entity", [Entity("", None), Entity(None, ""), Entity("\ud800", None), Entity("é" * 1025, "")])
def test_an_entity_that_no_key_can_name_is_refused(entity: Entity) -> None:
    with pytest.raises(Refused):
        key_of(entity)


# ---- budgets ----

ORDERS = Budget("orders.*", ("orders.*", "payments"), 500 * 10**9, replicas=True)
NONE = list[str]()
GOOD = {"version": 1, "topics": ["t"], "bytes": 5}


@pytest.mark.parametrize(
    ("latest", "key", "value", "reason"),
    [
        *((LatestQuotas, key, b'{"version":1}', "key") for key in (
            None, b"", b"users/", b"clients/", b"users/%61", b"users/%3cdefault%3E", b"users/a/clients", b"users/a/b",
            b"clients/a/users/b", b"users/<default>/clients/a", b"users/\xff", b"users/%FF", b"users/a ", b"users/a\n",
            b"users/" + (codec.MAX_NAMES + 1) * b"a", 10_000 * b"%41")),
        *((LatestQuotas, b"users/alice", b'{"version":1,"produce":%s}' % rate, "schema")
          for rate in (b"0", b"-1", b"true", b'"3M"', b"1e999", b"NaN", b"[3]")),
        *((LatestBudgets, b"budgets/b", json.dumps(GOOD | {name: wrong}).encode(), reason) for name, wrong, reason in (
            *(("topics", topics, "schema") for topics in (NONE, ["t"] * (MAX_PATTERNS + 1), ["a*b"], ["t\n"], "t")),
            *(("bytes", size, "schema") for size in (-1, 2**63, "5", True)),
            ("of", "followers", "schema"), ("version", 2, "version"), ("more", "x" * 100_000, "size"))),
        # Kafka's tags could not contain these names.
        *((LatestBudgets, b"budgets/" + name, value, "key")
          for name in (b"", b"a b", b"a>", b"<a", b"a\n", b"\xff", b"a" * 65) for value in (b'{"version":1}', None)),
    ],
)  # fmt: skip
def test_what_is_no_quota_or_budget_is_refused_with_its_reason(
    latest: type[LatestQuotas | LatestBudgets], key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        latest().take(key, value)
    text = str(refused.value)
    assert (refused.value.reason, text.isprintable(), len(text) < 500) == (reason, True, True)


def test_there_are_so_many_budgets_and_no_more() -> None:
    latest = LatestBudgets()
    for number in range(MAX_BUDGETS):
        latest.take(f"budgets/{number}".encode(), json.dumps(GOOD).encode())
    with pytest.raises(Refused, match="more than 1,000"):
        latest.take(b"budgets/more", json.dumps(GOOD).encode())
    latest.take(b"budgets/7", json.dumps(GOOD | {"bytes": 6}).encode())
    assert latest.by_name["7"].bytes == 6


@pytest.mark.parametrize("between", [(), (None,), (encode(ClusterQuota(6.0)), None)])
def test_a_refused_record_leaves_what_was_there_and_nothing_that_was_removed(between: tuple[bytes | None, ...]) -> None:
    latest, alice = LatestQuotas(), Entity("alice", None)
    latest.begins()
    latest.record(key_of(alice), encode(ClusterQuota(5.0)), live=False)
    latest.caught_up()
    latest.begins()  # the follower lost its place in the topic
    for value in (*between, b"no JSON"):
        with nullcontext() if value != b"no JSON" else pytest.raises(Refused):
            latest.record(key_of(alice), value, live=False)
        assert latest.by_name == {alice: ClusterQuota(5.0)}, "the last quotas apply until the topic is read to its end"
    latest.caught_up()
    assert latest.by_name == ({} if between else {alice: ClusterQuota(5.0)})


def test_a_record_reads_as_it_was_written_and_readers_leave_the_others_records_alone() -> None:
    quotas, budgets, alice = LatestQuotas(), LatestBudgets(), Entity("alice", None)
    for latest in (quotas, budgets):
        latest.take(key_of_budget(ORDERS.name), encode_budget(ORDERS))
        latest.take(key_of(alice), encode(ClusterQuota(5.0)))
    assert (list(quotas.by_name), budgets.by_name) == ([alice], {"orders.*": ORDERS})
    budgets.take(key_of_budget(ORDERS.name), None)
    assert budgets.by_name == {}
