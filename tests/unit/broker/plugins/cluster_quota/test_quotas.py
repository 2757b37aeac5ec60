"""The cluster-wide quotas that a broker reads from their topic: which it takes, keeps, finds and forgets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.model import QuotaType
from quotahost.records.quotas import DEFAULT, ClusterQuota, Entity, LatestQuotas
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context
from tests.fakes.quotas import Set, change, follower, quota, remove, set_quotas

BROKEN = b'{"version":1,"produce":-3}'


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def quotas(broker: FakeBroker) -> ClusterQuotas:
    return ClusterQuotas(context(broker, "cluster-quota"))


def produced(quotas: ClusterQuotas, user: str, client_id: str = "") -> float | None:
    return quotas.rate(user, client_id, QuotaType.PRODUCE)


def test_nobody_has_a_quota_until_the_topic_is_read(quotas: ClusterQuotas, broker: FakeBroker) -> None:
    quotas.record(b"users/alice", b'{"version":1,"produce":5}', False)
    quotas.show()
    assert (produced(quotas, "alice"), broker.number("ClusterQuotas", "Read")) == (None, 0)
    quotas.caught_up()
    quotas.show()
    assert (produced(quotas, "alice"), broker.number("ClusterQuotas", "Read")) == (5, 1)
    assert broker.number("ClusterQuotas", "Entities") == 1
    assert quotas.take_changed() == {Entity("alice", None)}


def test_a_topic_that_is_read_again_is_what_it_is_now(quotas: ClusterQuotas, caplog: pytest.LogCaptureFixture) -> None:
    set_quotas(quotas, quota("alice", None, 1.0), quota("bob", None, 2.0), quota("carol", "app", 3.0))
    quotas.take_changed()
    follower(quotas).begins()
    quotas.record(b"users/erin", b'{"version":1,"produce":5}', False)
    follower(quotas).begins()  # the topic was made anew before its end was reached
    follower(quotas).take(b"users/bob", BROKEN, False)  # compaction has kept the broken record alone
    quotas.record(b"users/dave", b'{"version":1,"produce":4}', False)
    assert produced(quotas, "alice") == 1.0
    quotas.caught_up()
    found = [produced(quotas, name, "app") for name in ("alice", "bob", "carol", "dave", "erin")]
    assert found == [None, 2.0, None, 4.0, None]
    assert quotas.take_changed() == {Entity("alice", None), Entity("carol", "app"), Entity("dave", None)}
    assert quotas.distinct_client_ids("carol") == frozenset()
    remove(quotas, "bob")
    follower(quotas).take(b"users/bob", BROKEN, True)
    assert produced(quotas, "bob") is None, "what was removed since doesn't come back"
    set_quotas(quotas)
    assert produced(quotas, "dave") is None, "the topic is empty by now"
    assert [each.getMessage() for each in caplog.records if "read again" in each.getMessage()] == [
        f"topic __quotahost_quotas was read again: {gone} of {of} cluster-wide quotas are no longer in it"
        for gone, of in ((2, 3), (1, 1))
    ]


def test_its_memory_is_bounded(quotas: ClusterQuotas, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LatestQuotas, "most", 3)
    set_quotas(quotas, *(quota(name, None, 1.0) for name in "abcd"))
    change(quotas, quota("a", None, 2.0))
    assert [produced(quotas, name) for name in "abcd"] == [2.0, 1.0, 1.0, None]
    remove(quotas, "a")
    change(quotas, quota("e", None, 5.0))
    assert (produced(quotas, "e"), broker.number("Refused", "Records", "size")) == (5.0, 1)
    monkeypatch.setattr(LatestQuotas, "most", 100)
    monkeypatch.setattr(LatestQuotas, "most_octets", 1000)
    change(quotas, quota("f" * 990, None, 1.0))
    assert produced(quotas, "f" * 990) is None
    change(quotas, quota("f" * 950, None, 1.0))
    assert produced(quotas, "f" * 950) == 1.0


def test_a_topic_that_cannot_be_read_is_told(broker: FakeBroker, caplog: pytest.LogCaptureFixture) -> None:
    quotas = ClusterQuotas(context(broker, "cluster-quota", startup__grace="1ms"))
    quotas._began -= 1
    quotas.show()
    quotas.show()
    (line,) = caplog.messages
    assert line == "topic __quotahost_quotas can't be read so far: no client has a cluster-wide quota on this broker"


@pytest.mark.parametrize(
    ("given", "principal", "distinct"),
    [
        ([quota(None, "app", 1.0)], "bob", {"app"}),
        ([quota("alice", "app", 1.0)], "alice", {"app"}),
        ([quota("alice", "app", 1.0)], "bob", set()),
        ([quota(None, "app", 1.0), quota("alice", "b", None, 1.0)], "alice", {"app", "b"}),
        ([quota("alice", None, None, 1.0)], "alice", None),
        ([quota("alice", None, None, 1.0)], "bob", set()),
        ([quota(None, None, 1.0), quota("alice", None, math.inf)], "alice", set()),
        ([quota(None, None, 1.0)], "bob", None),
        ([quota(None, f"app-{n}", 1.0) for n in range(2000)], "bob", None),
    ],
)
def test_a_share_of_a_cluster_wide_quota_is_each_clients_own(
    quotas: ClusterQuotas, given: list[Set], principal: str, distinct: set[str] | None
) -> None:
    set_quotas(quotas, *given)
    assert quotas.distinct_client_ids(principal) == distinct


NAMES = st.sampled_from(["", "a", "b", "alice"])
ENTITIES = st.builds(Entity, NAMES.filter(bool), st.none() | NAMES) | st.builds(Entity, st.none(), NAMES.filter(bool))
RATES = st.none() | st.sampled_from([1.0, 2.0, math.inf])
QUOTAS = st.none() | st.builds(ClusterQuota, RATES, RATES)
CHANGES = st.lists(st.tuples(ENTITIES | st.just(DEFAULT), QUOTAS), max_size=12)


@given(CHANGES)
def test_the_most_specific_quota_holds_after_any_changes(changes: list[tuple[Entity, ClusterQuota | None]]) -> None:
    quotas, kept = ClusterQuotas(context()), {}
    set_quotas(quotas)
    for entity, wanted in changes:
        if wanted:
            change(quotas, (entity, wanted))
            kept[entity] = wanted
        else:
            remove(quotas, *entity)
            kept.pop(entity, None)
    for user in ("alice", "b", ""):
        found = {client_id: produced(quotas, user, client_id) for client_id in ("", "a", "b", "alice", "other")}
        for client_id, rate in found.items():
            levels = [Entity(user, client_id), Entity(user, None), Entity(None, client_id), DEFAULT]
            set_rates = [kept[entity].produce for entity in levels if entity in kept]
            expected = next((rate for rate in set_rates if rate is not None), None)
            assert rate == expected
        distinct = quotas.distinct_client_ids(user)
        if distinct is not None:
            assert len({rate for client_id, rate in found.items() if client_id not in distinct}) <= 1
