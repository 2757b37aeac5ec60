"""What one broker makes of its cluster's record: which volumes it takes, and what is unknown to it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.model import LimitType, Volume
from quotahost.records.cluster_volumes import ClusterRecord, Filling, OfflineDir
from tests.fakes.plugin_context import Clock, patience

GRACE, HOUR = 30.0, 3600.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def disk(broker: str, consumed: int = 10, name: str = "/d") -> Volume:
    return Volume(broker, name, 100, consumed)


class World:
    """Broker 1 of a cluster of three."""

    def __init__(self) -> None:
        self.clock, self.strict = Clock(), False
        self.state = ClusterState("1", self.clock)
        self.register("1", "2", "3")

    def register(self, *brokers: str, fenced: str = "") -> None:
        self.state.register({broker: broker == fenced for broker in brokers})

    def view(self, *fullest: Volume, count: int | None = None, **fields: Any) -> View:
        fields = {"reporting": 3, "volume_count": len(fullest) if count is None else count} | fields
        listed = tuple(map(Filling, fullest))
        return self.state.view(ClusterRecord("c", 1, 1, NOW, fullest=listed, **fields), patience(self.strict))

    def silent(self, broker: str, *volumes: Volume) -> View:
        """A record in which this broker is stale, and had these volumes."""
        last = tuple(map(Filling, volumes))
        return self.view(reporting=2, stale=1, stale_brokers=(broker,), silent=last)


@pytest.fixture
def world() -> World:
    return World()


def test_the_fullest_and_the_worst_volumes_are_taken_once_each_without_this_brokers_own(world: World) -> None:
    worst = {LimitType.MIN_FREE_BYTES: (Filling(disk("2", 90)), Filling(disk("3")))}
    view = world.view(disk("2", 90), disk("1", 95), worst=worst, count=3)
    assert view == View((disk("2", 90), disk("3")))


def test_in_a_truncated_list_this_brokers_and_a_strangers_volumes_stand_for_those_left_out(world: World) -> None:
    listed = (disk("1", 95), disk("9", 94), disk("2", 90))
    assert world.view(*listed, count=4).volumes == listed
    assert world.view(*listed).volumes == (disk("2", 90),)


def test_stale_brokers_and_offline_dirs_are_unknown_at_once_with_a_sentence_each(world: World) -> None:
    dirs = (OfflineDir("3", "/e\nOPEN"), OfflineDir("1", "/own"), OfflineDir("9", "/gone"))
    world.clock.now += GRACE + 1
    view = world.view(reporting=2, stale=3, stale_brokers=("2", "1", "9"), offline=3, offline_dirs=dirs)
    assert view.unknown == ("broker 2: its newest snapshot is stale", "broker 3, log dir '/e\\nOPEN'")
    assert (view.stale, view.complete) == (1, True)


def test_until_the_brokers_are_known_no_broker_is_missed_and_all_volumes_count(world: World) -> None:
    world.state = ClusterState("1", world.clock)
    view = world.view(disk("9"), stale=1, stale_brokers=("8",))
    assert (view.volumes, view.unknown, view.complete) == ((disk("9"),), (), False)


def test_brokers_that_are_not_registered_never_count_whatever_their_number(world: World) -> None:
    world.clock.now += GRACE + 1
    gone = tuple(f"gone-{n}" for n in range(64))
    view = world.view(stale=10_000, stale_brokers=gone, offline=100, offline_dirs=(OfflineDir("9", "/e"),))
    assert view == View()
    world.clock.now += HOUR
    assert world.view(stale=10_000, stale_brokers=gone) == View()


def test_brokers_that_run_and_are_omitted_from_truncated_lists_are_unknown_after_a_while(world: World) -> None:
    gone = tuple(f"gone-{n}" for n in range(64))
    assert not world.view(reporting=1, stale=66, stale_brokers=gone).complete
    world.clock.now += GRACE + 1
    view = world.view(reporting=1, stale=66, stale_brokers=gone)
    assert (view.unknown, view.missing) == (("2 brokers run, of which the pipeline has no snapshot",), 2)


def test_brokers_that_nobody_lists_are_waited_for_also_while_they_become_fewer(world: World) -> None:
    assert not world.view(reporting=0).complete
    world.clock.now += GRACE - 1
    assert not world.view(reporting=1).complete
    world.clock.now += 2
    assert world.view(reporting=2).unknown == ("1 brokers run, of which the pipeline has no snapshot",)
    assert world.view(reporting=3).unknown == ()
    assert not world.view(reporting=2).complete, "they were there in between"
