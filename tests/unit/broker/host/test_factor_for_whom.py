"""Tests for whom a factor is: writers to affected topics, writers to a budget's topics, or single quota types."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from quotahost.broker.host.messages import Scoped
from quotahost.model import ClusterVolumes, Factor, QuotaType, Volume
from quotahost.model.budgets import Budget, as_volume
from quotahost.model.volumes import Affected
from tests.fakes.plugin_context import fails
from tests.unit.broker.host.factor_world import EMPTY, FULL, HALF, VALIDITY, World, cluster, typed


def volume(name: str, free: int, *topics: str) -> Volume:
    return Volume("1", name, 100, 100 - free, topics=frozenset(topics))


def scoped(fence: bool = True, **given: str) -> World:
    return World(fence, None, None, **({"factor__scope": "topics"} | given))


def seen(scoped: World, *volumes: Volume, unknown: tuple[str, ...] = ()) -> Affected | None:
    scoped.step(ClusterVolumes(volumes, unknown))
    return scoped.shim.last.affected


FULL_AB, HALF_BC, EMPTY_D = volume("/full", 0, "a", "b"), volume("/half", 50, "b", "c"), volume("/empty", 100, "d")

PLACE, HALF_PLACE = "broker 1, volume /full", "broker 1, volume /half"
OF_FULL = Affected({"a": PLACE, "b": PLACE}, frozenset("ab"))


@pytest.mark.parametrize(
    ("volumes", "given", "whom"),
    [
        ((HALF_BC, FULL_AB, EMPTY_D), {}, Affected({**OF_FULL.places, "c": HALF_PLACE}, frozenset("ab"))),
        ((FULL_AB, Volume("2", "/silent", 100, 50)), {}, None),
        ((FULL_AB, Volume("2", "/silent", 100, 0)), {}, OF_FULL),  # this volume doesn't lower the factor
        ((volume("/logs", 0),), {}, Affected({}, frozenset())),
        ((EMPTY_D,), {}, None),
        ((FULL_AB,), {"factor__scope": "cluster"}, None),
        ((FULL_AB,), {"fence": False}, None),
    ],
)
def test_the_topics_of_the_volumes_that_lower_the_factor_are_affected_unless_one_does_not_tell_or_no_fence_is_there(
    volumes: tuple[Volume, ...], given: dict[str, Any], whom: Affected | None
) -> None:
    assert seen(scoped(**given), *volumes) == whom


def test_a_set_that_changes_at_the_same_factor_is_handed_on_and_one_that_does_not_is_not() -> None:
    it = scoped()
    for topics in ("ab", "ab", "ac", "c"):  # sets of equal size differ, too; their cause is the same
        seen(it, volume("/half", 50, *topics))
    assert [set(each.places) for each in it.shim.affected if each] == [set("ab"), set("ac"), set("c")]
    assert it.shim.factors == [0.5]


def test_the_fallback_is_for_all_and_ends_with_what_was_unknown_and_so_is_a_factor_without_volumes() -> None:
    it = scoped()
    it.step(Factor(0.5, "as I say"))
    assert it.shim.affected == [None]
    it = scoped(fallback__action="PAUSE")
    assert seen(it, HALF_BC, unknown=("broker 2: no snapshot",)) is None
    assert it.factor == 0
    half = seen(it, HALF_BC)
    assert half is not None
    it = scoped(fallback__action="OPEN")
    assert seen(it, HALF_BC, unknown=("broker 2: no snapshot",)) == half, "the known volume still slows its writers"


def test_while_source_or_policy_fail_the_topics_stay_and_what_is_known_now_joins_them() -> None:
    it = scoped()
    before = seen(it, HALF_BC)
    it.step(fails)
    assert it.shim.affected == [before]
    it.policy.fails = {"/half"}
    found = seen(it, HALF_BC, FULL_AB)
    assert found is not None
    assert (set(found.places), set(found.held)) == (set("abc"), set("ab"))
    seen(it, HALF_BC, unknown=("broker 2: no snapshot",))
    assert it.cause == "fallback.action=PAUSE: broker 2: no snapshot", "a failing policy doesn't hide a silent broker"


def test_a_host_that_starts_again_slows_whom_the_one_before_did_and_whom_it_finds_until_all_is_known() -> None:
    places = dict.fromkeys("bc", HALF_PLACE)
    left = Scoped(Factor(0.5, f"{HALF_PLACE}; for writers of 2 topics"), Affected(places, frozenset()))
    it = World(True, left, factor__scope="topics", fallback__action="OPEN")
    for volume_now in (EMPTY_D, HALF_BC):
        it.step(ClusterVolumes((volume_now,), waiting="the other brokers"), seconds=3)
    assert (it.shim.affected, it.cause) == ([], left.factor.cause), "the former host's topics stay in the table"
    it.step(ClusterVolumes((FULL_AB,), waiting="the other brokers"))
    assert it.shim.affected == [Affected({**OF_FULL.places, "c": HALF_PLACE}, frozenset("ab"))]
    it.step(ClusterVolumes((EMPTY_D,)))
    assert it.factor == 1


def budget(used: int, name: str = "orders", size: int = 100) -> Volume:
    return as_volume(Budget(name, (f"{name}.*",), size), used, frozenset({f"{name}.eu"}), 0.5)


def budgets(world: World, *used: int) -> dict[str, float]:
    """Names and factors of the budgets that Java has, after the host has read budgets with these used bytes."""
    names = ("orders", "logs")
    answer = ClusterVolumes((EMPTY,), budgets=tuple(budget(*one) for one in zip(used, names, strict=False)))
    world.step(answer)
    return {slowed.name: slowed.factor for slowed in world.shim.budgets[-1]}


def test_a_small_change_of_a_budget_is_not_handed_on_and_one_of_its_state_is_while_a_fence_is_there() -> None:
    world = World(fence=True)
    for used in (600, 605, 611, 1000, 999):
        world.step(ClusterVolumes((EMPTY,), budgets=(budget(used, size=1000),)))
    assert [slowed.factor for (slowed,) in world.shim.budgets] == pytest.approx([0.4, 0.389, 0, 0.001])
    world.shim.has_fence = False  # nobody sees who writes to which topic
    world.step()
    assert world.shim.budgets[-1] == ()


def test_a_budget_that_the_policy_fails_for_keeps_its_factor_and_others_get_theirs() -> None:
    world = World(fence=True)
    assert budgets(world, 100, 0) == {"orders": 0}
    world.policy.fails = {"orders"}
    assert budgets(world, 100, 60) == {"orders": 0, "logs": 0.4}
    assert budgets(world, 0, 100) == {"orders": 0, "logs": 0}
    world.step(seconds=VALIDITY * 2)
    assert (world.factor, world.number("Unknown")) == (1, 0), "the disks are known, so fallback.action doesn't apply"
    assert budgets(world, 0, 100) == {"orders": 0, "logs": 0}
    world.policy.fails = set()
    assert budgets(world, 0, 0) == {}


def test_each_change_of_a_budgets_state_is_logged_once_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    world, orders, logs = World(fence=True), "budget orders of 100 bytes", "budget logs of 100 bytes"
    with caplog.at_level(logging.INFO, "quotahost.factor"):
        for used in ((0, 0), (60, 0), (70, 100), (100, 100), (100, 0), (60, 0), (0, 0)):
            budgets(world, *used)
            budgets(world, *used)
        for full in (budget(100), replace(budget(100), topics=frozenset[str]())):
            world.step(ClusterVolumes((EMPTY,), budgets=(full,)))
    whom, ended = "for clients that write to its topics", "slows nobody on this broker any more"
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"{orders}: THROTTLE, factor 0.4 {whom}"),
        ("WARNING", f"{logs}: PAUSE, factor 0 {whom}"),
        ("WARNING", f"{orders}: PAUSE, factor 0 {whom}"),
        ("INFO", f"budget logs {ended}"),
        ("WARNING", f"{orders}: THROTTLE, factor 0.4 {whom}"),
        ("INFO", f"budget orders {ended}"),
        ("WARNING", f"{orders}: PAUSE, factor 0 {whom}"),
        ("INFO", f"budget orders {ended}"),  # it is full, but has no topic on this broker any more
    ]
    assert world.shown("Budget")["orders"]["Factor"] == 0


# ---- sources for single quota types ----------------------------------------------------------------------------


BYTES = (QuotaType.PRODUCE, QuotaType.FETCH)


def test_for_each_quota_type_the_smallest_factor_applies_with_its_cause() -> None:
    world = World()
    busy, slow = Factor(0.5, "busy"), Factor(0.25, "slow")
    world.typed = {"one": typed(busy, *BYTES), "two": typed(slow, QuotaType.FETCH), "three": typed(1.0, *BYTES)}
    assert world.step(cluster(HALF)) == 0.5, "a factor for one type doesn't change the disks' factor"
    assert world.shim.of_types == [{QuotaType.PRODUCE: busy, QuotaType.FETCH: slow}]
    assert world.shown("TypedFactor") == {"one": {"Factor": 0.5}, "two": {"Factor": 0.25}, "three": {"Factor": 1.0}}
    world.has_source = False
    del world.typed["two"]
    assert world.step() == 1.0, "a source for single types needs no source of volumes"
    assert world.shim.of_types[-1] == dict.fromkeys(BYTES, busy)
    world.typed = {}
    world.step()
    assert (world.shim.of_types[-1], world.shown("TypedFactor")) == ({}, {})


@pytest.mark.parametrize("answer", [fails, 0.0, cluster(FULL), "nonsense"])
def test_such_a_source_that_fails_slows_nobody_and_never_pauses(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.typed = {"load": typed(Factor(0.5, "busy"), *BYTES)}
    world.step(cluster(EMPTY))
    world.typed["load"] = typed(answer, *BYTES)
    assert world.step(seconds=VALIDITY * 2) == 1.0
    assert world.shim.of_types[-1] == {}
    assert world.shim.failed == ["load"] * VALIDITY * 2
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


def test_a_change_below_a_step_is_not_handed_on_and_the_end_always_is() -> None:
    world = World()
    for answer in (Factor(0.995, "30 % idle"), Factor(0.991, "29 % idle"), Factor(1.0)):
        world.typed = {"load": typed(answer, QuotaType.PRODUCE)}
        world.step(cluster(EMPTY))
    assert world.shim.of_types == [{QuotaType.PRODUCE: Factor(0.995, "30 % idle")}, {}]


def test_a_source_that_slows_is_logged_once_its_end_too_and_its_coming_back(caplog: pytest.LogCaptureFixture) -> None:
    world, busy = World(), {"load": typed(Factor(0.5, "busy"), *BYTES)}
    with caplog.at_level(logging.INFO, "quotahost.factor"):
        for sources in (busy, busy, {}, busy, busy, {"load": typed(Factor(1.0), *BYTES)}):
            world.typed = sources
            world.step(cluster(EMPTY))
    begins, ends = "load: THROTTLE, factor 0.5 (busy)", "load: OPEN, factor 1"
    assert caplog.messages == [begins, ends] * 2, "the end is logged, too, when the source is removed"
