"""Plays seeds, one or many, and says what was wrong in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from os import cpu_count
from typing import Final

from quotahost.simulation.checks import Violation
from quotahost.simulation.scenes import scene
from quotahost.simulation.world import World

_CHUNK: Final = 50  # seeds that a process takes at once


def violations(seed: int) -> list[Violation]:
    """What was wrong in the scene of this seed, the first of each kind; nothing if all is well."""
    world = World(scene(seed))
    world.run()
    return sorted(world.checks.found.values(), key=lambda each: each.ms)


def failing(seeds: Iterable[int]) -> Iterator[str]:
    """A line for each violation in these seeds, and how to see it again. One process for each core plays them."""
    with get_context("spawn").Pool(cpu_count()) as pool:
        for line in pool.imap(_lines, seeds, _CHUNK):
            yield from line


def _lines(seed: int) -> list[str]:
    return [f"seed {seed}: {each}\n  see it again: quotahost simulate disk --seed {seed}" for each in violations(seed)]
