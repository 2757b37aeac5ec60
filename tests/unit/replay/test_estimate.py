"""With other settings: a replay of one run comes near to what the simulator does with them from the start."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from quotahost.model import Limit, LimitType
from quotahost.replay.play import play
from quotahost.simulation.scene import Scene
from quotahost.simulation.world import settings_of
from tests.unit.replay import runs

MB = 10**6


def scene(policy: str, soft: int, hard: int) -> Scene:
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
    found = play(before.history, runs.plan(own, settings_of(scene(*then).properties)))
    course = next(each for each in found.volumes if each.name.broker == "1")
    real = [(bucket.at, bucket.last) for bucket in direct.history.curves[0].buckets]
    away = [abs(p.new - runs.at(real, p.at, 1)) for p in course.points if p.at >= real[0][0]]
    assert fmean(away) <= 8 * MB
    begin = found.where[0].factors[0].at
    errors = [abs(runs.at(found.where[0].factors, at, 2) - factor) for at, factor in direct.factors["2"] if at >= begin]
    assert fmean(errors) <= 0.06
