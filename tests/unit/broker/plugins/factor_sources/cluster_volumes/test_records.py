"""Records of this broker's cluster decide what ``cluster-volumes`` reports; anything else in the topic is refused."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotahost.broker.disks import monitor as disk_monitor
from quotahost.model import ClusterVolumes, Limit, LimitType
from quotahost.model.budgets import Budget
from quotahost.records.cluster_volumes import ClusterRecord, Filling, encode
from tests.fakes.plugin_context import monitor
from tests.unit.broker.plugins.factor_sources.cluster_volumes.world import EMPTY, FULL, OWN, World


def test_this_brokers_disks_are_reported_from_the_first_read_on_while_the_rest_is_waited_for(world: World) -> None:
    assert world.read() == ClusterVolumes((OWN,), waiting="topic __quotahost_cluster_volumes is not read yet")
    world.publishes(FULL, live=False)
    world.source._reader.caught_up()
    assert world.read() == ClusterVolumes((OWN, FULL), waiting="the cluster has not listed its brokers yet")
    world.knows("1", "2")
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert not world.built


def test_nothing_is_read_without_a_cluster_id(make: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "")
    world = make()
    assert world.read().waiting == "the cluster's id is not read from the log directories yet"
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "c-1")
    monitor(world.context).look()
    assert world.read().waiting == "topic __quotahost_cluster_volumes is not read yet"


def test_other_clusters_and_refused_records_change_nothing(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    before = begun.read()
    take = begun.source._reader.record
    take(b"c-2", encode(ClusterRecord("c-2", 9, 9, datetime.now(UTC))), True)
    take(b"c-2", b"{", True)
    take(None, None, True)
    assert not [key for key in begun.broker.shown if key[0] == "Refused"]
    for value in (b"{", b'{"version": 1}', b'{"version": 2}', b'{"version": 2}'):
        take(b"c-1", value, True)
    assert begun.read() == before
    begun.sequence -= 1
    begun.publishes(EMPTY)  # of the same run and number
    begun.sequence -= 2
    begun.publishes(EMPTY)  # late
    assert begun.read() == before
    counted = {key[1]: n for key, n in begun.broker.shown.items() if key[0] == "Refused"}
    assert counted == {"json": 1, "schema": 1, "version": 2, "late": 1}
    (line,) = [r.getMessage() for r in caplog.records if "version: Input should" in r.getMessage()]
    assert "refused" in line, "once for each reason"


def test_records_of_a_second_pipeline_are_refused(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    begun.publishes(FULL, run=2)
    for _ in range(3):
        begun.publishes(EMPTY, run=1)
    assert FULL in begun.read().volumes
    assert begun.broker.number("Refused", "Records", "other-pipeline") == 3
    assert caplog.text.count("two pipelines run for this cluster: records of run 1 are refused") == 1


def test_records_of_a_pipeline_that_is_behind_are_refused(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=begun.wall.now)
    for _ in range(3):
        begun.publishes(EMPTY, run=2, newest_snapshot_at=now - timedelta(seconds=61))
    assert FULL in begun.read().volumes
    assert begun.broker.number("Refused", "Records", "behind") == 3
    assert (
        caplog.text.count("the pipeline is behind: the newest snapshot in its records is older than validity (60 s)")
        == 1
    )
    stale: dict[str, Any] = {"reporting": 0, "stale": 2, "stale_brokers": ("1", "2")}
    begun.passes(31)
    begun.publishes(run=2, newest_snapshot_at=now - timedelta(seconds=61), **stale)
    assert begun.read().unknown == ("broker 2: its newest snapshot is stale",), "unless nobody reports any more"
    begun.publishes(EMPTY, run=2, newest_snapshot_at=now - timedelta(seconds=28))
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


def test_what_the_record_does_not_know_is_unknown(begun: World) -> None:
    begun.publishes(reporting=1, stale=1, stale_brokers=("2",), silent=(Filling(FULL),))
    stale = "broker 2: its newest snapshot is stale"
    assert begun.read() == ClusterVolumes((OWN, FULL), waiting=stale), "this broker has just started"
    begun.passes(31)
    begun.publishes(reporting=1, stale=1, stale_brokers=("2",), silent=(Filling(FULL),))
    assert begun.read() == ClusterVolumes((OWN,), (stale,))


def test_while_a_record_leaves_out_brokers_their_last_volumes_hold(begun: World) -> None:
    begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    assert begun.read() == ClusterVolumes((OWN, FULL)), "its last volumes still hold"
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))
    begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    for _ in range(33):
        begun.passes(1)
        begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    assert begun.read() == ClusterVolumes((OWN,), ("broker 2: no snapshot",))


def test_the_record_and_the_brokers_are_shown(begun: World) -> None:
    begun.publishes(EMPTY, run=7, stale=1, stale_brokers=("2",))
    begun.passes(5)
    number = begun.broker.number
    assert [number("ClusterRecord", name) for name in ("Age", "Run", "Sequence")] == [5, 7, 2]
    assert (number("Brokers", "Stale"), number("Brokers", "Missing")) == (1, 0)
    begun.source._reader.record(b"c-1", None, True)
    begun.passes(1)
    assert number("ClusterRecord", "Age") is None


def test_this_brokers_volume_in_a_list_for_all_of_its_kind_is_as_full_as_its_disk_is_now(begun: World) -> None:
    emptier, fuller = replace(OWN, consumed=OWN.consumed - 5), replace(OWN, consumed=OWN.consumed + 5)
    other_kind = replace(emptier, hard=Limit(LimitType.CONSUMED_BYTES, 90))
    for listed, expected in ((emptier, OWN), (fuller, fuller), (other_kind, other_kind)):
        begun.publishes(listed, volume_count=2)
        assert begun.read().volumes == (OWN, expected)


# ---- budgets, by the pipeline's sums ----

BY_NAME = {"orders": Budget("orders", ("orders.*",), 100), "all": Budget("all", ("*",), 100, replicas=True)}


@pytest.fixture
def budgeted(make: Callable[..., World]) -> World:
    world = make(budgets="on")
    world.started()
    followed: Any = world.source._budgets
    followed.by_name = BY_NAME
    return world


def used(budgeted: World) -> dict[str, int]:
    return {volume.name: volume.consumed for volume in budgeted.read().budgets}


def test_the_record_s_sums_count_of_brokers_out_of_service_those_of_replicas_alone(budgeted: World) -> None:
    assert used(budgeted) == {"orders": 0, "all": 0}, "nothing is known yet"
    budgeted.publishes(EMPTY, budgets=(("orders", 40, 7), ("all", 50, 8), ("gone", 1, 0)))
    assert used(budgeted) == {"orders": 40, "all": 58}


def test_an_older_pipeline_is_told_once_and_slows_nobody(budgeted: World, caplog: pytest.LogCaptureFixture) -> None:
    budgeted.publishes(EMPTY)
    assert used(budgeted) == used(budgeted) == {"orders": 0, "all": 0}
    assert caplog.text.count("the pipeline is older and doesn't sum them") == 1


def test_while_the_standby_answers_its_sums_count(budgeted: World) -> None:
    budgeted.publishes(EMPTY, budgets=(("orders", 40, 0),))
    budgeted.passes(31)
    assert used(budgeted)["orders"] == 40
    budgeted.standby.answer = budgeted.read().__class__((), budgets=())
    budgeted.passes(30)
    assert used(budgeted) == {}
