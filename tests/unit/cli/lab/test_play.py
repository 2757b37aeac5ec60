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
from quotahost.settings.broker import Settings
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
    found = play(run.history, plan(settings_for(scene)))
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
    paused = []
    for release in ("0", "0.5"):
        own = settings(factor__source="local", pause__resume__free_share=release, **limits)
        paused.append(play(report({NAME: buckets}), plan(own)).factors[0].new.pause_s)
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


def settings_for(scene: ClusterScene, **more: str) -> Settings:
    """The scene's settings with the limits of its disks, which it has beside them."""
    disk = scene.disks[0]
    assert disk.soft
    assert disk.hard
    limits = {"static.storage.soft": str(disk.soft.level), "static.storage.hard": str(disk.hard.level)}
    return settings_of(tuple((dict(scene.properties) | limits | more).items()))


@pytest.mark.parametrize(
    ("then", "new"),
    [
        (("limits", 400, 500), ("limits", 420, 600)),
        (("limits", 400, 500), ("limits", 390, 450)),
        (("limits", 400, 500), ("setpoint", 400, 500)),
        (("limits", 600, 900), ("limits", 400, 500)),
    ],
)
def test_it_comes_near_to_what_the_simulator_does_and_in_shadow_slows_nobody(
    then: tuple[str, int, int], new: tuple[str, int, int]
) -> None:
    before, direct = runs.recorded(scene(*then)), runs.recorded(scene(*new))
    found = play(before.history, plan(settings_for(scene(*new)), settings_of(scene(*then).properties)))
    volume = next(volume for volume in found.volumes if volume.name.broker == "1")
    real = [(bucket.at, bucket.last) for bucket in direct.history.curves[0].buckets]
    away = [abs(p.new - runs.at(real, p.at, 1)) for p in volume.points if p.at >= real[0][0]]
    assert fmean(away) <= 8 * MB
    points = found.factors[0].points
    errors = [abs(runs.at(points, at, 2) - factor) for at, factor in direct.factors["2"] if at >= points[0].at]
    assert fmean(errors) <= 0.06
    in_shadow = play(before.history, plan(settings_for(scene(*new), shadow="factor")))
    assert in_shadow.factors[0].new.lowest < 1
    assert all(point.new == point.then for volume in in_shadow.volumes for point in volume.points)
    assert any("in shadow" in note for note in in_shadow.notes)
