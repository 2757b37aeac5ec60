"""While no record comes the standby source answers; no switch, there or back, forgets a full disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from quotahost.model import ClusterVolumes, Factor, Volume
from tests.fakes.plugin_context import eventually, settings
from tests.unit.broker.plugins.factor_sources.cluster_volumes.world import EMPTY, FULL, GIVEN, OWN, World


def test_while_records_come_the_standby_source_is_not_even_built(begun: World) -> None:
    for _ in range(10):
        begun.passes(29)
        begun.publishes(FULL)
    assert not begun.built
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (1, 0)


def test_it_is_built_after_half_of_validity_and_asked_after_validity(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    begun.passes(30)
    assert not begun.source._standby._instance
    begun.passes(1)
    begun.standby.answer = ClusterVolumes((OWN, EMPTY))
    begun.passes(29)
    assert FULL in begun.read().volumes, "the record is not too old yet"
    assert begun.number("Answers") == 1
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    begun.passes(1)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (0, 1)
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (0, 1)
    (line,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert line.getMessage() == (
        "no record of this cluster in __quotahost_cluster_volumes within validity (60 s): "
        "factor source snapshots answers"
    )


def test_until_the_standby_source_has_answered_the_last_record_holds_with_its_unknowns(begun: World) -> None:
    begun.publishes(FULL, stale=1, stale_brokers=("2",))
    unknown = ("broker 2: its newest snapshot is stale",)
    begun.may_build.clear()
    begun.passes(61)
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "factor source snapshots is being built")
    begun.may_build.set()
    standby = begun.standby
    eventually(lambda: begun.read().waiting == "it reads")
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "it reads")
    standby.answer = None
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "factor source snapshots doesn't know")
    standby.answer = ClusterVolumes((OWN, EMPTY), ("broker 3: no snapshot",))
    assert begun.read() == standby.answer
    standby.answer = ClusterVolumes((EMPTY, OWN), waiting="again")
    assert begun.read() == standby.answer, "it has answered once"


def test_as_soon_as_a_record_comes_it_holds_again_and_the_standby_source_is_closed(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    begun.passes(61)
    standby = begun.standby
    standby.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.publishes(FULL)
    assert begun.read() == ClusterVolumes((OWN, FULL))
    eventually(lambda: standby.closed)
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (1, 0)
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (1, 1)
    assert caplog.text.count("factor source cluster-volumes answers again") == 1
    begun.passes(61)
    assert begun.standby is not standby, "next time another one is built"


def test_it_switches_back_only_to_a_complete_record(begun: World) -> None:
    begun.passes(61)
    filled_since = ClusterVolumes((OWN, EMPTY, Volume("2", "/e", 100, 99)))
    begun.standby.answer = filled_since
    eventually(lambda: begun.read() == filled_since)
    begun.publishes(run=2, reporting=1)
    assert begun.read() == filled_since
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


@pytest.mark.parametrize("why", ["empty", "absent", "old", "tombstone"])
def test_without_a_fresh_record_at_the_start_the_standby_source_answers_at_once(world: World, why: str) -> None:
    world.knows("1", "2")
    if why in ("old", "tombstone"):
        world.publishes(EMPTY, live=why == "tombstone", at=-3600)
    if why == "tombstone":
        world.source._reader.record(b"c-1", None, True)
    if why == "absent":
        world.source._reader.absent()
    else:
        world.source._reader.caught_up()
    assert world.read().waiting
    world.standby.answer = ClusterVolumes((OWN, FULL))
    eventually(lambda: not world.read().waiting)
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert world.number("Switches", "snapshots") == 1


def test_a_topic_that_can_not_be_read_at_all_is_silent_too(world: World) -> None:
    world.knows("1", "2")
    world.passes(60)
    assert world.number("Answers") == 1
    world.passes(1)
    world.standby.answer = ClusterVolumes((OWN, FULL))
    eventually(lambda: world.read() == ClusterVolumes((OWN, FULL)))


def test_a_standby_source_of_another_kind_answers_as_it_can_and_this_brokers_disks_are_added(begun: World) -> None:
    begun.passes(61)
    begun.standby.answer = Factor(0.5)
    eventually(lambda: begun.read() == Factor(0.5))
    begun.standby.answer = 0.25
    assert begun.read() == Factor(0.25, "factor source snapshots"), "a bare number is a factor, too"
    begun.standby.answer = ClusterVolumes((FULL,), ("broker 3",))
    assert begun.read() == ClusterVolumes((OWN, FULL), ("broker 3",))


def test_without_a_standby_source_records_that_stop_are_unknown(make: Callable[..., World]) -> None:
    world = make(factor__source__second="none")
    world.started()
    assert world.read() == ClusterVolumes(
        (OWN,), waiting="topic __quotahost_cluster_volumes holds no record of this cluster yet"
    )
    world.publishes(FULL)
    world.passes(61)
    old = "the newest record of the cluster's volumes is older than validity (60 s)"
    assert world.read() == ClusterVolumes((OWN,), (old,))
    world.publishes(FULL)
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert not world.built


@pytest.mark.parametrize("failure", [ValueError("no"), SystemExit(3)])
def test_a_standby_source_that_can_not_be_built_is_unknown_logged_once_and_tried_again(
    begun: World, failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    begun.failure = failure
    begun.passes(31)
    eventually(lambda: begun.read() and begun.number("Failures", "snapshots") == 1)
    assert begun.read() == ClusterVolumes((OWN, FULL)), "nothing is unknown yet"
    begun.passes(30)
    fails = "the standby factor source snapshots fails"
    assert begun.read() == ClusterVolumes((OWN, FULL), (fails,)), "and what is known of the cluster still holds"
    eventually(lambda: begun.passes(5) or (begun.number("Failures", "snapshots") or 0) > 2)
    assert caplog.text.count(fails) == 1
    begun.failure = None
    eventually(lambda: begun.passes(1) or begun.built)
    begun.standby.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: begun.read() == ClusterVolumes((OWN, EMPTY)))
    assert "factor source snapshots works again" in caplog.text


def test_a_standby_source_that_fails_again_when_it_is_needed_again_is_logged_again(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    begun.failure = ValueError("no")
    for times in (1, 2):
        eventually(lambda n=times: begun.passes(5) or caplog.text.count("factor source snapshots fails; when") == n)
        begun.publishes(FULL)
        begun.passes(1)


@pytest.mark.parametrize("answer", [ValueError("no"), SystemExit(3), 1.5, "open"])
def test_a_standby_source_that_fails_or_answers_nonsense_is_unknown_and_logged_once(
    begun: World, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    begun.passes(61)
    begun.standby.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.standby.answer = answer
    for _ in range(3):
        assert begun.read().unknown == ("the standby factor source snapshots fails",)
    assert OWN in begun.read().volumes
    assert begun.number("Failures", "snapshots") == 4
    assert caplog.text.count("fails; when it should answer, fallback.action holds") == 1


def test_another_standby_source_and_its_own_properties_take_effect_live(begun: World) -> None:
    begun.passes(61)
    first = begun.standby
    first.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.context.settings = settings(**GIVEN, factor__source__second="local")
    begun.read()
    eventually(lambda: first.closed)
    assert begun.standby.context.name == "local"
    assert (begun.number("Answers", "snapshots"), begun.number("Answers", "local")) == (None, 1)
    standby = begun.standby
    begun.context.settings = settings(**GIVEN, factor__source__second="local", plugin__local__x="1")
    begun.read()
    eventually(lambda: standby.closed)
    standby = begun.standby
    begun.context.settings = settings(**GIVEN, factor__source__second="none")
    begun.read()
    eventually(lambda: standby.closed)
    assert begun.number("Answers") == 1


def test_the_settings_in_force_reach_the_standby_source(begun: World) -> None:
    begun.passes(61)
    eventually(lambda: begun.read() and begun.standby.context.settings is begun.context.settings)


def test_going_back_and_forth_counts_nothing_twice_and_leaves_no_numbers(begun: World) -> None:
    number = begun.broker.number
    for _ in range(3):
        begun.passes(59)
        shown = begun.standby.metrics
        for reason in ("json", "json", "late"):
            shown.count("Refused", reason, "Records")
        shown.gauge("Snapshot", "2", "Age", 5)
        shown.gauge("Connection", "snapshots", "Connected", 1)
        shown.gauge("Brokers", "", "Stale", 7)
        assert number("Brokers", "Stale") == 0, "the source that doesn't answer doesn't show how many are stale"
        begun.passes(2)
        shown.gauge("Brokers", "", "Stale", 7)
        assert number("Brokers", "Stale") == 7
        assert number("Snapshot", "Age", "2") == 5
        begun.publishes(FULL)
        begun.passes(1)
        shown.count("Refused", "json", "Records")
        shown.gauge("Snapshot", "2", "Age", 6)
        assert number("Snapshot", "Age", "2") is None
        assert number("Connection", "Connected", "snapshots") is None
        assert number("Brokers", "Stale") == 0
    assert (number("Refused", "Records", "json"), number("Refused", "Records", "late")) == (2, 1)


def test_it_ends_with_all_that_it_has_begun(begun: World) -> None:
    begun.passes(61)
    standby = begun.standby
    begun.source.close()
    assert standby.closed
