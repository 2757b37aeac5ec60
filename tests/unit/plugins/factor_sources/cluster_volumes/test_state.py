"""What one broker makes of its cluster's record: which volumes it takes, and what is unknown to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.model import LimitType, Volume
from quotahost.plugins.factor_sources.cluster_volumes.state import ClusterState, ClusterView
from quotahost.records.cluster_volumes import ClusterRecord, Filling, OfflineDir
from tests.fakes.plugin_context import Clock

GRACE, EXPIRY = 30.0, 3600.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def disk(broker: str, consumed: int = 10, name: str = "/d") -> Volume:
    return Volume(broker, name, 100, consumed)


class World:
    """Broker 1 of a cluster of three."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.state = ClusterState("1", self.clock)
        self.register("1", "2", "3")

    def register(self, *brokers: str, fenced: str = "") -> None:
        self.state.register({broker: broker == fenced for broker in brokers})

    def view(self, *fullest: Volume, count: int | None = None, **fields: Any) -> ClusterView:
        fields = {"reporting": 3, "volume_count": len(fullest) if count is None else count} | fields
        listed = tuple(map(Filling, fullest))
        return self.state.view(ClusterRecord("c", 1, 1, NOW, fullest=listed, **fields), GRACE, EXPIRY)


@pytest.fixture
def world() -> World:
    return World()


def test_the_fullest_and_the_worst_volumes_are_taken_once_each_without_this_brokers_own(world: World) -> None:
    worst = {LimitType.MIN_FREE_BYTES: (Filling(disk("2", 90)), Filling(disk("3")))}
    view = world.view(disk("2", 90), disk("1", 95), worst=worst, count=3)
    assert view == ClusterView((disk("2", 90), disk("3")))


def test_in_a_truncated_list_this_brokers_and_a_strangers_volumes_stand_for_those_left_out(world: World) -> None:
    listed = (disk("1", 95), disk("9", 94), disk("2", 90))
    assert world.view(*listed, count=4).volumes == listed
    assert world.view(*listed).volumes == (disk("2", 90),)


def test_stale_brokers_and_offline_dirs_are_unknown_at_once_with_a_sentence_each(world: World) -> None:
    dirs = (OfflineDir("3", "/e\nOPEN"), OfflineDir("1", "/own"), OfflineDir("9", "/gone"))
    view = world.view(reporting=2, stale=3, stale_brokers=("2", "1", "9"), offline=3, offline_dirs=dirs)
    assert view.unknown == ("broker 2: its newest snapshot is stale", "broker 3, log dir '/e\\nOPEN'")
    assert (view.stale, view.complete) == (1, True)


def test_a_missing_broker_is_waited_for_and_then_unknown(world: World) -> None:
    missing: dict[str, Any] = {"reporting": 2, "missing": 1, "missing_brokers": ("3",)}
    assert world.view(**missing) == ClusterView(complete=False, missing=1)
    world.clock.now += GRACE + 1
    assert world.view(**missing) == ClusterView(unknown=("broker 3: no snapshot",), missing=1)
    world.view()
    assert not world.view(**missing).complete, "it was there in between"


def test_an_unregistered_broker_is_ignored_and_so_is_a_fenced_one_that_was_silent_for_expiry(world: World) -> None:
    silent: dict[str, Any] = {
        "reporting": 1,
        "stale": 1,
        "stale_brokers": ("2",),
        "missing": 1,
        "missing_brokers": ("3",),
    }
    world.view(**silent)
    world.clock.now += EXPIRY + 1
    assert len(world.view(**silent).unknown) == 2, "they are not fenced"
    world.register("1", "2", "3", fenced="2")
    assert world.view(**silent).unknown == ("broker 3: no snapshot",)
    world.register("1", fenced="2")
    assert world.view(**silent) == ClusterView()


def test_until_the_brokers_are_known_all_that_the_record_names_count(world: World) -> None:
    world.state = ClusterState("1", world.clock)
    view = world.view(disk("9"), stale=1, stale_brokers=("8",))
    assert (view.volumes, view.unknown) == ((disk("9"),), ("broker 8: its newest snapshot is stale",))


def test_the_entries_that_a_truncated_list_omits_are_unknown(world: World) -> None:
    view = world.view(stale=66, stale_brokers=("2",), offline=3, offline_dirs=(OfflineDir("2", "/e"),))
    assert view.unknown[1:] == (
        "65 more brokers with stale snapshots", "broker 2, log dir /e", "2 more log dirs that are offline",
    )  # fmt: skip
    assert view.stale == 66


def test_missing_brokers_that_are_not_listed_are_waited_for_also_while_they_become_fewer(world: World) -> None:
    assert not world.view(missing=100).complete
    world.clock.now += GRACE - 1
    assert not world.view(missing=50).complete
    world.clock.now += 2
    view = world.view(missing=20)
    assert (view.unknown, view.missing) == (("20 more brokers without a snapshot",), 20)


def test_brokers_that_run_and_that_the_pipeline_does_not_know_are_unknown_after_a_while(world: World) -> None:
    assert not world.view(reporting=1, stale=1, stale_brokers=("9",)).complete
    world.clock.now += GRACE + 1
    view = world.view(reporting=1, stale=1, stale_brokers=("9",))
    assert view.unknown == ("3 brokers run, but the pipeline knows only 2",)
    world.register("1", "2", "3", fenced="3")
    assert world.view(reporting=1, stale=1, stale_brokers=("9",)).unknown == ()
