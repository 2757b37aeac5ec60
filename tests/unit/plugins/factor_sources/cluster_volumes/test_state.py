"""What one broker makes of its cluster's record: whose volumes count, and what is unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.model import LimitType, Volume
from quotahost.plugins.factor_sources.cluster_volumes.state import ClusterState, Told
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

    def register(self, *brokers: str, stopped: str = "") -> None:
        self.state.register({broker: broker == stopped for broker in brokers})

    def told(self, *fullest: Volume, count: int | None = None, **fields: Any) -> Told:
        fields = {"reporting": 3, "volume_count": len(fullest) if count is None else count} | fields
        listed = tuple(map(Filling, fullest))
        return self.state.of(ClusterRecord("c", 1, 1, NOW, fullest=listed, **fields), GRACE, EXPIRY)


@pytest.fixture
def world() -> World:
    return World()


def test_the_fullest_and_the_worst_volumes_count_each_once_and_the_own_are_looked_at_elsewhere(
    world: World,
) -> None:
    worst = {LimitType.MIN_FREE_BYTES: (Filling(disk("2", 90)), Filling(disk("3")))}
    told = world.told(disk("2", 90), disk("1", 95), worst=worst, count=3)
    assert told == Told((disk("2", 90), disk("3")), (), False, 0, 0)


def test_where_not_all_are_listed_the_own_and_a_strangers_volume_stand_for_those_behind_them(
    world: World,
) -> None:
    listed = (disk("1", 95), disk("9", 94), disk("2", 90))
    assert world.told(*listed, count=4).volumes == listed
    assert world.told(*listed).volumes == (disk("2", 90),)


def test_stale_brokers_and_offline_dirs_are_unknown_at_once_each_with_a_sentence(world: World) -> None:
    dirs = (OfflineDir("3", "/e\nOPEN"), OfflineDir("1", "/own"), OfflineDir("9", "/gone"))
    told = world.told(reporting=2, stale=3, stale_brokers=("2", "1", "9"), offline=3, offline_dirs=dirs)
    assert told.unknown == ("broker 2: its newest snapshot is stale", "broker 3, log dir '/e\\nOPEN'")
    assert (told.stale, told.patient) == (1, False)


def test_a_missing_broker_is_waited_for_and_then_unknown(world: World) -> None:
    missing: dict[str, Any] = {"reporting": 2, "missing": 1, "missing_brokers": ("3",)}
    assert world.told(**missing) == Told((), (), True, 0, 1)
    world.clock.now += GRACE + 1
    assert world.told(**missing) == Told((), ("broker 3: no snapshot",), False, 0, 1)
    world.told()
    assert world.told(**missing).patient, "it was there in between"


def test_an_unregistered_broker_counts_no_more_nor_one_that_is_stopped_and_was_silent_for_expiry(
    world: World,
) -> None:
    silent: dict[str, Any] = {
        "reporting": 1,
        "stale": 1,
        "stale_brokers": ("2",),
        "missing": 1,
        "missing_brokers": ("3",),
    }
    world.told(**silent)
    world.clock.now += EXPIRY + 1
    assert len(world.told(**silent).unknown) == 2, "they are not stopped"
    world.register("1", "2", "3", stopped="2")
    assert world.told(**silent).unknown == ("broker 3: no snapshot",)
    world.register("1", stopped="2")
    assert world.told(**silent) == Told((), (), False, 0, 0)


def test_until_the_brokers_are_known_all_that_are_told_count(world: World) -> None:
    world.state = ClusterState("1", world.clock)
    told = world.told(disk("9"), stale=1, stale_brokers=("8",))
    assert (told.volumes, told.unknown) == ((disk("9"),), ("broker 8: its newest snapshot is stale",))


def test_what_a_list_is_too_short_for_is_unknown_too(world: World) -> None:
    told = world.told(stale=66, stale_brokers=("2",), offline=3, offline_dirs=(OfflineDir("2", "/e"),))
    assert told.unknown[1:] == (
        "65 more brokers with stale snapshots", "broker 2, log dir /e", "2 more log dirs that are offline",
    )  # fmt: skip
    assert told.stale == 66


def test_missing_brokers_that_are_not_listed_are_waited_for_also_while_they_become_fewer(
    world: World,
) -> None:
    assert world.told(missing=100).patient
    world.clock.now += GRACE - 1
    assert world.told(missing=50).patient
    world.clock.now += 2
    told = world.told(missing=20)
    assert (told.unknown, told.missing) == (("20 more brokers without a snapshot",), 20)


def test_brokers_that_run_and_that_the_pipeline_does_not_know_are_unknown_after_a_while(world: World) -> None:
    assert world.told(reporting=1, stale=1, stale_brokers=("9",)).patient
    world.clock.now += GRACE + 1
    told = world.told(reporting=1, stale=1, stale_brokers=("9",))
    assert told.unknown == ("3 brokers run, but the pipeline knows only 2",)
    world.register("1", "2", "3", stopped="3")
    assert world.told(reporting=1, stale=1, stale_brokers=("9",)).unknown == ()
