"""A replay gives what was, with the settings of then; with others it errs to the right side, and comes near."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from harness.loop.cluster import ClusterScene
from quotahost.cli.lab.curves import Bucket, Name
from quotahost.cli.lab.host import settings_of
from quotahost.cli.lab.play import ReplayedFactor, play
from quotahost.model import Limit, LimitType
from tests.unit.cli.lab import runs
from tests.unit.cli.lab.runs import MB, plan, report, settings

TOLERANCE = 0.02
LATE = 1.0  # s: a snapshot's way, factor.interval, and the replay's own step


def near(factor: ReplayedFactor, time: float) -> list[float]:
    """The new factors in force at some time within LATE of this one."""
    between = [point.new for point in factor.points if abs(point.at - time) <= LATE]
    return [runs.at(factor.points, time - LATE, 2), *between]


@pytest.mark.parametrize("policy", ["limits", "setpoint"])
def test_the_settings_of_then_give_the_factors_of_then(policy: str) -> None:
    scene = runs.two_brokers(policy)
    run = runs.recorded(scene)
    own = {**dict(scene.properties), "static.storage.soft": "400000000", "static.storage.hard": "500000000"}
    found = play(run.history, plan(settings_of(tuple(own.items()))))
    (factor,) = found.factors
    assert factor.then == factor.new
    assert factor.new.pauses >= 1
    assert factor.new.throttle_s > 30
    away = [
        min(abs(value - then) for value in near(factor, time))
        for time, then in run.factors["2"]
        if factor.points[0].at + LATE <= time <= found.until - LATE
    ]
    assert len(away) > 900
    assert max(away) <= TOLERANCE


def test_with_settings_that_never_throttle_a_volume_becomes_at_least_as_full() -> None:
    scene = runs.two_brokers("limits")
    run = runs.recorded(scene)
    own = settings_of(scene.properties)
    found = play(run.history, plan(own))
    assert found.factors[0].new.lowest == 1.0
    assert found.factors[0].then.pauses == 1  # by the limits that came with the readings
    first = found.volumes[0]
    assert all(point.new >= point.then for point in first.points)
    assert first.peak_new > 560_000_000 > first.peak_then
    assert first.growth.estimated
    assert any(note.startswith("estimated") for note in found.notes)


def test_lower_limits_slow_earlier_and_keep_a_volume_emptier() -> None:
    scene = runs.two_brokers("limits")
    run = runs.recorded(scene)
    lower = settings(factor__source="snapshots", static__storage__soft="390000000", static__storage__hard="450000000")
    found = play(run.history, plan(lower, settings_of(scene.properties)))
    (factor,) = found.factors
    assert factor.new.first_pause is not None
    assert factor.then.first_pause is not None
    assert factor.new.first_pause < factor.then.first_pause
    volume = next(volume for volume in found.volumes if volume.name.broker == "1")
    assert volume.peak_new < volume.peak_then


@pytest.mark.parametrize("shadowed", [{"shadow": "all"}, {"shadow": "factor"}])
def test_a_factor_in_shadow_is_shown_and_slows_nobody(shadowed: dict[str, str]) -> None:
    run = runs.recorded(runs.two_brokers("limits"))
    own = settings(
        factor__source="snapshots", static__storage__soft="390000000", static__storage__hard="450000000", **shadowed
    )
    found = play(run.history, plan(own))
    assert found.factors[0].new.pauses >= 1
    assert all(point.new == point.then for volume in found.volumes for point in volume.points)
    assert any("in shadow" in note for note in found.notes)


def test_a_volume_has_the_limits_of_its_override() -> None:
    used = [Bucket(60.0 * i, 100 * i, 100 * i, 100 * i, 1000, 850, 950) for i in range(10)]
    history = report({Name("c", "1", "/a"): used, Name("c", "1", "/b"): used})
    own = settings(
        factor__source="local", static__storage__soft="850", static__storage__hard="950",
        static__storage__overrides="/b soft=300 hard=500",
    )  # fmt: skip
    volumes = {volume.name.volume: volume for volume in play(history, plan(own)).volumes}
    assert (volumes["/a"].points[0].soft, volumes["/b"].points[0].soft) == (850, 300)
    assert volumes["/b"].new.throttle_s > 0
    assert volumes["/a"].then.lowest == volumes["/b"].then.lowest


def test_a_pause_lasts_until_so_much_is_free_as_pause_release_says() -> None:
    used = [*range(0, 1000, 100), 900, 850, 800, 750, 700, 650, 600]
    buckets = [Bucket(60.0 * i, each, each, each, 1000, 500, 900) for i, each in enumerate(used)]
    limits = {"static__storage__soft": "500", "static__storage__hard": "900"}
    paused = [
        play(
            report({Name("c", "1", "/a"): buckets}),
            plan(settings(factor__source="local", pause__resume__free_share=release, **limits)),
        ).factors[0].new.pause_s
        for release in ("0", "0.5")
    ]  # fmt: skip
    assert paused[1] - paused[0] == pytest.approx(3 * 60, abs=2)  # to 850 bytes or to 700, a minute for each 50


NAME = Name("c", "1", "/data")
USED = st.lists(st.integers(0, 1000), min_size=2, max_size=40)
LEVELS = st.tuples(st.integers(1, 900), st.integers(0, 100)).map(lambda each: (each[0], each[0] + each[1]))


def history(used: list[int], levels: tuple[int, int]) -> dict[Name, list[Bucket]]:
    return {NAME: [Bucket(60.0 * i, each, each, each, 1000, *levels) for i, each in enumerate(used)]}


@options(max_examples=20, deadline=None)
@given(USED, LEVELS, st.integers(0, 200))
def test_higher_limits_never_give_a_lower_factor(used: list[int], levels: tuple[int, int], more: int) -> None:
    own = settings(factor__source="local", pause__resume__free_share="0")
    higher = levels[0] + more, levels[1] + more
    low, high = (play(report(history(used, each)), plan(own)) for each in (levels, higher))
    assert high.factors[0].then.lowest >= low.factors[0].then.lowest - 0.01  # the host takes steps of 0.01
    assert high.volumes[0].then.pause_s <= low.volumes[0].then.pause_s


@options(max_examples=20, deadline=None)
@given(USED, LEVELS)
def test_without_limits_the_factor_is_1_and_no_volume_emptier(used: list[int], levels: tuple[int, int]) -> None:
    found = play(report(history(used, levels)), plan(settings(factor__source="local")))
    assert [point.new for point in found.factors[0].points] == [1.0] * len(found.factors[0].points)
    assert all(point.new >= point.then for point in found.volumes[0].points)


@options(max_examples=20, deadline=None)
@given(USED, LEVELS)
def test_the_limits_of_then_give_what_was_recorded(used: list[int], levels: tuple[int, int]) -> None:
    soft, hard = levels
    own = settings(factor__source="local", static__storage__soft=str(soft), static__storage__hard=str(hard))
    found = play(report(history(used, levels)), plan(own))
    assert found.factors[0].then == found.factors[0].new
    assert [point.new for point in found.volumes[0].points] == used


def scene(policy: str, soft: int, hard: int) -> ClusterScene:
    low, high = (Limit(LimitType.CONSUMED_BYTES, size * MB) for size in (soft, hard))
    base = runs.two_brokers(policy, 600)
    return replace(base, disks=tuple(replace(disk, soft=low, hard=high) for disk in base.disks))


@pytest.mark.parametrize(
    ("then", "new"),
    [
        (("limits", 400, 500), ("limits", 420, 600)),
        (("limits", 400, 500), ("limits", 390, 450)),
        (("limits", 400, 500), ("setpoint", 400, 500)),
        (("limits", 600, 900), ("limits", 400, 500)),
    ],
)
def test_it_comes_near_to_what_the_simulator_does(then: tuple[str, int, int], new: tuple[str, int, int]) -> None:
    before, direct = runs.recorded(scene(*then)), runs.recorded(scene(*new))
    _, soft, hard = new
    limits = {"static.storage.soft": str(soft * MB), "static.storage.hard": str(hard * MB)}
    own = settings_of(tuple({**dict(scene(*new).properties), **limits}.items()))
    found = play(before.history, plan(own, settings_of(scene(*then).properties)))
    volume = next(volume for volume in found.volumes if volume.name.broker == "1")
    real = [(bucket.at, bucket.last) for bucket in direct.history.curves[0].buckets]
    away = [abs(p.new - runs.at(real, p.at, 1)) for p in volume.points if p.at >= real[0][0]]
    assert fmean(away) <= 8 * MB
    points = found.factors[0].points
    errors = [abs(runs.at(points, at, 2) - factor) for at, factor in direct.factors["2"] if at >= points[0].at]
    assert fmean(errors) <= 0.06
