"""Tests the factor source ``cluster-volumes``: which records it takes, its answers, and when the standby answers."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest

from harness.system.waiting import eventually
from quotahost.api import Context, DiskState
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterVolumesSource
from quotahost.model import ClusterVolumes, Limit, LimitType, Volume
from quotahost.model.budgets import Budget
from quotahost.records.cluster_volumes import ClusterRecord, OfflineDir, VolumeTrend, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.kafka import FakeThread
from tests.fakes.plugin_context import Clocks, context, monitor, settings
from tests.fakes.quotas import follower

OWN = Volume("1", "/own", 100, 10)
FULL, EMPTY = Volume("2", "/d", 100, 99), Volume("2", "/d", 100, 1)
GIVEN = {"factor__source": "cluster-volumes", "validity": "60s", "startup__grace": "30s", "volumes__period": "30s"}


class World(Clocks):
    """Broker 1 of the cluster ``c-1``; tests set its clocks, publish records and read the source."""

    def __init__(self) -> None:
        super().__init__()
        self.broker, self.sequence = FakeBroker(), 0
        self.built: list[Mock] = []
        self.context = context(self.broker, "cluster-volumes", clock=self.clock, **GIVEN)
        thread: Any = FakeThread
        self.source = ClusterVolumesSource(self.context, self.wall, self.clock, self.build, thread, thread)

    def build(self, context: Context) -> Any:
        """Replace the source ``snapshots`` by one that still reads its topic until a test sets an answer."""
        self.built.append(Mock(context=context, **{"read.return_value": ClusterVolumes((), waiting="it reads")}))
        context.closing.callback(self.standby.close)
        return self.built[-1]

    @property
    def standby(self) -> Mock:
        return self.built[-1]

    def started(self) -> None:
        """Report that the topic is read and that the cluster has two brokers."""
        self.knows("1", "2")
        follower(self.source).has_read = True

    def knows(self, *brokers: str) -> None:
        """Report these registered brokers."""
        registered: Any = self.source._registered_brokers
        registered.argument(dict.fromkeys(brokers, False))
        registered.answered = True

    def publishes(self, *volumes: Volume, live: bool = True, run: int = 1, at: float = 0.0, **fields: Any) -> None:
        self.sequence += 1
        fullest = tuple(map(VolumeTrend, volumes))
        told: dict[str, Any] = {"reporting": 2, "volume_count": len(volumes), "fullest": fullest} | fields
        record = ClusterRecord("c-1", run, self.sequence, self.at(at), **told)
        follower(self.source).take(b"c-1", encode(record), live)

    def passes(self, seconds: float) -> None:
        """Let time pass; each second, look at this broker's disks and read the source."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            super().passes(min(1.0, end - self.clock.now))
            monitor(self.context).look()
            self.source.read()

    def read(self) -> Any:
        return self.source.read()

    def close(self) -> None:
        self.context.closing.close()

    def number(self, attribute: str, name: str = "cluster-volumes") -> float | None:
        return self.broker.number("FactorSource", attribute, name)


@pytest.fixture(autouse=True)
def _disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_monitor, "read_disks", lambda *_: DiskState((OWN,)))
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "c-1")


@pytest.fixture
def world() -> Iterator[World]:
    with closing(World()) as made:
        yield made


@pytest.fixture
def begun(world: World) -> World:
    """A world whose source has just got a record with a full volume."""
    world.started()
    world.publishes(FULL)
    assert world.read().volumes == (OWN, FULL)
    return world


def test_own_disks_are_reported_at_once_while_the_rest_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "")
    with closing(World()) as world:
        unknown_id = "the cluster's id is not read from the log directories yet"
        assert world.read() == ClusterVolumes((OWN,), waiting=unknown_id)
        monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "c-1")
        monitor(world.context).look()
        assert world.read() == ClusterVolumes((OWN,), waiting="topic __quotahost_cluster_volumes is not read yet")
        follower(world.source).fault = " (not connected: it refuses the user)"
        assert world.read().waiting.endswith("volumes is not read yet (not connected: it refuses the user)")
        world.publishes(FULL, OWN, live=False, stale=1, stale_brokers=("8",))
        follower(world.source).has_read = True
        assert world.read() == ClusterVolumes((OWN, FULL), waiting="the cluster has not listed its brokers yet")
        world.publishes(FULL)
        world.knows("1", "2")
        assert world.read() == ClusterVolumes((OWN, FULL))
        assert not world.built


def test_records_of_other_clusters_are_passed_over_and_late_ones_refused(begun: World) -> None:
    before = begun.read()
    take = follower(begun.source).take
    for value in (encode(ClusterRecord("c-2", 9, 9, datetime.now(UTC))), b"{"):
        take(b"c-2", value, True)
    take(None, None, True)
    assert not [key for key in begun.broker.shown if key[0] == "Refused"]
    for fewer in (1, 2):  # the same run and sequence again, then an earlier one
        begun.sequence -= fewer
        begun.publishes(EMPTY)
    assert begun.read() == before
    assert begun.broker.number("Refused", "Records", "late") == 1


def test_records_of_a_pipeline_that_is_behind_are_refused(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        begun.publishes(EMPTY, run=2, newest_snapshot_at=begun.at(-61))
    assert FULL in begun.read().volumes
    assert begun.broker.number("Refused", "Records", "behind") == 3
    behind = "the pipeline is behind: the latest snapshot in its records is older than validity (60 s)"
    assert caplog.text.count(behind) == 1
    stale: dict[str, Any] = {"reporting": 0, "stale": 2, "stale_brokers": ("1", "2")}
    begun.passes(31)
    begun.publishes(run=2, newest_snapshot_at=begun.at(-92), **stale)
    assert begun.read().unknown == ("broker 2: its latest snapshot is stale",), "accepted, because no broker reports"
    begun.publishes(EMPTY, run=2, newest_snapshot_at=begun.at(-59))
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


def test_while_a_record_leaves_out_brokers_their_last_volumes_hold(begun: World) -> None:
    begun.passes(31)
    begun.publishes(FULL)
    begun.read()
    lacking: dict[str, Any] = {"run": 2, "reporting": 1, "missing": 1, "missing_brokers": ("2",)}
    begun.publishes(**lacking)
    assert begun.read() == ClusterVolumes((OWN, FULL)), "the last volumes of broker 2 still apply"
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))
    for _ in range(34):
        begun.publishes(**lacking)
        begun.passes(1)
    assert begun.read() == ClusterVolumes((OWN,), ("broker 2: no snapshot",))


def test_the_listed_volumes_count_once_without_this_brokers_own_which_stand_for_those_left_out(begun: World) -> None:
    other = Volume("2", "/e", 100, 10)
    begun.publishes(FULL, volume_count=3, worst={LimitType.MIN_FREE_BYTES: tuple(map(VolumeTrend, (FULL, other)))})
    assert begun.read().volumes == (OWN, FULL, other)
    listed = (Volume("1", "/d", 100, 95), Volume("9", "/d", 100, 94), FULL)
    begun.publishes(*listed, volume_count=4)
    assert begun.read().volumes == (OWN, *listed), "a truncated list counts unregistered brokers, too"
    begun.publishes(*listed)
    assert begun.read().volumes == (OWN, FULL)


def test_stale_brokers_and_offline_dirs_are_unknown_at_once_with_a_sentence_each(begun: World) -> None:
    begun.knows("1", "2", "3")
    begun.passes(31)
    dirs = (OfflineDir("3", "/e\nOPEN"), OfflineDir("1", "/own"), OfflineDir("9", "/gone"))
    begun.publishes(stale=3, stale_brokers=("2", "1", "9"), offline=3, offline_dirs=dirs)
    unknown = ("broker 2: its latest snapshot is stale", "broker 3, log dir '/e\\nOPEN'")
    assert begun.read() == ClusterVolumes((OWN,), unknown)


def test_brokers_that_nobody_lists_are_waited_for_also_while_they_become_fewer(begun: World) -> None:
    def missing(**told: Any) -> tuple[float | None, tuple[str, ...]]:
        begun.publishes(**told)
        begun.passes(1)
        return begun.broker.number("Brokers", "Missing"), begun.read().unknown

    begun.knows("1", "2", "3")
    assert missing(reporting=0) == (3, ())
    begun.passes(28)
    assert missing(reporting=1) == (2, ())
    begun.passes(1)
    gone = tuple(f"gone-{number}" for number in range(64))
    lost = (1, ("the pipeline has no snapshot of 1 running brokers",))
    assert missing(reporting=2, stale=66, stale_brokers=gone) == lost
    assert missing(reporting=3) == (0, ())
    assert missing(reporting=2) == (1, ()), "all brokers were there in between, so the wait starts again"


def test_the_record_and_the_brokers_are_shown_from_the_first_read_until_it_is_closed(world: World) -> None:
    """A live change that is only validated builds a source, too, and one that removes the source closes it."""

    def shown() -> set[str]:
        return {type for type, *_ in world.broker.shown} - {"Volume", "LogDirs"}  # the disks' metrics

    assert shown() == set()
    world.started()
    world.publishes(EMPTY, run=7, stale=1, stale_brokers=("2",))
    world.passes(5)
    number = world.broker.number
    assert [number("ClusterRecord", name) for name in ("Age", "Run", "Sequence")] == [5, 7, 1]
    assert (number("Brokers", "Stale"), number("Brokers", "Missing")) == (1, 0)
    follower(world.source).take(b"c-1", None, True)
    world.passes(1)
    assert shown() == {"FactorSource", "Brokers"}
    world.context.closing.close()
    assert shown() == set()


def test_this_brokers_volume_in_a_list_for_all_of_its_kind_is_as_full_as_its_disk_is_now(begun: World) -> None:
    emptier, fuller = replace(OWN, consumed=OWN.consumed - 5), replace(OWN, consumed=OWN.consumed + 5)
    other_kind = replace(emptier, hard=Limit(LimitType.CONSUMED_BYTES, 90))
    for listed, expected in ((emptier, OWN), (fuller, fuller), (other_kind, other_kind)):
        begun.publishes(listed, volume_count=2)
        assert begun.read().volumes == (OWN, expected)


# ---- budgets, by the pipeline's sums ----


@pytest.fixture
def budgeted(world: World) -> World:
    world.context.settings = settings(**GIVEN, budgets="on")
    world.started()
    followed: Any = world.source._budgets
    both = Budget("orders", ("orders.*",), 100), Budget("all", ("*",), 100, replicas=True)
    followed.by_name = {budget.name: budget for budget in both}
    world.context.disks.budgets.parts = {}
    return world


def used(budgeted: World) -> dict[str, int] | None:
    budgets = budgeted.read().budgets
    return None if budgets is None else {volume.name: volume.consumed for volume in budgets}


def test_the_record_s_sums_count_of_brokers_out_of_service_those_of_replicas_alone(budgeted: World) -> None:
    assert used(budgeted) is None, "no sums are known before the first record"
    budgeted.publishes(EMPTY, budgets=(("orders", 40, 7), ("all", 50, 8), ("gone", 1, 0)))
    assert used(budgeted) == {"orders": 40, "all": 58}
    budgeted.passes(31)
    budgeted.standby.read.return_value = ClusterVolumes((), budgets=())
    budgeted.passes(30)
    assert used(budgeted) == {}, "while the standby answers, its sums count"


def test_sums_that_lack_a_broker_of_which_a_snapshot_is_awaited_let_nobody_go(budgeted: World) -> None:
    budgeted.publishes(EMPTY, run=2, reporting=1, budgets=(("orders", 40, 0),))
    assert used(budgeted) is None
    budgeted.passes(31)
    assert used(budgeted) == {"orders": 40, "all": 0}, "after the wait, the missing broker's sums count as 0"


# ---- the standby ----


def test_it_is_built_after_half_of_validity_and_asked_later(begun: World) -> None:
    for _ in range(10):
        begun.passes(29)
        begun.publishes(FULL)
    begun.passes(30)
    assert not begun.built
    begun.passes(1)
    begun.context.settings = settings(**GIVEN)
    begun.read()
    assert begun.standby.context.settings is begun.context.settings
    begun.standby.read.return_value = ClusterVolumes((OWN, EMPTY))
    begun.passes(29)
    assert FULL in begun.read().volumes, "the cluster record is still valid"
    assert begun.standby.read.call_args.args == (False,), "the standby shows no numbers before it answers"
    begun.passes(1)
    assert (begun.read(), *begun.standby.read.call_args.args) == (ClusterVolumes((OWN, EMPTY)), True)
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (0, 1)


def test_until_the_standby_source_has_answered_the_last_record_holds_with_its_unknowns(begun: World) -> None:
    begun.publishes(FULL, stale=1, stale_brokers=("2",))
    unknown = ("broker 2: its latest snapshot is stale",)
    begun.passes(61)
    standby = begun.standby
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "it reads")
    standby.read.return_value = ClusterVolumes((), (*unknown, "broker 3: no snapshot"), "it reads on")
    assert begun.read() == ClusterVolumes((OWN, FULL), (*unknown, "broker 3: no snapshot"), "it reads on")
    assert not any(call.args[0] for call in standby.read.call_args_list), "the standby's budgets don't count yet"
    standby.read.return_value = ClusterVolumes((OWN, EMPTY), ("broker 3: no snapshot",))
    assert begun.read() == standby.read.return_value
    standby.read.return_value = ClusterVolumes((EMPTY, OWN), waiting="again")
    assert begun.read() == standby.read.return_value, "the standby has answered once, so it stays ready"


def test_as_soon_as_a_complete_record_comes_the_standby_is_closed(begun: World) -> None:
    begun.passes(61)
    standby = begun.standby
    standby.read.return_value = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    for lacking in ({"reporting": 1}, {"reporting": 0, "stale": 2, "stale_brokers": ("1", "2")}):
        begun.publishes(run=2, **lacking)
        assert begun.read() == standby.read.return_value, "the record lacks a broker"
    begun.publishes(FULL, run=2)
    assert (begun.read(), standby.close.called) == (ClusterVolumes((OWN, FULL)), True)
    begun.passes(1)
    assert begun.broker.number("Brokers", "Stale") == 0
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (1, 1)
    begun.passes(61)
    assert begun.standby is not standby, "the next silence builds a new standby"
    assert begun.read() == ClusterVolumes((OWN, FULL), waiting="it reads")
    begun.context.closing.close()
    assert begun.standby.close.called


@pytest.mark.parametrize("why", ["empty", "absent", "unread", "old", "tombstone"])
def test_without_a_fresh_record_at_the_start_the_standby_source_answers_at_once(world: World, why: str) -> None:
    world.knows("1", "2")
    if why in ("old", "tombstone"):
        world.publishes(EMPTY, live=why == "tombstone", at=-3600)
    if why == "tombstone":
        follower(world.source).take(b"c-1", None, True)
    if why == "absent":
        world.source._absent.set()
    elif why == "unread":
        world.passes(60)
        assert world.number("Answers") == 1, "within validity, the topic may still be read"
        world.passes(1)
    else:
        follower(world.source).has_read = True
    assert world.read().waiting
    world.standby.read.return_value = ClusterVolumes((OWN, FULL))
    eventually(lambda: not world.read().waiting)
    if why == "unread":
        world.context.settings = settings(**GIVEN | {"validity": "1h"})
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert world.number("Switches", "snapshots") == 1


def test_nobody_is_let_go_while_a_read_sees_the_topics_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.knows("1", "2")
    told = iter(("it is not read yet", "it is not read yet", ""))
    monkeypatch.setattr(FakeThread, "waits_for", property(lambda _: next(told)))
    assert world.read().waiting == "topic __quotahost_cluster_volumes holds no record of this cluster yet"
