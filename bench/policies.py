"""Compares the policies over hours, in many scenes of one disk, with the host of ``quotahost replay``."""

import math
import random
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from bench.markdown import table
from harness.policy_scenes import BAND, HOUR, Changes, Course, Disk, deviation, play

MB, GB = 10**6, 10**9
SETTLED: Final = 3600  # seconds that are left out at the start
STARVED: Final = 0.001  # a mean factor for which deviations mean nothing
POLICIES: Final = ("limits", "setpoint")


@dataclass(frozen=True)
class Scene:
    """A disk, and how long it is watched."""

    name: str
    disk: Disk
    hours: int = 4
    looked: str = "1s"


def wave(rate: float, hours: int = 4) -> Changes:
    """Returns a demand that rises and falls by a fifth."""
    return tuple((at, rate * (1 + 0.2 * math.sin(2 * math.pi * at / 97))) for at in range(0, hours * HOUR, 2))


def turns(first: float, second: float, seconds: int) -> Changes:
    """Returns two demands in turn."""
    return tuple((at, (first, second)[number % 2]) for number, at in enumerate(range(0, 4 * HOUR, seconds)))


def uneven(rate: float, every: float) -> Changes:
    """Returns lumps of one size, with distances of 0.3 to 1.7 times the period."""
    dice, due, lumps = random.Random(1), every, list[tuple[int, float]]()
    while due < 4 * HOUR:
        lumps.append((round(due), rate * every))
        due += every * dice.uniform(0.3, 1.7)
    return tuple(lumps)


def lumps(rate: float, every: int, changes: Changes, band: int = BAND) -> Disk:
    """Returns a disk from which so many bytes/s are deleted in lumps, and whose producers have this demand."""
    return Disk(changes=changes, drain=rate, every=every, band=band)


_WAVE: Final = wave(100 * MB)


SCENES: Final = (
    Scene("lumps of 1 % of the band, 5 x overload", lumps(20 * MB, 6, _WAVE)),
    Scene("lumps of 15 %, 5 x", lumps(20 * MB, 75, _WAVE)),
    Scene("lumps of 60 %, 5 x", lumps(20 * MB, 300, _WAVE)),
    Scene("the same, looked at every 30 s", lumps(20 * MB, 300, _WAVE), looked="30s"),
    Scene("lumps of 60 % every 30 min, 5 x", lumps(20 * MB, 1800, wave(100 * MB, 12), band=60 * GB), 12),
    Scene("lumps of 60 %, irregular, 5 x", Disk(changes=_WAVE, cleanups=uneven(20 * MB, 300))),
    Scene("lumps of 30 %, 1.25 x", lumps(80 * MB, 37, _WAVE)),
    Scene("lumps of 5 %, 20 x", lumps(10 * MB, 50, wave(200 * MB))),
    Scene("lumps of 150 %, 2 x", lumps(50 * MB, 300, _WAVE)),
    Scene("lumps of 12 %, demand 2 x or 6 x, in turn for 30 min", lumps(20 * MB, 60, turns(120 * MB, 40 * MB, 1800))),
    Scene("lumps of 12 %, demand 10 x or nothing, in turn for a minute", lumps(20 * MB, 60, turns(0, 200 * MB, 60))),
    Scene("data kept for 30 s, as much at full quota as the band", Disk(4 * MB, band=120 * MB, kept=30)),
    Scene("nothing deleted", Disk(changes=_WAVE)),
    Scene("0.7 of the way, and nobody writes", Disk(place=0.7)),
)


def run(scene: Scene, policy: str) -> Course:
    """Runs one policy in one scene."""
    return play(policy, scene.hours, scene.disk, properties={"volumes.period": scene.looked})


def main() -> str:
    """Runs all policies in all scenes; returns the Markdown table."""
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
