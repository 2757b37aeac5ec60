"""The roster knows each broker right, whatever the order, the delay or the clock of its snapshots."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.model import Volume
from quotahost.records.snapshot import Snapshot
from tests.fakes.plugin_context import WALL, Clocks, patience

VALIDITY, GRACE, DAY, HOUR = 60.0, 30.0, 86_400.0, 3600.0


def snapshot(broker: str, taken: float, consumed: int = 0) -> Snapshot:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=taken)
    return Snapshot(broker, at, (Volume(broker, "/d", 10**9, consumed),))


class World(Clocks):
    """A roster, this broker's two clocks, and publishers whose clocks may be wrong."""

    def __init__(self, *registered: str, strict: bool = False) -> None:
        super().__init__()
        self.settings = patience(strict)
        self.roster = Roster(self.clock, self.wall)
        if registered:
            self.register(*registered)

    def register(self, *brokers: str, fenced: str = "") -> None:
        self.roster.register({broker: broker == fenced for broker in brokers})

    def publishes(self, broker: str, consumed: int = 0, ahead: float = 0.0, live: bool = True) -> str:
        """A snapshot of this moment, by the clock of a publisher that is ``ahead`` of the true time in seconds."""
        true = WALL + self.clock.now - 1000.0
        return self.roster.take(snapshot(broker, true + ahead, consumed), live, VALIDITY)

    @property
    def view(self) -> View:
        return self.roster.view("", self.settings)

    @property
    def ages(self) -> dict[str, float]:
        return {snapshot.broker: age for snapshot, age, _ in self.roster.latest("")}

    def consumed(self, broker: str = "1") -> int | None:
        """What counts of a broker's one volume; None if nothing does."""
        return next((volume.consumed for volume in self.view.volumes if volume.broker == broker), None)


def stale(broker: str = "1") -> str:
    return f"broker {broker}: its newest snapshot is older than validity (60 s)"


def test_a_registered_broker_without_a_snapshot_is_waited_for_and_then_missing() -> None:
    world = World("1", "2")
    assert world.view == View(complete=False, missing=2)
    world.publishes("2")
    world.passes(GRACE + 1)
    world.register("1", "2", "3")
    assert (world.view.unknown, world.view.missing) == (("broker 1: no snapshot",), 2), "from when it is registered"
    world.roster.remove("2")
    world.roster.remove("nobody")
    assert world.view.unknown == ("broker 1: no snapshot", "broker 2: no snapshot"), "by a tombstone"
    world.register("1", "2", "3", fenced="1")
    world.passes(DAY)
    lost = ("broker 2: no snapshot", "broker 3: no snapshot")
    assert world.view.unknown == lost, "fenced it does not count while nothing was ever known of it"
    world.register("1", "2", "3")
    assert (world.view.unknown, world.view.complete) == (lost, False)


@pytest.mark.proves("proposal-035.active-brokers")
def test_an_unregistered_broker_is_no_longer_expected_and_a_stranger_never_is() -> None:
    world = World()
    assert (world.publishes("1"), world.view) == ("stranger", View()), "until the cluster has listed its brokers"
    world.register("1", "2")
    assert [world.publishes(broker) for broker in ("1", "2")] == ["", ""]
    assert {world.publishes(f"ghost-{number}") for number in range(1000)} == {"stranger"}
    assert len(world.roster._newest) == 2, "a flood of them costs no memory"
    assert {volume.broker for volume in world.view.volumes} == {"1", "2"}
    world.register("1")
    assert world.roster.register({"1": False, "2": False}) == {"2"}
    assert (world.consumed("2"), world.view.missing) == (None, 1), "what was known of it is forgotten"


def test_of_a_fenced_broker_the_last_volumes_count_until_the_grace_of_its_return_is_over() -> None:
    world = World("1")
    world.publishes("1", 7)
    world.passes(1)
    world.register("1", fenced="1")
    world.passes(DAY)
    assert (world.consumed(), world.view.last_known, world.view.unknown) == (7, 1, ())
    world.register("1")
    world.passes(GRACE)
    assert (world.consumed(), world.view.unknown) == (7, ())
    world.passes(1)
    assert world.view == View(unknown=(stale(),), stale=1)
    world.publishes("1", 8)
    assert world.consumed() == 8
    world.register()
    assert world.view == View()


def test_log_dirs_that_were_offline_when_a_broker_died_are_not_unknown_while_it_is_fenced() -> None:
    world = World("1")
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=WALL)
    world.roster.take(Snapshot("1", at, (), offline=("/e",)), True, VALIDITY)
    assert world.view.unknown == ("broker 1, log dir /e",)
    world.register("1", fenced="1")
    world.passes(VALIDITY + 1)
    assert world.view == View(last_known=1)


@pytest.mark.proves("proposal-035.fallback")
def test_in_the_strict_form_a_fenced_broker_is_unknown_after_validity_until_it_is_unregistered() -> None:
    world = World("1", strict=True)
    world.publishes("1", 7)
    world.register("1", fenced="1")
    world.passes(VALIDITY)
    assert world.consumed() == 7
    world.passes(DAY)
    assert world.view.unknown == (stale(),)
    world.register()
    assert world.view == View()
    world.register("1")
    world.publishes("1", 7)
    world.passes(VALIDITY + 1)
    assert world.view.unknown == (stale(),), "a broker in service is expected however long it is silent"


def test_a_duplicate_or_an_older_snapshot_is_late_and_makes_nothing_fresh() -> None:
    world = World("1")
    old, new = snapshot("1", WALL - 5, 1), snapshot("1", WALL, 2)
    assert world.roster.take(new, True, VALIDITY) == ""
    world.passes(VALIDITY - 1)
    assert world.roster.take(new, True, VALIDITY) == "late"
    assert world.roster.take(old, True, VALIDITY) == "late"
    assert world.consumed() == 2
    world.passes(2)
    assert world.consumed() is None
    # Limits may change while a disk hangs: of one look the record that was published last is kept.
    first, later = replace(new, age_ms=0), replace(new, age_ms=5000, offline=("/e",))
    assert [world.roster.take(each, True, VALIDITY) for each in (later, first, later)] == ["", "late", "late"]
    assert world.view.unknown == ("broker 1, log dir /e",)


def test_what_was_in_the_topic_before_is_as_old_as_its_own_time_says_and_none_of_the_future_is_kept() -> None:
    world = World("1", "2")
    world.roster.take(snapshot("1", WALL - 50), False, VALIDITY)
    world.roster.take(snapshot("2", WALL - HOUR), False, VALIDITY)
    assert world.ages == {"1": 50, "2": HOUR}
    assert (world.view.waiting, world.view.unknown) == (stale("2"), ()), "its broker may have started with this one"
    world.passes(GRACE + 1)
    assert (world.view.waiting, world.view.unknown) == ("", (stale("1"), stale("2")))
    world.roster.take(snapshot("1", WALL + HOUR, 1), False, VALIDITY)
    assert world.publishes("1", 2) == ""
    assert world.consumed() == 2


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_after_a_jump_of_this_brokers_clock_what_is_read_again_is_as_fresh_as_what_it_follows(jump: float) -> None:
    world = World("1")
    world.publishes("1")
    world.wall.now += jump
    world.passes(5)
    assert world.publishes("1", 120, live=False) == ""
    assert world.consumed() == 120


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-2 * HOUR, 2 * HOUR), st.booleans()), max_size=40))
@pytest.mark.proves("faults.clock")
def test_whatever_the_clocks_do_a_broker_is_fresh_for_validity_only(steps: list[tuple[float, float, bool]]) -> None:
    world, last = World("1"), -1e9
    for pause, ahead, publishes in steps:
        world.passes(pause)
        if publishes:
            world.publishes("1", ahead=ahead)
            last = world.clock.now
        if world.clock.now - last > VALIDITY:
            assert world.consumed() is None


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=20))
def test_of_snapshots_in_any_order_the_newest_is_kept_but_for_one_that_a_clock_set_back_has_dated(
    published: list[tuple[int, bool]],
) -> None:
    world, kept = World("1"), 0
    world.publishes("1", ahead=-50)
    for second, live in published:
        world.roster.take(snapshot("1", WALL - 50 + second, second), live, VALIDITY)
        if second > kept or (live and kept - second > VALIDITY / 2):
            kept = second
        assert world.consumed() == kept
