"""The newest record is kept, whatever the order, the run or the clock of the records that are read."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.kafka.latest_record import LatestRecord
from quotahost.records.cluster_volumes import ClusterRecord
from tests.fakes.plugin_context import WALL, Clocks

VALIDITY = 60.0
MADE_AT = datetime.fromtimestamp(WALL, UTC)


class World(Clocks):
    """A reader with its two clocks."""

    def __init__(self) -> None:
        super().__init__()
        self.newest: LatestRecord[ClusterRecord] = LatestRecord(self.clock, self.wall)

    def arrives(self, run: int, sequence: int, live: bool = True) -> str:
        return self.newest.take(ClusterRecord("c", run, sequence, MADE_AT), live, VALIDITY)

    @property
    def kept(self) -> tuple[int, int] | None:
        known = self.newest.known()[0]
        return None if known is None else known.order

    @property
    def age(self) -> float:
        return self.newest.known()[1]


@pytest.fixture
def world() -> World:
    return World()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1), st.booleans())
def test_in_whatever_order_the_highest_run_and_sequence_is_kept(orders: list[tuple[int, int]], live: bool) -> None:
    world = World()
    for order in orders:
        world.arrives(*order, live=live)
    assert world.kept == max(orders)


def test_once_the_kept_record_is_too_old_the_next_to_arrive_replaces_it_whatever_its_run(world: World) -> None:
    world.arrives(2, 1)
    world.passes(VALIDITY)
    assert world.arrives(1, 7) == "other-pipeline", "it is not too old yet"
    assert world.arrives(2, 1) == "", "a batch that is published again is neither newer nor wrong"
    assert world.arrives(2, 0) == "late"
    assert (world.kept, world.age) == ((2, 1), VALIDITY), "neither makes anything fresh"
    assert world.arrives(1, 9, live=False) == "", "one that is read again is not refused"
    world.passes(1)
    assert world.arrives(1, 8) == ""
    assert (world.kept, world.age) == ((1, 8), 0)


def test_a_run_that_was_outlived_does_not_come_back_when_the_topic_is_read_again(world: World) -> None:
    world.arrives(2, 1)
    world.passes(VALIDITY + 1)
    world.arrives(1, 8)
    world.arrives(2, 1, live=False)
    assert world.kept == (1, 8)
    world.arrives(2, 2)
    assert world.kept == (2, 2), "but it does when its pipeline publishes again"


def test_after_a_tombstone_the_record_is_stale_and_the_next_replaces_it(world: World) -> None:
    world.newest.remove()
    assert world.newest.known() == (None, math.inf), "before the first there is none of any age"
    world.arrives(2, 5)
    world.passes(1)
    world.newest.remove()
    assert (world.kept, world.age) == ((2, 5), math.inf)
    world.arrives(2, 5, live=False)
    assert world.age == 1, "a tombstone that is read again leaves the record behind it as fresh as it was"
    world.newest.remove()
    assert world.arrives(1, 1) == ""
    assert (world.kept, world.age) == ((1, 1), 0)


@pytest.mark.parametrize("live", [True, False])
def test_a_forged_run_of_the_future_blinds_nobody(world: World, live: bool) -> None:
    now = int(WALL * 1000)
    assert world.arrives(2**63 - 1, 0, live=live) == "ahead"
    assert world.arrives(now + 2 * 3_600_000, 0, live=live) == "ahead"
    assert world.kept is None
    assert world.arrives(now, 1) == ""
    assert world.arrives(2**63 - 1, 0) == "ahead"
    assert world.kept == (now, 1)
    assert world.arrives(now + 60_000, 0) == "", "a pipeline whose clock is a little ahead"
