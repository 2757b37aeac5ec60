"""Compares the policies in a model of a disk, over hours, in many scenes, and values of ``pause.resume.free-share``."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from bench.markdown import table
from harness.disk_model import Cluster, Demand, Disk, Drain, deviation, kept_for, lumps, nothing
from quotahost.api import Context
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.broker.plugins.policies.setpoint import Setpoint
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker

MB, GB = 10**6, 10**9
SETTLED: Final = 3600  # steps that are left out at the start
STARVED: Final = 0.001  # a mean factor from which deviations tell nothing
_LOG: Final = logging.getLogger("bench.policies")


@dataclass(frozen=True)
class Scene:
    """A disk and what happens to it; bytes, and bytes/s."""

    name: str
    demand: Demand
    drain: Callable[[], Drain]
    band: float = 10 * GB
    hours: float = 4
    renewed: float = 1.0
    place: float = 0.1  # where on the way from soft to hard it begins


def wave(rate: float) -> Demand:
    """A demand that goes up and down by a fifth."""
    return lambda now: rate * (1 + 0.2 * math.sin(2 * math.pi * now / 97))


def uneven(rate: float, every: float) -> Drain:
    """Lumps of one size, from 0.3 to 1.7 times the period apart."""
    dice, due = random.Random(1), [every]

    def drain(now: float, _: float) -> float:
        if now < due[0]:
            return 0.0
        due[0] += every * dice.uniform(0.3, 1.7)
        return rate * every

    return drain


SCENES: Final = (
    Scene("lumps of 1 % of the band, 5 x overload", wave(100 * MB), lambda: lumps(20 * MB, 6)),
    Scene("lumps of 15 %, 5 x", wave(100 * MB), lambda: lumps(20 * MB, 75)),
    Scene("lumps of 60 %, 5 x", wave(100 * MB), lambda: lumps(20 * MB, 300)),
    Scene("the same, snapshots every 30 s", wave(100 * MB), lambda: lumps(20 * MB, 300), renewed=30),
    Scene("lumps of 60 % every 30 min, 5 x", wave(100 * MB), lambda: lumps(20 * MB, 1800), 60 * GB, 12),
    Scene("lumps of 60 %, irregular, 5 x", wave(100 * MB), lambda: uneven(20 * MB, 300)),
    Scene("lumps of 30 %, 1.25 x", wave(100 * MB), lambda: lumps(80 * MB, 37)),
    Scene("lumps of 5 %, 20 x", wave(200 * MB), lambda: lumps(10 * MB, 50)),
    Scene("lumps of 150 %, 2 x", wave(100 * MB), lambda: lumps(50 * MB, 300)),
    Scene(
        "lumps of 12 %, demand 2 x or 6 x, in turn for 30 min",
        lambda now: 40 * MB if now // 1800 % 2 else 120 * MB,
        lambda: lumps(20 * MB, 60),
    ),
    Scene(
        "lumps of 12 %, demand 10 x or nothing, in turn for a minute",
        lambda now: 200 * MB if now // 60 % 2 else 0.0,
        lambda: lumps(20 * MB, 60),
    ),
    Scene("data kept for 30 s, as much at full quota as the band", lambda now: 4 * MB, lambda: kept_for(30), 120 * MB),
    Scene("nothing deleted", wave(100 * MB), lambda: nothing),
    Scene("0.7 of the way, and nobody writes", lambda now: 0.0, lambda: nothing, place=0.7),
)


def limits(_: Cluster) -> Limits:
    """The ramp."""
    return Limits(_context("limits", None))


def setpoint(cluster: Cluster) -> Setpoint:
    """With its defaults."""
    return Setpoint(_context("setpoint", Setpoint.Section()), cluster.clock)


def _context(name: str, section: Any) -> Context[Any]:
    node = FakeBroker()
    return Context(name, section, Settings.from_properties({}), 1, _LOG, broker=node, metrics=node)


POLICIES: Final = {"limits": limits, "setpoint": setpoint}


def run(scene: Scene, make: Callable[[Cluster], Any]) -> Cluster:
    """One policy in one scene."""
    cluster = Cluster(Disk(scene.demand, scene.drain(), scene.band, scene.place, scene.renewed))
    return cluster.run(make(cluster), scene.hours)


def main() -> str:
    """All policies in all scenes; returns the Markdown table."""
    each = [f"{name}: {figure}" for figure in ("deviation", "place, mean and most") for name in POLICIES]
    return table(["scene", "mean factor", *each], [_row(scene) for scene in SCENES])


def _row(scene: Scene) -> list[str]:
    clusters = [run(scene, make) for make in POLICIES.values()]
    factors = [cluster.factors[SETTLED:] for cluster in clusters]
    places = [cluster.disks[0].places[SETTLED:] for cluster in clusters]
    return [
        scene.name,
        ", ".join(f"{fmean(each):.2f}" for each in factors),
        *(f"{deviation(each):.0%}" if fmean(each) > STARVED else "-" for each in factors),
        *(f"{fmean(each):.2f}, {max(each):.2f}" for each in places),
    ]
