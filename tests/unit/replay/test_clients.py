"""Who would have been held back: those who want more than their quota times the factor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quotahost.replay.clients import courses
from quotahost.replay.page import page
from quotahost.replay.play import play
from quotahost.replay.values import FactorPoint, Held, Where
from quotahost.report.values import Bucket, ClientUse, Name, Use
from tests.unit.replay import runs

HELD = Held(0, 0, 0, 0, None, 0)
#: Open for ten minutes, then half for ten with the new settings, then paused for ten; nothing of that then.
FACTORS = tuple(FactorPoint(600.0 * i, 1.0, new) for i, new in enumerate((1.0, 0.5, 0.0, 1.0)))
CLUSTER = Where("c", "", HELD, HELD, 0, FACTORS)


def client(demand: float | None, brokers: int = 1, until: int = 40, name: str = "app") -> ClientUse:
    uses = [Use(60.0 * i, str(b), 100.0, demand, 1000.0) for i in range(until) for b in range(brokers)]
    return ClientUse("c", "alice", name, 60.0, tuple(uses))


@pytest.mark.parametrize(
    ("demand", "slowed", "paused"), [(400.0, 0, 600), (500.0, 0, 600), (501.0, 600, 600), (None, 600, 600)]
)
def test_a_client_is_slowed_that_wants_more_than_the_factor_leaves(
    demand: float | None, slowed: int, paused: int
) -> None:
    (found,) = courses([client(demand)], [CLUSTER], 2400.0)
    assert found.new == (slowed, paused)
    assert found.then == (0, 0)


def test_what_it_wants_on_all_brokers_counts_together() -> None:
    (found,) = courses([client(300.0, brokers=2)], [CLUSTER], 2400.0)
    assert found.new == (600, 600)
    assert found.brokers == ("0", "1")
    assert found.rate == 200.0


def test_one_that_wants_nothing_or_was_gone_is_not_held_back() -> None:
    assert courses([client(0.0), client(None, until=5)], [CLUSTER], 2400.0) == ()


def test_one_that_was_silent_because_it_was_paused_counts_on() -> None:
    factors = tuple(point._replace(then=point.new) for point in FACTORS)
    before = [use for use in client(None).uses if use.at < 1200]
    (found,) = courses([replace(client(None), uses=tuple(before))], [replace(CLUSTER, factors=factors)], 2400.0)
    assert found.then.slowed_s == 600
    assert found.then.paused_s == 600


def test_of_brokers_with_factors_of_their_own_those_count_where_it_writes() -> None:
    open_ = replace(CLUSTER, broker="7", factors=(FactorPoint(0.0, 1.0, 1.0),))
    assert courses([client(None)], [replace(CLUSTER, broker="0"), open_], 2400.0)[0].new.paused_s == 600
    assert courses([client(None)], [replace(CLUSTER, broker="1"), open_], 2400.0) == ()


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
    assert "&lt;b&gt;app" in page(played, "server.properties")
