"""Tests answers about this broker: what limits its clients by Java's raw dump, who uses what, and its cluster."""

import json
import logging
from itertools import product
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.broker_status import answer_question, columns, use_of, uses
from quotahost.broker.host.cluster_query import ClusterQuery
from quotahost.broker.host.dump import BrokerState, quota_of
from quotahost.model import Client, Cluster, LimitedBy, QuotaType, State, VolumeUse
from quotahost.settings.broker import Settings
from tests.fakes import dump
from tests.fakes.shim import FakeShim, node_of
from tests.unit.cli.top.uses import slowed as use
from tests.unit.settings.properties import read

THROTTLE = {"factor": 0.5, "limit_factor": 0.5, "cause": "full"}
CLOSED = {"installed": True, "closed": True, "counts_only": False}
HELD = {**dump.MARK, "held": True}


@pytest.mark.parametrize(
    ("row", "state", "bound"),
    [
        ({"rate": 9.05e5}, {}, LimitedBy.QUOTA),
        ({"rate": 8.9e5}, {}, LimitedBy.NOTHING),
        ({"delay_ms": 1.0}, {}, LimitedBy.QUOTA),
        ({"rate": None, "delay_ms": None}, {}, LimitedBy.NOTHING),
        ({"rate": 9e5, "limit": 9.5e5}, THROTTLE, LimitedBy.FACTOR),
        ({"rate": 3.5e4, "limit": 3.5e4}, THROTTLE, LimitedBy.FLOOR),
        ({"rate": 1e3, "base": 1e3, "limit": 1e3}, THROTTLE, LimitedBy.QUOTA),  # the quota itself is below the floor
        ({"rate": 3.5e4, "base": 3.5e4, "limit": 3.5e4}, THROTTLE, LimitedBy.QUOTA),
        ({"base": None, "limit": None, "rate": 1e9}, THROTTLE, LimitedBy.NOTHING),
        ({"base": None, "limit": 5e5, "stand_in": 1e6, "rate": 5e5}, THROTTLE, LimitedBy.FACTOR),
        ({"base": None, "limit": 5e5, "rate": 5e5}, THROTTLE, LimitedBy.FACTOR),  # the newcomers' rate stands in
        ({"type": "FETCH", "rate": 3e4, "base": 3e4, "limit": 3e4}, THROTTLE, LimitedBy.QUOTA),  # no factor for FETCH
        ({"type": "REQUEST", "base": 50.0, "limit": 50.0, "rate": 1.0, "delay_ms": 9.0}, {}, LimitedBy.NOTHING),
        ({"type": "REQUEST", "base": 50.0, "limit": 50.0, "rate": 49.0}, {}, LimitedBy.QUOTA),
        ({"type": "CONTROLLER_MUTATION", "base": 5.0, "limit": 5.0, "rate": 9.0, "delay_ms": 9.0, "tokens": 0.0}, {},
         LimitedBy.NOTHING),
        ({"type": "CONTROLLER_MUTATION", "base": 5.0, "limit": 5.0, "tokens": -0.5}, {}, LimitedBy.QUOTA),
        *((row, {"factor": 0.0, "fence": CLOSED, **state}, bound) for row, state, bound in (
            ({}, {}, LimitedBy.FENCE),  # the client needn't have sent a request
            ({"passes": True}, {}, LimitedBy.NOTHING),
            ({}, {"fence": {**CLOSED, "counts_only": True}}, LimitedBy.NOTHING),
            # An open fence holds nobody back.
            ({"turned_back": "fence"}, {"fence": {**CLOSED, "closed": False}}, LimitedBy.NOTHING),
            ({"type": "FETCH"}, {}, LimitedBy.NOTHING),
            ({"user": "<newcomers>", "client_id": ""}, {}, LimitedBy.NOTHING),  # several clients: none was turned back
            ({"user": "<newcomers>", "client_id": "", "turned_back": "fence"}, {}, LimitedBy.FENCE),
            ({}, {"affected_topics": 2}, LimitedBy.NOTHING),
            ({"mark": dump.MARK}, {"affected_topics": 2}, LimitedBy.NOTHING),
            ({"mark": HELD}, {"affected_topics": 2}, LimitedBy.FENCE),
            ({"mark": HELD, "passes": True}, {"affected_topics": 2}, LimitedBy.NOTHING),
            ({"turned_back": "topics", "passes": True}, {}, LimitedBy.TOPIC_QUOTA),
            ({"user": "", "turned_back": "topics"}, {"fence": {"closed": False}}, LimitedBy.TOPIC_QUOTA))),
    ],
)  # fmt: skip
def test_what_binds_is_the_quota_the_factor_its_floor_a_closed_fence_a_topic_quota_or_nothing(
    row: dict[str, Any], state: dict[str, Any], bound: LimitedBy
) -> None:
    assert use_of(BrokerState.of(dump.state(**state)), dump.row(**row)).bound is bound


def test_a_slowed_client_has_the_limit_of_the_slowed_and_all_that_is_measured_of_it() -> None:
    row = dump.row(
        rate=100.0, delay_ms=20.0, limit=1e6, slowed_limit=5e5, slowed_rate=30.0, slowed_delay_ms=250.0, mark=dump.MARK
    )
    some = BrokerState.of(dump.state(**THROTTLE, affected_topics=1))
    quota = quota_of(some, row)
    assert (quota.rate, quota.delay, quota.limit) == (130.0, 250.0, 5e5)
    assert (quota.bound, quota.slowed) == (LimitedBy.FACTOR, True)
    assert (quota.affected_topic, quota.affected_place) == ("orders", "broker 3, volume /dev/sdb")
    for changes in ({"shadow": ["factor"]}, {"enforced": False}, {"affected_topics": -1}, {"factor_types": ["FETCH"]}):
        given = {**THROTTLE, "affected_topics": 1, **changes}
        assert quota_of(BrokerState.of(dump.state(**given)), row).limit == 1e6
    assert quota_of(some, {**row, "mark": None}).limit == 1e6
    of_budget = {**row, "mark": dump.MARK | {"budget": "orders", "factor": 0.5}}
    for shadow, limit in (([], 5e5), (["factor"], 1e6)):
        quota = quota_of(BrokerState.of(dump.state(shadow=shadow)), of_budget)
        assert (quota.limit, quota.slowed, quota.budget_factor) == (limit, not shadow, 0.5)
    for types, factor in ((["PRODUCE"], 0.5), (["FETCH"], None)):
        assert quota_of(BrokerState.of(dump.state(factor_types=types)), of_budget).budget_factor == factor


def test_of_several_the_slowed_count_where_they_are_delayed_more() -> None:
    # The states: a factor for topics on volumes; only a budget slows; a budget slows, and volumes slow all clients.
    states = [dump.state(**THROTTLE, affected_topics=1), dump.state(), dump.state(**THROTTLE)]
    for given, (own, limit) in product(states, ((20.0, 5e5), (300.0, 1e6), (None, 5e5))):
        row = dump.row(user="<broker>", client_id="", delay_ms=own, slowed_limit=5e5, slowed_delay_ms=250.0)
        quota = quota_of(BrokerState.of(given), row)
        assert (quota.limit, quota.delay, quota.affected_topic) == (limit, max(own or 0.0, 250.0), "")
        assert quota.bound is (LimitedBy.FACTOR if limit < 1e6 else LimitedBy.QUOTA)


# ---- for top and for JMX ----


STATE = {"factor": 0.5, "limit_factor": 0.7, "cause": "volume ü\\"}


@pytest.fixture
def shim() -> FakeShim:
    made = FakeShim()
    made.answers["uses"] = dump.uses(*(dump.row(client_id=str(number)) for number in range(3)), **STATE)
    made.answers["state"] = dump.state(**STATE)
    return made


@pytest.fixture
def broker(shim: FakeShim) -> HostBroker:
    return HostBroker(shim, Settings())


@pytest.mark.parametrize(
    ("shadow", "told", "fence"),
    [
        ([], "volume; FETCH, PRODUCE x0.42: busy", "closed"),
        (["factor"], "volume (in shadow); FETCH, PRODUCE x0.42 (in shadow): busy", "open"),
    ],
)
def test_a_look_tells_why_clients_are_slowed_or_would_be_and_of_a_silent_host(
    shim: FakeShim, broker: HostBroker, shadow: list[str], told: str, fence: str
) -> None:
    given = {"type_factors": {"PRODUCE": [0.42, "busy"], "FETCH": [0.42, "busy"]}, "shadow": shadow,
             "fence": CLOSED | {"counts_only": bool(shadow)}}  # fmt: skip
    for factor, cause in ((1.0, told.partition("; ")[2]), (0.5, told)):
        shim.answers["state"] = dump.state(factor=factor, cause="volume", **given)
        look = broker.look(0)
        assert (look.cause, look.fence) == (cause, fence)
    silence = "The Python host has been silent for 61000 ms: fallback.action=OPEN holds until it answers again"
    shim.answers["state"] = dump.state(factor=1.0, cause=silence)
    assert broker.look(0).cause == silence


def gauges(type: str, name: str, **numbers: float) -> dict[tuple[str, str, str], float]:
    return {(type, name, attribute): value for attribute, value in numbers.items()}


def test_a_look_tells_state_marks_volumes_and_budgets_smallest_factor_first(shim: FakeShim, broker: HostBroker) -> None:
    shim.answers["marks"] = [["alice", "app", "orders"]]
    shim.shown = {
        **gauges("Volume", "/dev/sdb", Capacity=1000, Consumed=600),
        **gauges("VolumeLimits", "/dev/sdb", Hard=900, Soft=500, Factor=0.5),
        **gauges("VolumeLimits", "/gone", Factor=0.5),
        **gauges("Volume", "/dev/sda", Capacity=10, Consumed=1),
        **gauges("Factor", "", Value=0.5),
        **gauges("Budget", "idle", Bytes=10, Used=1, Factor=1),
        **gauges("Budget", "full", Bytes=10, Used=10, Factor=0),
        **gauges("Budget", "near", Bytes=10, Used=9, Factor=1),
    }
    look = broker.look(0)
    assert (look.where, look.state, look.factor, look.limit_factor) == ("broker 1 (pid 42)", State.THROTTLE, 0.5, 0.7)
    assert (look.cause, look.fence, look.affected) == ("volume ü\\; budget full x0 for its writers", "open", -1)
    assert look.marks == [(Client("alice", "app"), "orders")]
    volumes = [use for use in look.volumes if not use.budget]
    assert volumes == [VolumeUse("/dev/sda", 10, 1), VolumeUse("/dev/sdb", 1000, 600, 500, 900, 0.5)]
    budgets = [(use.budget, use.capacity, use.consumed, use.factor) for use in look.volumes if use.budget]
    assert budgets == [("full", 10, 10, 0), ("near", 10, 9, 1), ("idle", 10, 1, 1)]
    assert "uses" not in [words[0] for words in shim.questions], "a look without clients doesn't ask Java for them"


def test_usage_is_of_those_whom_kafka_measures_alone_with_their_limit(shim: FakeShim, broker: HostBroker) -> None:
    slowed = dump.row(user="a%3Ab", slowed_limit=5e5, slowed_rate=20.0, slowed_delay_ms=250.0, mark=dump.MARK)
    others = dump.row(type="FETCH", base=None, limit=None, delay_ms=None), dump.row(exempt=True), dump.row(rate=None)
    shim.answers["usage"] = dump.usage(slowed, *others, factor=0.5, affected_topics=1)
    used = [(use.user, use.quota_type, use.rate, use.limit, use.delay_ms, use.idle) for use in broker.usage(9)]
    assert used == [
        ("a:b", QuotaType.PRODUCE, 1020.0, 5e5, 250.0, 0.1), ("alice", QuotaType.FETCH, 1000.0, None, 0.0, 0.1),
    ]  # fmt: skip


def test_java_gets_rows_in_its_order_of_columns_as_many_as_metrics_clients_says(shim: FakeShim) -> None:
    assert columns(use("ä b\n", "")) == ["ä b\n", "", "client", "PRODUCE", 900, 1000, 500, 0.9, 250, "factor"]
    unlimited = columns(use(quota=None, limit=None, bound=LimitedBy.TOPIC_QUOTA))
    assert [*map(str, unlimited[5:8]), unlimited[-1]] == ["nan", "nan", "nan", "topic quota"]
    assert columns(use(bound=LimitedBy.NOTHING, shadow="factor"))[-1] == "shadow: factor"
    assert [len(answered(shim, "clients-table", most)) for most in "20"] == [2, 0]


def test_those_with_a_rate_or_held_back_are_shown(shim: FakeShim) -> None:
    shim.answers["uses"] = dump.uses(
        dump.row(user="idle", rate=0.0, passes=True), dump.row(user="a%3Ab", rate=None, turned_back="fence"),
        dump.row(user="delayed", rate=0.0, delay_ms=1.0), dump.row(user="busy", rate=0.1),
        fence={"closed": True}, factor=0.0,
    )  # fmt: skip
    assert [use.user for use in uses(shim.ask, 9)] == ["a:b", "delayed", "busy"]


def answered(shim: FakeShim, *words: str) -> Any:
    answer_question(shim, "7", words)
    eventually(lambda: "7" in shim.answered)
    return shim.answered.pop("7")


def test_a_question_without_an_answer_has_an_error() -> None:
    silent = FakeShim(told={"configs": ConnectionError("TimeoutException: no answer")})
    assert json.loads(answered(silent, "retention", "a")) == {"error": "TimeoutException: no answer"}


# ---- answers to plugins, and the host's questions about the cluster if Kafka doesn't report it ----


SECRET = "hunter2"


def test_plugins_get_no_secret_but_in_the_configuration_of_their_client() -> None:
    node = node_of(3, "broker")
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    broker = HostBroker(FakeShim(node=node | {name: f'{node[name]} password="{SECRET}";'}), read({}))
    assert broker.properties() == {"node.id": "3"}
    assert broker.client_config() == {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "broker",
        "sasl.password": SECRET,
        "client.id": "quotahost-3",
    }
    assert SECRET not in repr(broker)
    with pytest.raises(TypeError):
        broker.properties()["node.id"] = "4"  # type: ignore[index]


def heard(look: ClusterQuery) -> list[Cluster]:
    """The clusters that the host thread gets."""
    clusters: list[Cluster] = []
    look.hand_on(clusters.append, lambda names: None)
    return clusters


def test_a_kafka_that_does_not_tell_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    look, found = ClusterQuery(shim := FakeShim(), None), list[Cluster]()
    silent, one = ConnectionError("TimeoutException: no answer"), ["id", [[1, False]]]
    for answer in (silent, silent, ["id", [[10, False], [1, False], [2, True]]], one):
        shim.told["cluster"] = answer
        look.look()
        found += heard(look)
    assert found == [Cluster("id", frozenset({1, 10})), Cluster("id", frozenset({1}))]
    assert caplog.text.count("the live brokers, and asking it failed: TimeoutException: no answer") == 1
    shim.told["cluster"] = ["id", [[2, False]]]
    look.look()
    look.kafka_tells()
    assert heard(look) == [], "an answer from before Kafka's first report is dropped"
    look.look()
    assert len(shim.arguments("cluster")) == 5, "the cluster isn't asked again once Kafka reports it"


ROWS = [
    ["7", "client.quota.callback.b", "DYNAMIC_BROKER_CONFIG", ""],
    ["7", "client.quota.callback.a", "DYNAMIC_DEFAULT_BROKER_CONFIG", ""],
    ["7", "client.quota.callback.c", "STATIC_BROKER_CONFIG", ""],
    ["7", "log.retention.ms", "DYNAMIC_BROKER_CONFIG", ""],
]


@pytest.mark.parametrize(("problem", "times"), [("TimeoutException: no answer", 3), ("AuthorizationException: no", 1)])
def test_which_of_our_names_are_stored_is_asked_until_the_broker_answers_or_denies_it(problem: str, times: int) -> None:
    look, told = ClusterQuery(shim := FakeShim(), 7), list[tuple[str, ...]]()
    thread = look.start()  # the thread's period is longer than this test
    silent = ConnectionError(problem)
    for answer in (silent, silent, ROWS, ROWS):
        shim.told["configs"] = answer
        look.look()
        look.hand_on(lambda now: None, told.append)
    thread.close()
    assert shim.arguments("configs") == [["BROKER", ["7"]]] * times
    assert told == [("client.quota.callback.a", "client.quota.callback.b")] * (times == 3)
