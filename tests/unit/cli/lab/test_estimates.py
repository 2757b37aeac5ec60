"""What a replay estimates: how a volume would have filled, and who would have been held back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.cli.lab.curves import Bucket, ClientUse, Name, Use
from quotahost.cli.lab.pages import replay_page
from quotahost.cli.lab.play import FactorPoint, Growth, play, replayed_client
from quotahost.cli.lab.replay import tables_of
from tests.unit.cli.lab import runs

SHARES = st.floats(0, 1)
STEPS = st.lists(st.tuples(st.integers(0, 10**12), st.floats(0.1, 100), SHARES, SHARES), min_size=1, max_size=30)


@given(st.integers(0, 10**12), STEPS)
def test_larger_shares_never_leave_a_volume_emptier_and_the_same_give_what_was(
    start: int, steps: list[tuple[int, float, float, float]]
) -> None:
    growth, same = Growth(start), Growth(start)
    for used, seconds, then, new in steps:
        growth.add(used, seconds, min(then, new) * seconds, max(then, new) * seconds)
        assert growth.used >= used - 1e-3
        same.add(used, seconds, then * seconds, then * seconds)
        assert round(same.used) == used
    assert not same.estimated


@pytest.mark.parametrize(
    ("start", "readings", "used", "estimated"),
    [
        pytest.param(1000, [(1400, 10, 5)], 1200, False, id="half the share is half the growth"),
        pytest.param(1000, [(1400, 10, 5), (1300, 10, 5)], 1100, False, id="and the whole of what is deleted"),
        pytest.param(0, [(1000, 10, 10), (1000, 0, 10)], 2000, True, id="a PAUSE held back as much as came before it"),
        pytest.param(0, [(500, 0, 0)], 500, False, id="what comes in a PAUSE comes with any settings"),
    ],
)
def test_an_estimate_of_readings_ten_seconds_apart(
    start: int, readings: list[tuple[int, float, float]], used: int, estimated: bool
) -> None:
    growth = Growth(start)
    for recorded, then_s, new_s in readings:
        growth.add(recorded, 10, then_s, new_s)
    assert (growth.used, growth.estimated) == (used, estimated)


#: Open for ten minutes, then half for ten with the new settings, then paused for ten; nothing of that then.
FACTORS = tuple(FactorPoint(600.0 * i, 1.0, new) for i, new in enumerate((1.0, 0.5, 0.0, 1.0)))


def client(demand: float | None, brokers: int = 1, until: int = 40, name: str = "app") -> ClientUse:
    uses = [Use(60.0 * i, str(b), 100.0, demand, 1000.0) for i in range(until) for b in range(brokers)]
    return ClientUse("c", "alice", name, 60.0, tuple(uses))


@pytest.mark.parametrize(
    ("demand", "slowed", "paused"), [(400.0, 0, 600), (500.0, 0, 600), (501.0, 600, 600), (None, 600, 600)]
)
def test_a_client_is_slowed_beyond_what_the_factor_leaves(demand: float | None, slowed: int, paused: int) -> None:
    found = replayed_client(client(demand), FACTORS, 2400.0)
    assert found.new == (slowed, paused)
    assert found.then == (0, 0)
    on_two = replayed_client(client(demand and demand / 2, brokers=2), FACTORS, 2400.0)
    assert (on_two.new, on_two.brokers, on_two.rate) == (found.new, ("0", "1"), 200.0), "what it wants counts together"


def test_one_that_wants_nothing_or_was_gone_is_not_held_back_but_one_that_was_paused_counts_on() -> None:
    for gone in (client(0.0), client(None, until=5)):
        found = replayed_client(gone, FACTORS, 2400.0)
        assert found.new == found.then == (0, 0)
    factors = tuple(point._replace(then=point.new) for point in FACTORS)
    assert replayed_client(client(None, until=20), factors, 2400.0).then == (600, 600)


def test_of_brokers_with_factors_of_their_own_those_count_where_it_writes() -> None:
    full, empty = ([Bucket(60.0 * i, used, used, used, 1000, 900, 1000) for i in range(40)] for used in (700, 10))
    history = runs.report({Name("c", "0", "/d"): full, Name("c", "7", "/d"): empty})
    own = runs.settings(factor__source="local", static__storage__soft="300", static__storage__hard="600")
    (found,) = play(replace(history, clients=(client(None),)), runs.plan(own)).clients
    assert found.new.paused_s > 2000
    elsewhere = tuple(use._replace(broker="7") for use in client(None).uses)
    assert play(replace(history, clients=(replace(client(None), uses=elsewhere),)), runs.plan(own)).clients == ()


def test_a_replay_names_them_and_says_where_usage_is_lacking() -> None:
    buckets = [Bucket(60.0 * i, 20 * i, 20 * i, 20 * i, 1000, 900, 1000) for i in range(40)]
    history = runs.report({Name("c", "1", "/d"): buckets})
    own = runs.settings(factor__source="snapshots", static__storage__soft="300", static__storage__hard="600")
    assert any("no usage" in note for note in play(history, runs.plan(own)).notes)
    played = play(replace(history, clients=(client(None, name="<b>app"),)), runs.plan(own))
    assert not any("no usage" in note for note in played.notes)
    (found,) = played.clients
    assert found.new.slowed_s > 60
    assert found.then == (0, 0)
    assert "&lt;b&gt;app" in replay_page(played, "server.properties", tables_of(played))
