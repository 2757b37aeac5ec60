"""The rows of ``quotahost top``: of several brokers one for each client, and in what order."""

import pytest
from rich.console import Console

from quotahost.cli.top.rows import Choice, ClusterUse, Order, cause_line, merged, whole
from quotahost.model import LimitedBy, QuotaType, State
from tests.unit.cli.top.uses import look, use


def test_a_client_of_several_brokers_is_one_row() -> None:
    slow = use(rate=1e6, quota=1e6, delay_ms=300.0, bound=LimitedBy.QUOTA, idle=0.0)
    idle = use(rate=1e5, quota=1e6, delay_ms=0.0, idle=3.0, shadow="static")
    reads = use(quota_type=QuotaType.FETCH, quota=None, limit=None)
    found = merged({"10": look([slow]), "9": look([idle, reads]), "2": look()}, {"2", "9", "10"})
    (one,) = Choice(type=QuotaType.PRODUCE).rows(found.uses)
    assert isinstance(one, ClusterUse)
    assert (one.rate, one.quota, one.delay_ms, one.idle, one.shadow) == (1.1e6, 2e6, 300.0, 0.0, "static")
    assert one.brokers == ("9", "10")
    # The broker on which it has nothing left decides.
    assert (one.bound, one.share) == (LimitedBy.QUOTA, 1.0)
    (other,) = Choice(type=QuotaType.FETCH).rows(found.uses)
    assert (other.quota, other.limit, other.share) == (None, None, None)


def test_the_worst_state_is_told_and_who_is_silent() -> None:
    slow = look(state=State.THROTTLE, factor=0.5, limit_factor=0.6, cause="broker 3", fence="open")
    shut = look(state=State.PAUSE, factor=0.0, limit_factor=0.0, cause="broker 1", fence="closed")
    found = merged({"1": look(), "2": slow, "3": shut}, {"1", "2", "3", "4", "5"})
    assert (found.state, found.factor, found.cause, found.fence) == (State.PAUSE, 0.0, "broker 1", "closed")
    assert found.where == "3 of 5 brokers (silent: 4, 5)"
    assert merged({"1": look(), "2": slow}, {"1"}).factor == 0.5
    more = look([use()], left_out=True)
    assert [merged(looks, looks).left_out for looks in ({"1": look()}, {"1": look(), "2": more})] == [False, True]


def test_a_broker_that_slows_single_types_by_its_load_is_named() -> None:
    cause = "FETCH, PRODUCE x0.42: this broker's request handlers are 4 % idle (target 30 %)"
    found = merged({"1": look(), "2": look(where="broker 2", cause=cause)}, {"1", "2"})
    assert cause_line(found).plain == f"cause: broker 2: {cause}"
    assert cause_line(look()).plain == ""


def test_brokers_that_slow_nobody_hide_no_topics_of_the_others() -> None:
    some = look(state=State.THROTTLE, factor=0.5, affected=3)
    assert merged({"1": look(), "2": some}, {"1", "2"}).affected == 3
    everybody = look(state=State.THROTTLE, factor=0.9, affected=-1)
    assert merged({"1": everybody, "2": some}, {"1", "2"}).affected == -1


def test_a_column_counts_the_brokers() -> None:
    console = Console(width=120, highlight=False)
    with console.capture() as text:
        console.print(whole(merged({"1": look([use()]), "2": look([use()])}, {"1", "2"}), Choice(), 120))
    lines = text.get().splitlines()
    assert lines[0].startswith("2 of 2 brokers  OPEN")
    assert "brokers" in lines[2]
    assert lines[3].split() == ["alice", "app", "PRODUCE", "2.00", "MB/s", "4.00", "MB/s", "50", "%", "2"]


SLOW = use("bob", "slow", rate=5e5, quota=1e6, delay_ms=300.0, bound=LimitedBy.FACTOR)
FAST = use("carol", "fast", rate=9e6, quota=1e8)
FETCH = use("alice", "reads", quota_type=QuotaType.FETCH, rate=2e7, quota=None, limit=None)
NOTHING = use("dave", "none", rate=3.0, quota=0.0, bound=LimitedBy.QUOTA)
IDLE = use("erin", "idle", rate=0.0)
ALL = [SLOW, FETCH, IDLE, NOTHING, FAST]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (Order.RATE, [FAST, SLOW, NOTHING, FETCH]),  # bytes that are read aren't compared with those written
        (Order.SHARE, [NOTHING, SLOW, FAST, FETCH]),
        (Order.DELAY, [SLOW, FAST, NOTHING, FETCH]),
        (Order.NAME, [FETCH, SLOW, FAST, NOTHING]),
    ],
)
def test_the_largest_come_first_and_the_idle_are_left_out(order: Order, wanted: list[object]) -> None:
    assert Choice(order).rows(ALL) == wanted


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(type=QuotaType.FETCH), {FETCH}),
        (Choice(held=True), {SLOW, NOTHING}),
        (Choice(text="CAR"), {FAST}),
        (Choice(text="reads"), {FETCH}),
        (Choice(text="factor"), {SLOW}),
        (Choice(text="nothing"), set()),
    ],
)
def test_a_filter_keeps_what_it_names(choice: Choice, wanted: set[object]) -> None:
    assert set(choice.rows(ALL)) == wanted
