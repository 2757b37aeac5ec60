"""A replay gives what was, with the settings of then; with others it errs to the right side."""

from __future__ import annotations

import pytest

from quotahost.replay.play import play
from quotahost.replay.values import Where
from quotahost.report.values import Bucket, Name
from quotahost.simulation.world import settings_of
from tests.unit.replay import runs

TOLERANCE = 0.02
LATE = 1.0  # s: a snapshot's way, factor.interval, and the replay's own step
LIMITS = {"static__storage__soft": "400M", "static__storage__hard": "500M"}


def near(where: Where, time: float) -> list[float]:
    """The new factors in force at some time within LATE of this one."""
    between = [point.new for point in where.factors if abs(point.at - time) <= LATE]
    return [runs.at(where.factors, time - LATE, 2), *between]


@pytest.mark.parametrize("policy", ["limits", "setpoint"])
def test_the_settings_of_then_give_the_factors_of_then(policy: str) -> None:
    scene = runs.two_brokers(policy)
    run = runs.recorded(scene)
    own = {**dict(scene.properties), "static.storage.soft": "400000000", "static.storage.hard": "500000000"}
    found = play(run.history, runs.plan(settings_of(tuple(own.items()))))
    (where,) = found.where
    assert where.then == where.new
    assert where.new.pauses >= 1
    assert where.new.throttle_s > 30
    away = [
        min(abs(value - factor) for value in near(where, time))
        for time, factor in run.factors["2"]
        if where.factors[0].at + LATE <= time <= found.until - LATE
    ]
    assert len(away) > 900
    assert max(away) <= TOLERANCE


def test_with_settings_that_never_throttle_a_volume_becomes_at_least_as_full() -> None:
    scene = runs.two_brokers("limits")
    run = runs.recorded(scene)
    own = settings_of(scene.properties)
    found = play(run.history, runs.plan(own))
    assert found.where[0].new.lowest == 1.0
    assert found.where[0].then.pauses == 1  # by the limits that came with the readings
    first = found.volumes[0]
    assert all(point.new >= point.then for point in first.points)
    assert first.peak_new > 560_000_000 > first.peak_then
    assert first.estimated
    assert any(note.startswith("estimated") for note in found.notes)


def test_lower_limits_slow_earlier_and_keep_a_volume_emptier() -> None:
    scene = runs.two_brokers("limits")
    run = runs.recorded(scene)
    lower = runs.settings(
        factor__source="snapshots", static__storage__soft="390000000", static__storage__hard="450000000"
    )
    found = play(run.history, runs.plan(lower, settings_of(scene.properties)))
    (where,) = found.where
    assert where.new.first_pause is not None
    assert where.then.first_pause is not None
    assert where.new.first_pause < where.then.first_pause
    course = next(each for each in found.volumes if each.name.broker == "1")
    assert course.peak_new < course.peak_then


def test_a_broker_that_looks_at_its_own_disks_only_is_judged_alone() -> None:
    scene = runs.two_brokers("limits")
    run = runs.recorded(scene)
    local = runs.settings(factor__source="local", static__storage__soft="400000000", static__storage__hard="500000000")
    found = play(run.history, runs.plan(local))
    first, second = found.where
    assert (first.broker, second.broker) == ("1", "2")
    assert first.new.pauses == 1
    assert second.new.lowest == 1.0


@pytest.mark.parametrize("shadowed", [{"mode": "shadow"}, {"shadow": "factor"}])
def test_a_factor_in_shadow_is_shown_and_slows_nobody(shadowed: dict[str, str]) -> None:
    run = runs.recorded(runs.two_brokers("limits"))
    own = runs.settings(
        factor__source="snapshots", static__storage__soft="390000000", static__storage__hard="450000000", **shadowed
    )
    found = play(run.history, runs.plan(own))
    assert found.where[0].new.pauses >= 1
    assert all(point.new == point.then for course in found.volumes for point in course.points)
    assert any("in shadow" in note for note in found.notes)


def test_a_volume_has_the_limits_of_its_override() -> None:
    used = [Bucket(60.0 * i, 100 * i, 100 * i, 100 * i, 1000, 850, 950) for i in range(10)]
    history = runs.report({Name("c", "1", "/a"): used, Name("c", "1", "/b"): used})
    own = runs.settings(
        factor__source="local", static__storage__soft="850", static__storage__hard="950",
        static__storage__overrides="/b soft=300 hard=500",
    )  # fmt: skip
    courses = {each.name.volume: each for each in play(history, runs.plan(own)).volumes}
    assert (courses["/a"].points[0].soft, courses["/b"].points[0].soft) == (850, 300)
    assert courses["/b"].new.throttle_s > 0
    assert courses["/a"].then.lowest == courses["/b"].then.lowest


def test_a_pause_lasts_until_so_much_is_free_as_pause_release_says() -> None:
    used = [*range(0, 1000, 100), 900, 850, 800, 750, 700, 650, 600]
    buckets = [Bucket(60.0 * i, each, each, each, 1000, 500, 900) for i, each in enumerate(used)]
    limits = {"static__storage__soft": "500", "static__storage__hard": "900"}
    paused = [
        play(
            runs.report({Name("c", "1", "/a"): buckets}),
            runs.plan(runs.settings(factor__source="local", pause__resume__free_share=release, **limits)),
        ).where[0].new.pause_s
        for release in ("0", "0.5")
    ]  # fmt: skip
    assert paused[1] - paused[0] == pytest.approx(3 * 60, abs=2)  # to 850 bytes or to 700, a minute for each 50
