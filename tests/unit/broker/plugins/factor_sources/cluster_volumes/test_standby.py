"""While no record comes the standby source answers; no switch, there or back, forgets a full disk."""

import logging

import pytest

from harness.system.waiting import eventually
from quotahost.model import ClusterVolumes, Volume
from tests.fakes.plugin_context import settings
from tests.unit.broker.plugins.factor_sources.cluster_volumes.world import EMPTY, FULL, GIVEN, OWN, World


def test_it_is_built_after_half_of_validity_and_asked_later(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(10):
        begun.passes(29)
        begun.publishes(FULL)
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (1, 0)
    begun.passes(30)
    assert not begun.built
    begun.passes(1)
    begun.context.settings = settings(**GIVEN)
    begun.read()
    assert begun.standby.context.settings is begun.context.settings
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
    begun.passes(61)
    standby = begun.standby
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "it reads")
    standby.answer = ClusterVolumes((OWN, EMPTY), ("broker 3: no snapshot",))
    assert begun.read() == standby.answer
    standby.answer = ClusterVolumes((EMPTY, OWN), waiting="again")
    assert begun.read() == standby.answer, "it has answered once"


def test_as_soon_as_a_record_comes_the_standby_is_closed(begun: World, caplog: pytest.LogCaptureFixture) -> None:
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
    begun.source.close()
    assert begun.standby.closed


def test_it_switches_back_only_to_a_complete_record(begun: World) -> None:
    begun.passes(61)
    filled_since = ClusterVolumes((OWN, EMPTY, Volume("2", "/e", 100, 99)))
    begun.standby.answer = filled_since
    eventually(lambda: begun.read() == filled_since)
    begun.publishes(run=2, reporting=1)
    assert begun.read() == filled_since
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


@pytest.mark.parametrize("why", ["empty", "absent", "unread", "old", "tombstone"])
def test_without_a_fresh_record_at_the_start_the_standby_source_answers_at_once(world: World, why: str) -> None:
    world.knows("1", "2")
    if why in ("old", "tombstone"):
        world.publishes(EMPTY, live=why == "tombstone", at=-3600)
    if why == "tombstone":
        world.source._reader.record(b"c-1", None, True)
    if why == "absent":
        world.source._reader.absent()
    elif why == "unread":
        world.passes(60)
        assert world.number("Answers") == 1, "it may be read yet"
        world.passes(1)
    else:
        world.source._reader.caught_up()
    assert world.read().waiting
    world.standby.answer = ClusterVolumes((OWN, FULL))
    eventually(lambda: not world.read().waiting)
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert world.number("Switches", "snapshots") == 1


def test_going_back_and_forth_counts_nothing_twice_and_leaves_no_numbers(begun: World) -> None:
    for turn in range(3):
        begun.passes(59)
        standby = begun.standby
        assert standby.counts_old == (turn == 0), "each of them reads the topic from its beginning"
        assert not standby.answers, "the source that doesn't answer doesn't show how many are stale"
        begun.passes(2)
        assert standby.answers
        begun.publishes(FULL)
        begun.passes(1)
        assert standby.hidden
        assert begun.broker.number("Brokers", "Stale") == 0
