"""Tests which factor applies, and why: known and unknown volumes, and sources that fail or have just started."""

import errno
import logging
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quotahost.broker.host.factor import PauseMemory
from quotahost.broker.host.messages import Scoped
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.model.volumes import Affected, SlowedBudget
from tests.fakes.plugin_context import OwnFloat, fails
from tests.unit.broker.host.factor_world import EMPTY, FULL, GRACE, HALF, VALIDITY, World, cluster


@pytest.mark.proves("proposal-035.largest", "proposal-035.steps", "proposal-035.factor-alone")
@pytest.mark.parametrize(
    ("answer", "action", "factor", "cause"),
    [
        (cluster(), "PAUSE", 1.0, ""),
        (cluster(EMPTY, HALF), "PAUSE", 0.5, "broker 2, volume /half"),
        (cluster(FULL, waiting="the topic is not read yet"), "PAUSE", 0.0, "broker 1, volume /full"),
        (cluster(HALF, unknown=("broker 1: no snapshot",)), "OPEN", 0.5, "broker 2, volume /half"),
        (cluster(unknown=tuple("abcd")), "PAUSE", 0.0, "fallback.action=PAUSE: a; b; c ..."),
        (0.25, "PAUSE", 0.25, "factor source mine"),
        (Factor(0.25), "PAUSE", 0.25, "factor source mine"),
        (Factor(0.25, "it says why"), "PAUSE", 0.25, "it says why"),
        (1, "PAUSE", 1.0, ""),
        (0, "PAUSE", 0.0, "factor source mine"),
        (OwnFloat(0.25), "PAUSE", 0.25, "factor source mine"),
    ],
)
def test_the_fullest_volume_or_a_number_gives_the_factor(answer: Any, action: str, factor: float, cause: str) -> None:
    world = World(fallback__action=action)
    assert world.step(answer) == factor
    assert factor == 1 or world.cause == cause


@pytest.mark.proves("proposal-035.fallback", "proposal-035.metric-no-data")
@pytest.mark.parametrize(("action", "factor"), [("PAUSE", 0.0), ("OPEN", 1.0)])
def test_what_the_source_calls_unknown_leads_to_the_fallback_at_once(action: str, factor: float) -> None:
    world = World(fallback__action=action)
    world.step(cluster(HALF))
    assert world.step(cluster(EMPTY, unknown=("broker 2: no snapshot",))) == factor
    assert world.cause == f"fallback.action={action}: broker 2: no snapshot"
    assert world.number("LackOfData") == (action == "PAUSE"), "LackOfData is 1 only if the fallback lowers quotas"
    assert world.number("Unknown") == 1
    world.step(cluster(FULL, unknown=("broker 2: no snapshot",)))
    assert (world.number("LackOfData"), world.number("Unknown")) == (0, 1), "a full volume isn't a lack of data"
    assert world.step(cluster(HALF)) == 0.5
    assert (world.number("LackOfData"), world.number("Unknown")) == (0, 0)


@pytest.mark.parametrize(
    ("silent", "failed"),
    [
        (None, False),
        *((wrong, True) for wrong in (fails, 1.5, -0.1, float("nan"), True, "0.5")),
        (lambda: ClusterVolumes(("/data",)), True),  # type: ignore[arg-type]
        (lambda: ClusterVolumes((HALF,), waiting=5), True),  # type: ignore[arg-type]
        (lambda: Factor(0.1, cause=None), True),  # type: ignore[arg-type]
    ],
)
def test_the_last_factor_of_a_source_that_fails_or_knows_nothing_holds_for_validity(silent: Any, failed: bool) -> None:
    world = World()
    world.step(cluster(HALF))
    assert world.step(silent, VALIDITY) == 0.5
    assert (world.number("LackOfData"), world.number("Unknown")) == (0, 1), "the last factor holds: no data is lacking"
    assert world.step(silent) == 0.0
    assert world.number("LackOfData") == 1
    assert world.cause == "fallback.action=PAUSE: the factor source mine has no answer"
    assert world.shim.failed == ["mine"] * (VALIDITY + 1) * failed
    assert world.step(cluster(EMPTY)) == 1.0


@pytest.mark.parametrize(
    "silent", [None, fails, cluster(waiting="the topic is not read yet"), cluster(EMPTY, waiting="it is not read yet")]
)
def test_a_source_that_just_started_is_waited_for(silent: Any, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.INFO, "quotahost.factor"):
        assert world.step(silent, GRACE) == 1.0
    assert world.shim.factors == []
    assert [record for record in caplog.records if record.name == "quotahost.factor"] == []
    assert (world.number("LackOfData"), world.number("Unknown")) == (0, 1)
    assert world.step(silent) == 0.0
    assert world.number("LackOfData") == 1


def test_after_a_standstill_of_the_machine_what_was_known_before_it_holds_until_the_source_has_caught_up() -> None:
    world = World()
    world.step(cluster(HALF))
    world.clock.now += VALIDITY  # the process stood still
    assert world.step(cluster(HALF, unknown=("broker 1: its disks have not answered",)), VALIDITY / 2 - 1) == 0.5
    assert world.step(cluster(FULL, unknown=("broker 2: its latest snapshot is stale",))) == 0.0, "known to be full"
    assert world.cause == "broker 1, volume /full"
    assert world.step(cluster(HALF, unknown=("broker 2: its latest snapshot is stale",))) == 0.0
    assert world.cause == "fallback.action=PAUSE: broker 2: its latest snapshot is stale"
    world.clock.now += VALIDITY
    assert world.step() == 0.0, "it was not known before the standstill either"


def remembers(tmp_path: Path, pause: Scoped | None = None) -> PauseMemory:
    """The memory of a broker that has just started; it had stopped in this PAUSE."""
    if pause:
        stopped = PauseMemory([str(tmp_path)])
        stopped.keep(pause)
        stopped.write()
    return PauseMemory([str(tmp_path)])


def test_a_pause_and_a_used_up_budget_outlive_a_restart_of_the_broker_until_all_is_known(tmp_path: Path) -> None:
    before = World(fence=True, memory=remembers(tmp_path))
    budgets = tuple(replace(each, topics=frozenset({each.name})) for each in (FULL, HALF))
    assert before.step(replace(cluster(FULL), budgets=budgets)) == 0.0
    before.memory.write()
    world = World(fence=True, memory=remembers(tmp_path))
    assert world.step(replace(cluster(EMPTY, waiting="the topic is not read yet"), budgets=None)) == 0.0
    assert [slowed.topics for slowed in world.shim.budgets[-1]] == [{"/full"}]
    assert world.cause == "full when this broker stopped: broker 1, volume /full"
    assert world.number("LackOfData") == 1
    world.memory.write()
    assert remembers(tmp_path).before, "another start finds it, too, while the disks aren't known"
    assert world.step(cluster(EMPTY)) == 1.0
    assert (world.number("LackOfData"), world.shim.budgets[-1]) == (0, ())
    world.memory.write()
    assert not remembers(tmp_path).budgets
    assert World(fence=True, memory=remembers(tmp_path)).step(None) == 1.0, "a PAUSE that has ended isn't remembered"
    without = World(memory=remembers(tmp_path, Scoped(Factor(0.0, "the disk"))))
    assert without.step(None) == 1.0, "without a fence, a PAUSE would mute new clients for minutes"


def test_a_file_that_a_full_disk_refuses_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path, octets: bytes) -> None:
        with file.open("wb"):
            raise OSError(errno.ENOSPC, "no space left")

    memory = remembers(tmp_path, Scoped(Factor(0.0, "another broker's disk")))
    before = memory.before
    monkeypatch.setattr(Path, "write_bytes", full)
    for pause in (Scoped(Factor(0.0, "this broker's disk, too")), None):
        assert PauseMemory([str(tmp_path)]).before == before is not None
        memory.keep(pause)
        memory.write()
    assert list(tmp_path.iterdir()) == []


def test_a_remembered_pause_is_for_the_topics_that_it_was_for_and_ends_with_the_grace(tmp_path: Path) -> None:
    pause = Scoped(Factor(0.0, "the disk"), Affected({"theirs": "the disk", "u": "the disk"}, frozenset({"theirs"})))
    world = World(fence=True, memory=remembers(tmp_path, pause), factor__scope="topics", fallback__action="OPEN")
    shim: Any = world.shim
    world.step(None, GRACE - 1)
    assert shim.last.affected == pause.affected
    own = cluster(replace(FULL, topics=frozenset({"own"})), waiting="the topic is not read yet")
    world.step(own)
    assert (world.number("LackOfData"), shim.last.full) == (0, True), "a known volume is full: no data is lacking"
    assert shim.last.affected.held == {"own", "theirs"}
    world.step(own)
    assert shim.last.affected.held == {"own"}


@pytest.mark.parametrize(("in_force", "begins"), [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_a_pause_that_an_earlier_host_ended_does_not_come_back(tmp_path: Path, in_force: float, begins: float) -> None:
    pause = Scoped(Factor(0.0, "the disk"), Affected({"t": "the disk"}, frozenset({"t"})))
    # The disks' thread writes the file after its next look; a new host reads it before the previous host has ended.
    memory = remembers(tmp_path, pause)
    memory.budgets = (SlowedBudget("orders", 0.0, frozenset({"t"})),)
    world = World(True, Scoped(Factor(in_force, "the host before")), memory, factor__scope="topics")
    assert (world.step(None), world.shim.budgets) == (begins, [])
    assert world.shim.last.affected is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cause":1}'])
def test_a_file_that_holds_no_pause_stops_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / PauseMemory.FILE).write_text(text)
    assert World(fence=True, memory=PauseMemory([str(tmp_path)])).step(None) == 1.0


# ---- creation of topics ----


def test_topics_are_refused_only_where_a_volume_is_known_to_be_full() -> None:
    world = World(fence=True)
    world.step(cluster(EMPTY, unknown=("broker 2: no snapshot",)))
    assert (world.factor, world.shim.last.full) == (0.0, False), "fallback.action stops producers, but not creations"
    world.step(cluster(FULL, unknown=("broker 2: no snapshot",)))
    assert (world.factor, world.shim.last.full) == (0.0, True)
    world.step(None, VALIDITY - 1)
    assert (world.factor, world.shim.last.full) == (0.0, False), "it isn't known whether the volume is still full"
    world.step(cluster(FULL))
    world.step(None)
    assert world.shim.last.full, "the volume was known to be full a moment ago"
    world.step(cluster(EMPTY))
    assert not world.shim.last.full


def test_a_source_that_comes_by_a_live_change_is_waited_for_and_one_that_goes_leaves_no_lack_of_data() -> None:
    world = World()
    world.has_source = False
    world.step(seconds=10 * GRACE)
    world.has_source = True
    assert world.step(None, GRACE) == 1.0
    assert world.step(None) == 0.0
    world.has_source = False
    assert world.step() == 1.0
    assert (world.number("LackOfData"), world.causes()) == (0, {})


# ---- the policy ----


@pytest.mark.parametrize("answer", [fails, -0.1, 1.1, float("nan"), "half", None])
def test_a_policy_that_fails_is_a_plugin_that_fails_and_the_last_factor_holds_for_validity(answer: Any) -> None:
    world = World()
    world.step(cluster(HALF))
    world.policy = SimpleNamespace(quota_factor=lambda _: answer() if callable(answer) else answer)
    world.loop.forget()
    assert world.step(seconds=VALIDITY) == 0.5
    assert world.shim.failed == ["mine"] * VALIDITY
    assert world.step() == 0.0
    assert world.cause == "fallback.action=PAUSE: the policy mine fails for broker 2, volume /half"


def test_whatever_sources_and_volumes_are_called_the_cause_stays_one_printable_line_of_bounded_length() -> None:
    world = World()
    world.step(Factor(0.5, "a\nERROR forged \udcff"))
    assert world.cause == r"a\nERROR forged \udcff"
    world.step(cluster(Volume("\x1b[31m", "a\r\nOPEN -> PAUSE: forged \u202egpj.exe \x07 \x9b31m \ud800", 10, 10)))
    assert (world.cause.isprintable(), "forged" in world.cause) == (True, True)
    world.step(Factor(0.4, "long" * 1000))
    assert len(world.cause) < 1100
    world.step(cluster(HALF, unknown=("broken\nline", "long" * 1000)))
    assert r"broken\nline" in world.cause
    assert len(world.cause) < 1100


def test_the_policy_is_asked_again_only_when_volumes_or_budgets_changed_or_it_depends_on_time() -> None:
    world = World()
    world.step(lambda: cluster(EMPTY, HALF), 5)
    assert world.policy.asked == 2
    for volume, budget, asked in ((EMPTY, FULL, 3), (HALF, FULL, 1), (HALF, EMPTY, 3)):
        before = world.policy.asked
        world.step(replace(cluster(volume), budgets=(budget, HALF)))
        assert world.policy.asked - before == asked
    before, world.policy.depends_on_time = world.policy.asked, True
    world.step(lambda: cluster(EMPTY, HALF), 5)
    assert world.policy.asked - before == 10


# ---- steps and edges ----


def test_a_change_below_a_step_is_none_unless_it_is_a_tenth_of_the_factor_or_another_state() -> None:
    world = World()
    steps = [world.step(Factor(given)) for given in (0.999, 0.5, 0.505, 0.511, 0.02, 0.0185, 0.0179)]
    assert steps == [0.999, 0.5, 0.5, 0.511, 0.02, 0.02, 0.0179]
    edges = [0.001, 0.0, 0.001, 0.999, 1.0]
    assert [world.step(Factor(given)) for given in edges] == edges
    assert world.number("Transitions") == 4


def test_each_change_of_state_is_counted_and_logged_once_and_its_cause_shown(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.INFO, "quotahost.factor"):
        world.step(cluster(HALF), 5)
        assert world.causes() == {"broker 2, volume /half": 0.5}
        world.step(cluster(Volume("4", "/other", 100, 50)), 5)
        assert world.causes() == {"broker 4, volume /other": 0.5}
        world.step(cluster(FULL), 5)
        world.step(cluster(unknown=("broker 2: no snapshot",)), 5)
        world.step(cluster(EMPTY), 5)
    assert world.causes() == {}
    assert world.number("Transitions") == 3
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "OPEN -> THROTTLE: factor 0.5 (broker 2, volume /half)"),
        ("WARNING", "THROTTLE -> PAUSE: factor 0 (broker 1, volume /full)"),
        ("WARNING", "PAUSE goes on: fallback.action=PAUSE: broker 2: no snapshot"),
        ("INFO", "PAUSE -> OPEN: factor 1"),
    ]


@pytest.mark.parametrize("known", [EMPTY, HALF])
def test_what_is_unknown_is_logged_where_no_state_changes(known: Volume, caplog: pytest.LogCaptureFixture) -> None:
    world = World(fallback__action="OPEN")
    world.step(cluster(known))
    with caplog.at_level(logging.INFO, "quotahost.factor"):
        world.step(cluster(known, unknown=("broker 4 is silent",)), 5)
        world.step(cluster(known), 5)
    told = "fallback.action=OPEN applies to what is unknown: broker 4 is silent"
    assert [text for text in caplog.messages if "->" not in text] == [told, "everything is known again"]


def test_the_source_is_read_once_in_its_interval_and_at_once_after_a_live_change_of_it() -> None:
    world, reads = World(factor__interval="5s"), list[float]()
    world.step(lambda: reads.append(world.clock.now), 17)
    assert [b - a for a, b in pairwise(reads)] == [5.0] * 3
    world.loop.forget()
    world.step()
    assert len(reads) == 5
