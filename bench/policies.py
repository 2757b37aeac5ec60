"""Compares the policies over hours, in many scenes of one disk, in the model of ``quotahost simulate disk``."""

import math
import random
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from bench.markdown import table
from harness.policy_scenes import HOUR, SECOND, Changes, Course, deviation, disk, play, producers
from quotahost.cli.lab.traffic import DiskPlan

MB, GB = 10**6, 10**9
SETTLED: Final = 3600  # seconds that are left out at the start
STARVED: Final = 0.001  # a mean factor from which deviations tell nothing
POLICIES: Final = ("limits", "setpoint")


@dataclass(frozen=True)
class Scene:
    """A disk, what its producers want (bytes/s) and how that changes, and for how long."""

    name: str
    demand: float
    disk: DiskPlan
    changes: Changes = ()
    hours: float = 4
    looked: str = "1s"


def wave(rate: float, hours: float = 4) -> dict[str, Any]:
    """A demand that goes up and down by a fifth."""
    every = 2 * SECOND
    waves = (
        (at, rate * (1 + 0.2 * math.sin(2 * math.pi * at / SECOND / 97))) for at in range(0, int(hours * HOUR), every)
    )
    return {"demand": rate, "changes": tuple(waves), "hours": hours}


def turns(first: float, second: float, seconds: int) -> dict[str, Any]:
    """Two demands in turn."""
    ends = range(seconds * SECOND, 4 * HOUR, seconds * SECOND)
    return {"demand": first, "changes": tuple((at, (second, first)[number % 2]) for number, at in enumerate(ends))}


def uneven(rate: float, every: float) -> tuple[tuple[int, int], ...]:
    """Lumps of one size, from 0.3 to 1.7 times the period apart."""
    dice, due, lumps = random.Random(1), every, list[tuple[int, int]]()
    while due < 4 * HOUR / SECOND:
        lumps.append((round(due * SECOND), int(rate * every)))
        due += every * dice.uniform(0.3, 1.7)
    return tuple(lumps)


SCENES: Final = (
    Scene("lumps of 1 % of the band, 5 x overload", disk=disk(20 * MB, 6), **wave(100 * MB)),
    Scene("lumps of 15 %, 5 x", disk=disk(20 * MB, 75), **wave(100 * MB)),
    Scene("lumps of 60 %, 5 x", disk=disk(20 * MB, 300), **wave(100 * MB)),
    Scene("the same, looked at every 30 s", disk=disk(20 * MB, 300), looked="30s", **wave(100 * MB)),
    Scene("lumps of 60 % every 30 min, 5 x", disk=disk(20 * MB, 1800, band=60 * GB), **wave(100 * MB, 12)),
    Scene("lumps of 60 %, irregular, 5 x", disk=disk(cleanups=uneven(20 * MB, 300)), **wave(100 * MB)),
    Scene("lumps of 30 %, 1.25 x", disk=disk(80 * MB, 37), **wave(100 * MB)),
    Scene("lumps of 5 %, 20 x", disk=disk(10 * MB, 50), **wave(200 * MB)),
    Scene("lumps of 150 %, 2 x", disk=disk(50 * MB, 300), **wave(100 * MB)),
    Scene(
        "lumps of 12 %, demand 2 x or 6 x, in turn for 30 min", disk=disk(20 * MB, 60), **turns(120 * MB, 40 * MB, 1800)
    ),
    Scene(
        "lumps of 12 %, demand 10 x or nothing, in turn for a minute", disk=disk(20 * MB, 60), **turns(0, 200 * MB, 60)
    ),
    Scene("data kept for 30 s, as much at full quota as the band", 4 * MB, disk(band=120 * MB, kept=30 * SECOND)),
    Scene("nothing deleted", disk=disk(), **wave(100 * MB)),
    Scene("0.7 of the way, and nobody writes", 0, disk(place=0.7)),
)


def run(scene: Scene, policy: str) -> Course:
    """One policy in one scene."""
    clients, looked = [producers(scene.demand, changes=scene.changes)], {"volumes.period": scene.looked}
    return play(policy, scene.hours, [scene.disk], clients, properties=looked)


def main() -> str:
    """All policies in all scenes; returns the Markdown table."""
    figures = [f"{name}: {figure}" for figure in ("deviation", "place, mean and most") for name in POLICIES]
    return table(["scene", "mean factor", *figures], [_row(scene) for scene in SCENES])


def _row(scene: Scene) -> list[str]:
    courses = [run(scene, policy) for policy in POLICIES]
    factors = [course.factors[SETTLED:] for course in courses]
    places = [course.places[0][SETTLED:] for course in courses]
    return [
        scene.name,
        ", ".join(f"{fmean(course):.2f}" for course in factors),
        *(f"{deviation(course):.0%}" if fmean(course) > STARVED else "-" for course in factors),
        *(f"{fmean(course):.2f}, {max(course):.2f}" for course in places),
    ]
