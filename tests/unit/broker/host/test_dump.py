"""Java's raw dump: whose a scope is, what limit it has, and by what those who share it are held back."""

from __future__ import annotations

from typing import Any

import pytest

from quotahost.broker.host.broker_status import use_of
from quotahost.broker.host.dump import quota_of, state_of, whose
from quotahost.model import LimitedBy, QuotaType
from quotahost.model.use import ClientUse
from tests.fakes import dump

THROTTLE = {"factor": 0.5, "limit_factor": 0.5, "cause": "full"}
CLOSED = {"installed": True, "closed": True, "counts_only": False}
HELD = {**dump.MARK, "held": True}


@pytest.mark.parametrize(
    ("tags", "who"),
    [
        (("a%3Ab", "c\td\u00fc"), ("a:b", "c\td\u00fc", "client")),
        (("bob", ""), ("bob", "", "user")),
        (("", "shared"), ("", "shared", "client-id")),
        (("<group gold%20%26%20silver>", ""), ("", "", "group gold & silver")),
        (("<broker>", ""), ("", "", "broker")),
        (("<newcomers>", ""), ("", "", "newcomers")),
        (("<newcomers a%3Ab>", ""), ("a:b", "", "newcomers of the user")),
        (("<unlimited>", ""), ("", "", "unlimited")),
        (("<exempt>", ""), ("", "", "exempt")),
    ],
)
def test_a_scope_tells_who_shares_it(tags: tuple[str, str], who: tuple[str, str, str]) -> None:
    assert whose(*tags) == who


def test_a_row_tells_rate_quota_limit_delay_and_what_binds() -> None:
    row = dump.row(rate=480.0, base=1000.0, limit=500.0, delay_ms=250.0)
    assert use_of(state_of(dump.state(**THROTTLE, floors={"PRODUCE": 10.0})), row) == ClientUse(
        QuotaType.PRODUCE, "alice", "app", "client", 480.0, 1000.0, 500.0, 250.0, LimitedBy.FACTOR, 0.1
    )


@pytest.mark.parametrize(
    ("row", "state", "bound"),
    [
        ({"rate": 9.05e5}, {}, LimitedBy.QUOTA),
        ({"rate": 8.9e5}, {}, LimitedBy.NOTHING),
        ({"delay_ms": 1.0}, {}, LimitedBy.QUOTA),
        ({"rate": None, "delay_ms": None}, {}, LimitedBy.NOTHING),
        ({"rate": 9e5, "limit": 9.5e5}, THROTTLE, LimitedBy.FACTOR),
        ({"rate": 3.5e4, "limit": 3.5e4}, THROTTLE, LimitedBy.FLOOR),
        ({"rate": 1e3, "base": 1e3, "limit": 1e3}, THROTTLE, LimitedBy.QUOTA),  # below the floor, as it was set
        ({"rate": 3.5e4, "base": 3.5e4, "limit": 3.5e4}, THROTTLE, LimitedBy.QUOTA),
        ({"base": None, "limit": None, "rate": 1e9}, THROTTLE, LimitedBy.NOTHING),
        ({"base": None, "limit": 5e5, "stand_in": 1e6, "rate": 5e5}, THROTTLE, LimitedBy.FACTOR),
        ({"base": None, "limit": 5e5, "rate": 5e5}, THROTTLE, LimitedBy.FACTOR),  # the newcomers' rate stands in
        ({"type": "FETCH", "rate": 3e4, "base": 3e4, "limit": 3e4}, THROTTLE, LimitedBy.QUOTA),  # no factor acts on it
        ({"type": "REQUEST", "base": 50.0, "limit": 50.0, "rate": 1.0, "delay_ms": 9.0}, {}, LimitedBy.NOTHING),
        ({"type": "REQUEST", "base": 50.0, "limit": 50.0, "rate": 49.0}, {}, LimitedBy.QUOTA),
        ({"type": "CONTROLLER_MUTATION", "base": 5.0, "limit": 5.0, "rate": 9.0, "delay_ms": 9.0, "tokens": 0.0}, {},
         LimitedBy.NOTHING),
        ({"type": "CONTROLLER_MUTATION", "base": 5.0, "limit": 5.0, "tokens": -0.5}, {}, LimitedBy.QUOTA),
    ],
)  # fmt: skip
def test_what_binds_is_quota_factor_floor_or_nothing(
    row: dict[str, Any], state: dict[str, Any], bound: LimitedBy
) -> None:
    assert use_of(state_of(dump.state(**state)), dump.row(**row)).bound is bound


@pytest.mark.parametrize(
    ("row", "state", "bound"),
    [
        ({}, {}, LimitedBy.FENCE),  # it needn't have asked
        ({"passes": True}, {}, LimitedBy.NOTHING),
        ({}, {"fence": {**CLOSED, "counts_only": True}}, LimitedBy.NOTHING),
        (
            {"turned_back": "fence"},
            {"fence": {**CLOSED, "closed": False}},
            LimitedBy.NOTHING,
        ),  # an open one holds nobody
        ({"type": "FETCH"}, {}, LimitedBy.NOTHING),
        ({"user": "<newcomers>", "client_id": ""}, {}, LimitedBy.NOTHING),  # of several: if one was turned back
        ({"user": "<newcomers>", "client_id": "", "turned_back": "fence"}, {}, LimitedBy.FENCE),
        ({}, {"affected_topics": 2}, LimitedBy.NOTHING),
        ({"mark": dump.MARK}, {"affected_topics": 2}, LimitedBy.NOTHING),
        ({"mark": HELD}, {"affected_topics": 2}, LimitedBy.FENCE),
        ({"mark": HELD, "passes": True}, {"affected_topics": 2}, LimitedBy.NOTHING),
        ({"turned_back": "topics", "passes": True}, {}, LimitedBy.TOPIC_QUOTA),
        ({"user": "", "turned_back": "topics"}, {"fence": {"closed": False}}, LimitedBy.TOPIC_QUOTA),
    ],
)
def test_a_closed_fence_and_topic_quotas_bind(row: dict[str, Any], state: dict[str, Any], bound: LimitedBy) -> None:
    given = {"factor": 0.0, "fence": CLOSED, **state}
    assert use_of(state_of(dump.state(**given)), dump.row(**row)).bound is bound


def test_explain_says_the_same_of_a_client_as_its_row() -> None:
    state = state_of(dump.state(**THROTTLE, fence=CLOSED, affected_topics=1))
    row = dump.row(limit=1e6, slowed_limit=5e5, slowed_rate=4e5, mark=HELD)
    client = dump.client(row, mark=HELD)["client"]
    explained, listed = quota_of(state, client["quotas"][0], client), use_of(state, row)
    assert (explained.bound, explained.limit, explained.rate) == (listed.bound, listed.limit, listed.rate)
    assert (explained.affected_topic, explained.affected_place) == ("orders", "broker 3, volume /dev/sdb")


def test_a_slowed_client_has_the_limit_of_the_slowed_and_all_that_is_measured_of_it() -> None:
    row = dump.row(
        rate=100.0, delay_ms=20.0, limit=1e6, slowed_limit=5e5, slowed_rate=30.0, slowed_delay_ms=250.0, mark=dump.MARK
    )
    some = state_of(dump.state(**THROTTLE, affected_topics=1))
    quota = quota_of(some, row)
    assert (quota.rate, quota.delay, quota.limit, quota.bound, quota.slowed) == (
        130.0,
        250.0,
        5e5,
        LimitedBy.FACTOR,
        True,
    )
    for changes in ({"shadow": ["factor"]}, {"enforced": False}, {"affected_topics": -1}, {"factor_types": ["FETCH"]}):
        given = {**THROTTLE, "affected_topics": 1, **changes}
        assert quota_of(state_of(dump.state(**given)), row).limit == 1e6
    assert quota_of(some, {**row, "mark": None}).limit == 1e6


def test_of_several_the_slowed_count_where_they_are_delayed_more() -> None:
    some = state_of(dump.state(**THROTTLE, affected_topics=1))
    for own, limit in ((20.0, 5e5), (300.0, 1e6), (None, 5e5)):
        row = dump.row(user="<broker>", client_id="", delay_ms=own, slowed_limit=5e5, slowed_delay_ms=250.0)
        quota = quota_of(some, row)
        assert (quota.limit, quota.delay, quota.affected_topic) == (limit, max(own or 0.0, 250.0), "")


def test_a_rule_in_shadow_that_would_hold_a_scope_back_is_told() -> None:
    held = '{"PRODUCE":[["alice","app","factor"]]}'
    for told in (held, {"PRODUCE": [["alice", "app", "factor"]]}):
        state = state_of(dump.state(held=told))
        assert use_of(state, dump.row()).bound_by == "shadow: factor"
        assert use_of(state, dump.row(type="FETCH")).shadow == ""


def test_who_is_exempt_is_no_newcomer_and_has_no_limit() -> None:
    client = dump.client(dump.row(user="<exempt>", client_id="", exempt=True, base=None, limit=None, known=False))
    quota = quota_of(state_of(dump.state(**THROTTLE)), client["client"]["quotas"][0], client["client"])
    assert (quota.newcomer, quota.uses_stand_in, quota.floored, quota.bound) == (False, False, False, LimitedBy.NOTHING)
