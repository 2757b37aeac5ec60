"""Tests the factor source ``snapshots``: all brokers' snapshots, this broker's own disks, and budgets of storage."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.api import DiskState
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.plugins.factor_sources.budgets import Budgets
from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.broker.plugins.factor_sources.snapshots import Roster, Snapshots
from quotahost.kafka.follower import refusals_counted
from quotahost.model import ClusterVolumes, Limit, LimitType, Volume
from quotahost.model.budgets import Budget, Part
from quotahost.records import budgets as records
from quotahost.records.snapshot import Snapshot, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import WALL, Clocks, context, patience, settings
from tests.fakes.quotas import follower

OWN = Volume("1", "/own", 100, 10)


def listed(source: Snapshots, *brokers: str, fenced: str = "") -> None:
    """Report these registered brokers."""
    registered: Any = source._registered_brokers
    registered.argument({broker: broker == fenced for broker in brokers})
    registered.answered = True


class World(Clocks):
    def __init__(self) -> None:
        super().__init__()
        self.broker = FakeBroker()
        given = {"validity": "60s", "startup__grace": "30s", "volumes__period": "1h"}
        self.context = context(self.broker, clock=self.clock, **given)
        self.source = Snapshots(self.context, self.wall, self.clock)

    def knows(self, *brokers: str, fenced: str = "") -> None:
        """Report that the topic is read, and that the cluster has these brokers."""
        listed(self.source, *brokers, fenced=fenced)
        self.source.read()
        follower(self.source).has_read = True

    def publishes(self, broker: str, consumed: int = 10, live: bool = True, ago: float = 0.0, **more: Any) -> None:
        snapshot = Snapshot(broker, self.at(-ago), (Volume(broker, "/d", 100, consumed),), **more)
        self.record(broker.encode(), encode(snapshot), live)

    def record(self, key: bytes | None, value: bytes | None, live: bool = True) -> None:
        refusals_counted(self.context, "snapshots", self.source.record)(key, value, live, None)

    def read(self) -> ClusterVolumes:
        """Read the source a second later, so that it shows its metrics again, too."""
        self.passes(1)
        return self.source.read()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(disk_monitor, "read_disks", lambda *_: DiskState((OWN,)))
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "c-1")
    made = World()
    yield made
    made.context.closing.close()


def test_own_disks_are_reported_at_once_while_the_rest_is_waited_for(world: World) -> None:
    assert world.read() == ClusterVolumes((OWN,), waiting="the cluster has not listed its brokers yet")
    assert world.source._follower is None, "records are read only after the brokers are known"
    listed(world.source, "1", "2")
    world.passes(GRACE + 1)
    assert (answer := world.read()).waiting == "topic __quotahost_snapshots is not read yet"
    assert (answer.unknown, world.broker.number("Brokers", "Missing")) == ((), 0), "no broker is said to be missing"
    follower(world.source).fault = " (not connected: it refuses the user)"
    assert world.read().waiting.endswith("snapshots is not read yet (not connected: it refuses the user)")
    world.knows("1")
    world.publishes("1", 99)
    assert world.read() == ClusterVolumes((OWN,)), "this broker's volumes come from its disks, not from the topic"
    world.passes(59)
    world.record(b"1", None)
    assert world.read().unknown == ("broker 1: its disks have not answered for more than validity (60 s)",)
    world.knows("1", "2")
    world.publishes("2")
    world.passes(61)
    for fault in (" (not connected: it refuses the user)", ""):
        follower(world.source).fault = fault
        assert stale("2") + fault in world.read().unknown, "broker 2 may be healthy if this one reads nothing"


def test_a_tombstone_that_is_read_again_leaves_the_snapshot_that_came_after_it(world: World) -> None:
    world.knows("1", "2")
    world.publishes("2", 50)
    world.passes(GRACE + 1)  # from now on, a broker without a snapshot is unknown
    world.publishes("2", 60)
    before = world.read()
    world.publishes("2", 40, live=False, ago=100)
    world.record(b"2", None, live=False)
    assert world.read() == before, "the host may read the source between two records"


def test_refused_records_are_counted_by_reason_and_change_nothing(world: World) -> None:
    world.knows("1", "2")
    for ago in (3, 2, 1, 3, 2, 1):  # refused records from before aren't counted, in any order
        world.publishes("2", ago=ago, live=False)
        for broker in (b"9", b"2"):
            world.record(broker, b"{", live=False)
    world.publishes("2", 20)
    before = world.read()
    for key, value in [(b"2", b"{"), (b"2", b"{}"), (None, b""), (b"2", b"x" * 300_000), (None, None), (b"\xff", None)]:
        world.record(key, value)
    world.publishes("2", 99, cluster="c-2")
    for number in range(100):
        world.publishes(f"ghost-{number}", 100)
    world.publishes("2", 99, ago=1)  # of the moment of the first one, as reading takes a second
    assert world.read() == before
    counted = {key[1]: n for key, n in world.broker.shown.items() if key[0] == "Refused"}
    assert counted == {"json": 1, "schema": 1, "stranger": 101, "size": 1, "late": 1, "cluster": 1}
    assert {key[1] for key in world.broker.shown if key[0] == "Snapshot"} == {"2"}
    assert world.source._budgets._follower is None, "budgets are read only with budgets=on"
    world.record(b"2", None)
    assert world.read().volumes == (OWN,)


def test_the_topic_is_read_again_for_a_broker_that_registers_after_it_was_read(world: World) -> None:
    world.knows("1", "2")
    world.publishes("3")
    world.knows("1", "2")
    assert follower(world.source).again == 0
    world.knows("1", "2", "3")
    assert follower(world.source).again == 1
    world.context.settings = settings(snapshots__period="10m")
    assert follower(world.source).more[0]() == 1810, "a broker may now be silent for this many seconds"


def test_who_is_gone_and_a_source_that_is_closed_leave_no_number_and_a_standby_those_of_the_other_source(
    world: World,
) -> None:
    world.knows("1", "2", "3")
    world.publishes("2")
    world.publishes("3")
    world.read()
    world.knows("1", "2")
    world.read()
    assert world.broker.number("Snapshot", "Age", "3") is None
    other = replace(world.context, closing=ExitStack())
    standby = Snapshots(other, world.wall, world.clock, Budgets(world.context))
    listed(standby, "1", "4")
    standby.record(b"4", encode(Snapshot("4", world.at(), ())), True)
    assert standby.read(answers=False).budgets is None, "only the other source sums the budgets"
    assert [world.broker.number(*each) for each in (("Snapshot", "Age", "4"), ("Brokers", "Missing"))] == [0, 0]
    other.closing.close()
    assert world.broker.number("Snapshot", "Age", "4") is None
    assert {"Snapshot", "Brokers"} <= {type for type, *_ in world.broker.shown}
    world.context.closing.close()
    assert not {"Snapshot", "Brokers"} & {type for type, *_ in world.broker.shown}


# ---- budgets of storage, as volumes ----

ORDERS, ALL = Budget("orders", ("orders.*",), 100), Budget("all", ("*",), 100, replicas=True)
ON = settings(factor__source="snapshots", budgets="on", budget__soft__share="0.5", validity="60s")


@pytest.fixture
def budgets(world: World) -> Budgets:
    """The source's budgets, which are switched on; their topic has two budgets and is not read to its end."""
    world.context.settings = ON
    world.knows("1", "2", "3")
    return begun(world)


def begun(world: World) -> Budgets:
    assert world.read().budgets is None
    found = world.source._budgets
    found.record(b"users/alice", b"no budget", False)
    follower(world.source).has_read = True
    for each in (ORDERS, ALL):
        found.record(records.key_of(each.name), records.encode(each), False)
    return found


def used(world: World) -> dict[str, int]:
    return {volume.name: volume.consumed for volume in world.read().budgets or ()}


def test_budgets_are_summed_over_all_brokers_also_those_that_are_silent(world: World, budgets: Budgets) -> None:
    assert world.read().budgets is None, "no sums are known before the budgets' topic is read to its end"
    budgets.caught_up()
    assert world.read().budgets is None, "no sums are known before this broker's replicas are measured"
    world.context.disks.budgets.parts = {}
    follower(world.source).has_read = False
    assert world.read().budgets is None, "no sums are known before the snapshots are read to their end"
    follower(world.source).has_read = True
    world.publishes("2", budgets=(("orders", 30), ("all", 50), ("gone", 9)))
    world.publishes("3", budgets=(("orders", 5), ("all", 20)))
    own = frozenset({"orders.eu", "__quotahost_quotas"})
    world.context.disks.budgets.parts = {"orders": Part(7, own)}
    assert used(world) == {"orders": 42, "all": 70}
    assert set(world.context.disks.budgets.wanted or ()) == {"orders", "all"}
    volumes = world.read().budgets or ()
    (volume,) = (each for each in volumes if each.name == "orders")
    assert volume.capacity == 100
    assert volume.topics == frozenset({"orders.eu"}), "the quotas' topic stays writable: its records raise budgets"
    assert volume.soft == Limit(LimitType.CONSUMED_BYTES, 50)
    assert world.read().budgets is volumes, "unchanged budgets aren't judged again"
    world.passes(1000)
    assert used(world) == {"orders": 42, "all": 70}, "a silent broker's bytes still count"
    world.knows("1", "2", "3", fenced="2")
    assert used(world) == {"orders": 42, "all": 70}, "a fenced broker's bytes count until the new leader reports"
    world.passes(13)
    assert used(world) == {"orders": 12, "all": 70}, "a fenced broker leads no partition"
    world.knows("1", "3")
    assert used(world) == {"orders": 12, "all": 20}
    budgets.record(records.key_of("all"), None, True)
    assert used(world) == {"orders": 12}
    # If the source is the standby of another source, the other source ends the reading of the topic.
    with ExitStack() as closing:
        Snapshots(replace(world.context, closing=closing), world.wall, world.clock, budgets)
    assert budgets.by_name


def test_switched_off_it_reads_no_budgets_and_switched_on_again_it_begins_anew(world: World, budgets: Budgets) -> None:
    budgets.caught_up()
    world.context.disks.budgets.parts = {}
    world.publishes("2", budgets=(("orders", 90),))
    assert used(world)["orders"] == 90
    world.context.settings = settings()
    assert (used(world), budgets._follower, world.context.disks.budgets.wanted) == ({}, None, None)
    world.passes(1)
    world.publishes("2", budgets=(("orders", 10),))
    world.knows("1", "2", "3", fenced="2")
    world.context.settings = ON
    begun(world).caught_up()
    assert used(world) == {"orders": 0, "all": 0}, "sums from before the switch-off don't count"


# ---- the roster: its view of each broker, with snapshots in any order, with any delay and by any clock ----

VALIDITY, GRACE, DAY, HOUR = 60.0, 30.0, 86_400.0, 3600.0


def snapshot(broker: str, taken: float, consumed: int = 0) -> Snapshot:
    return Snapshot(broker, datetime.fromtimestamp(taken, UTC), (Volume(broker, "/d", 10**9, consumed),))


class Rosters(Clocks):
    """A roster, this broker's two clocks, and broker 1, which publishes."""

    def __init__(self, *registered: str) -> None:
        super().__init__()
        self.settings, self.roster = patience(), Roster(self.clock, self.wall)
        self.register(*registered)

    def register(self, *brokers: str, fenced: str = "") -> None:
        self.roster.register({broker: broker == fenced for broker in brokers})

    def publishes(self, consumed: int = 0, live: bool = True) -> str:
        """Take a snapshot of this moment; returns why it is refused."""
        return self.roster.take(snapshot("1", WALL + self.clock.now - 1000.0, consumed), live, VALIDITY)

    @property
    def view(self) -> View:
        return self.roster.view("", self.settings)

    def consumed(self) -> int | None:
        """The bytes that count for the volume of broker 1; None if none count."""
        return next((volume.consumed for volume in self.view.volumes if volume.broker == "1"), None)


def stale(broker: str = "1") -> str:
    return f"broker {broker}: its latest snapshot is older than validity (60 s)"


def test_a_registered_broker_without_a_snapshot_is_waited_for_and_then_missing() -> None:
    world = Rosters("1")
    assert world.view == View(complete=False, missing=1)
    world.passes(GRACE + 1)
    world.register("1", "2")
    assert world.view == View(unknown=["broker 1: no snapshot"], complete=False, missing=2)
    world.register("1", "2", fenced="1")
    world.passes(DAY)
    lost = View(unknown=["broker 2: no snapshot"], missing=1)
    assert world.view == lost, "a fenced broker that never sent a snapshot doesn't count"


def test_of_a_fenced_broker_the_last_volumes_count_until_the_grace_of_its_return_ends_and_no_lost_directory() -> None:
    world = Rosters("1")
    world.roster.take(replace(snapshot("1", WALL, 7), offline=("/e",)), True, VALIDITY)
    assert "broker 1, log dir /e" in world.view.unknown
    world.passes(1)
    world.register("1", fenced="1")
    world.passes(DAY)
    assert (world.consumed(), world.view.last_known, world.view.unknown) == (7, 1, [])
    world.register("1")
    world.passes(GRACE)
    assert (world.consumed(), world.view.unknown, world.view.waiting) == (7, [], "")
    world.passes(1)
    assert world.view == View(unknown=[stale()], stale=1)
    world.publishes(8)
    assert world.consumed() == 8
    world.register()
    assert world.view == View()


def test_a_duplicate_or_an_older_snapshot_that_is_read_again_is_late_and_makes_nothing_fresh() -> None:
    world = Rosters("1")
    one = snapshot("1", WALL)
    assert world.roster.take(one, True, VALIDITY) == ""
    world.passes(VALIDITY + 1)
    assert world.roster.take(one, True, VALIDITY) == "late"
    assert world.view.unknown == [stale()]
    # Limits may change while a disk hangs, so the roster keeps the record of a look that was published last.
    later = replace(one, age_ms=5000, offline=("/e",))
    assert [world.roster.take(later, True, VALIDITY), world.roster.take(one, False, VALIDITY)] == ["", "late"]
    assert world.view.unknown == ["broker 1, log dir /e"]


def test_what_arrives_counts_whatever_its_brokers_clock_said_before() -> None:
    world = Rosters("1")
    for consumed, ahead in enumerate((HOUR, 0, -1, -HOUR)):
        assert world.roster.take(snapshot("1", WALL + ahead, consumed), ahead <= 0, VALIDITY) == ""
        assert world.consumed() == consumed


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(("own", "leaders"), [(-HOUR, 1), (1, -HOUR)])
def test_the_later_snapshot_counts_although_one_clock_was_set_back(live: bool, own: float, leaders: int) -> None:
    world = Rosters("1")
    for place in range(3):
        taken = snapshot("1", WALL + place * own, place)
        assert world.roster.take(taken, live and place > 0, VALIDITY, place * leaders) == ""
        assert world.consumed() == place
    assert (world.roster.take(snapshot("1", WALL, 0), False, VALIDITY, 0) == "late") is live, "it may be read again"


def test_what_was_in_the_topic_before_is_as_old_as_its_own_time_says() -> None:
    world = Rosters("1", "2")
    world.roster.take(snapshot("1", WALL - 50), False, VALIDITY)
    world.roster.take(snapshot("2", WALL - HOUR), False, VALIDITY)
    assert [age for _, age, _ in world.roster.latest("")] == [50, HOUR]
    assert (world.view.waiting, world.view.unknown) == (stale("2"), []), "broker 2 may have just started, too"
    world.passes(GRACE + 1)
    assert (world.view.waiting, world.view.unknown) == ("", [stale("1"), stale("2")])


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_after_a_jump_of_this_brokers_clock_what_is_read_again_is_as_fresh_as_what_it_follows(jump: float) -> None:
    world = Rosters("1")
    world.publishes()
    world.wall.now += jump
    world.passes(5)
    assert (world.publishes(120, live=False), world.consumed()) == ("", 120)
