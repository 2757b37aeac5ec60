"""For whom a factor is: all clients, or the writers of the topics on the volumes that lower it."""

from __future__ import annotations

from typing import Any

import pytest

from quotahost.broker.host.factor import PauseMemory
from quotahost.broker.host.loop import Host
from quotahost.broker.host.volume_evaluation import affected
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.model.affected import MAX_AFFECTED, Affected
from tests.fakes.plugin_context import Clock, settings
from tests.fakes.shim import FakeShim
from tests.unit.broker.host.test_factor import TIMES, World, fails


def volume(name: str, free: int, *topics: str) -> Volume:
    return Volume("1", name, 100, 100 - free, topics=frozenset(topics))


def world(fence: bool = True, **given: str) -> World:
    return World(fence, Factor(1.0), PauseMemory([]), **({"factor__scope": "topics"} | given))


def seen(world: World, *volumes: Volume, unknown: tuple[str, ...] = ()) -> Affected | None:
    world.step(ClusterVolumes(volumes, unknown))
    return world.shim.affected[-1]


FULL, HALF, EMPTY = volume("/full", 0, "a", "b"), volume("/half", 50, "b", "c"), volume("/empty", 100, "d")


def test_the_topics_of_the_volumes_that_lower_the_factor_are_affected_and_those_at_0_are_held() -> None:
    full, half = "broker 1, volume /full", "broker 1, volume /half"
    assert seen(world(), HALF, FULL, EMPTY) == Affected({"a": full, "b": full, "c": half}, frozenset("ab"))


def test_the_cause_says_how_many_topics() -> None:
    it = world()
    seen(it, HALF)
    assert it.cause == "broker 1, volume /half; for writers of 2 topics"


def test_one_volume_that_does_not_tell_its_topics_makes_it_for_all() -> None:
    silent = Volume("2", "/silent", 100, 50)
    assert seen(world(), FULL, silent) is None
    assert seen(world(), FULL, Volume("2", "/silent", 100, 0)) is not None, "it doesn't lower the factor"


def test_a_volume_without_topics_slows_nobody() -> None:
    assert seen(world(), volume("/logs", 0)) == Affected({}, frozenset())


def test_an_open_factor_is_about_no_topics() -> None:
    assert seen(world(), EMPTY) is None


@pytest.mark.parametrize("given", [{"factor__scope": "cluster"}, {"fence": False}])
def test_the_scope_cluster_and_a_broker_without_a_fence_slow_all(given: dict[str, Any]) -> None:
    it = world(**given)
    assert seen(it, FULL) is None
    assert it.cause == "broker 1, volume /full"


def test_a_factor_of_a_source_that_knows_no_volumes_is_for_all() -> None:
    it = world()
    it.step(Factor(0.5, "as I say"))
    assert it.shim.affected == [None]


def test_a_set_that_changes_at_the_same_factor_is_handed_on_and_one_that_does_not_is_not() -> None:
    it = world()
    for topics in ("ab", "ab", "ac", "c"):  # of equal size, too: then the cause stays
        seen(it, volume("/half", 50, *topics))
    assert [set(each.places) for each in it.shim.affected if each] == [set("ab"), set("ac"), set("c")]
    assert it.shim.factors == [0.5]


def test_the_fallback_is_for_all_and_ends_with_what_was_unknown() -> None:
    it = world(fallback__action="PAUSE")
    assert seen(it, HALF, unknown=("broker 2: no snapshot",)) is None
    assert it.factor == 0
    assert seen(it, HALF) is not None


def test_with_open_as_fallback_what_is_known_slows_the_writers_of_its_topics_alone() -> None:
    found = seen(world(fallback__action="OPEN"), HALF, unknown=("broker 2: no snapshot",))
    assert found is not None
    assert set(found.places) == set("bc")


def test_a_source_that_fails_for_a_moment_leaves_the_topics_as_they_were() -> None:
    it = world()
    before = seen(it, HALF)
    it.step(fails)
    assert it.shim.affected == [before]


def test_what_is_known_now_joins_what_was_known_while_the_policy_fails() -> None:
    it = world()
    seen(it, HALF)
    it.policy.fails = {"/half"}
    found = seen(it, HALF, FULL)
    assert found is not None
    assert (set(found.places), set(found.held)) == (set("abc"), set("ab"))


def test_too_many_topics_make_it_for_all() -> None:
    most = [Volume("1", str(n), 1, 1, topics=frozenset(f"{n}.{m}" for m in range(1000))) for n in range(11)]
    assert len((affected([(each, 0.5) for each in most[:10]]) or Affected({}, frozenset())).places) == MAX_AFFECTED
    assert affected([(each, 0.5) for each in most]) is None


def test_hostile_names_of_volumes_are_printable_in_the_place() -> None:
    found = affected([(Volume("1\n", "/d\u202e", 1, 1, topics=frozenset("a")), 0.5)])
    assert found is not None
    assert found.places["a"].isprintable()


def test_a_live_change_of_the_scope_is_in_force_with_the_next_read_and_back() -> None:
    it = world()
    before = seen(it, HALF)
    for scope, whom in (("cluster", None), ("topics", before)):
        it.settings = settings(factor__source="mine", factor__scope=scope, **TIMES)
        it.loop.forget()
        assert seen(it, HALF) == whom
        assert it.factor == 0.5
    assert it.cause.endswith("; for writers of 2 topics")


def test_a_host_that_starts_again_leaves_the_factor_to_whom_it_was_for_until_it_knows_more() -> None:
    last = Factor(0.5, "broker 1, volume /half; for writers of 2 topics")
    it = World(True, last, factor__scope="topics", fallback__action="OPEN")
    it.step(ClusterVolumes((), waiting="the disks have not answered yet"), seconds=3)
    assert it.shim.affected == [], "Java still has the factor with its topics"
    assert seen(it, HALF) is not None
    it.step(ClusterVolumes((EMPTY,)))
    assert it.factor == 1


def test_what_a_start_has_lowered_rises_again_before_everything_is_known() -> None:
    it = World(True, factor__scope="topics", fallback__action="OPEN")
    for volume_now, factor in ((HALF, 0.5), (EMPTY, 1.0)):
        it.step(ClusterVolumes((volume_now,), waiting="the other brokers"))
        assert it.factor == factor


def test_a_host_that_starts_again_slows_all_for_what_it_never_learns() -> None:
    it = World(True, Factor(0.5, "half"), factor__scope="topics", fallback__action="OPEN")
    it.step(ClusterVolumes((), waiting="the disks have not answered yet"))
    assert seen(it, Volume("2", "/silent", 100, 90)) is None
    assert it.factor == pytest.approx(0.1)


def test_without_a_fence_the_scope_topics_is_said_to_be_the_cluster_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    shim = FakeShim({"factor.source": "fixed", "factor.scope": "topics"})
    shim.on_take = lambda: setattr(clock, "now", clock.now + 3)
    shim.idle(5)
    Host(shim, clock).run()
    assert sum("factor.scope=topics needs the fence" in line for line in caplog.messages) == 1
