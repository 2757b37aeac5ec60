"""Computes what an eager client gets while a factor falls and after a PAUSE, for two ways in which limits may follow.

No broker runs: the client's rate is Kafka's (``SampledRate``), to the millisecond, and the tap is the broker's own. The
other way is the ramp: limits at once, but no step mutes for longer than ``max.mute``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from bench.markdown import table
from quotahost.throttling import SampledRate, Tap, quota_window

QUOTA: Final = 4e6  # bytes/s
LINE: Final = 50e6  # bytes/s of the network
FLOOR: Final = 35e3  # bytes/s (floor.bytes)
MAX_MUTE: Final = 30.0  # seconds
BEAT: Final = 200  # ms between two looks at the factor, as in the broker
RETRY: Final = 1000  # ms between two requests that the fence turns back
PHASES: Final = range(0, 1000, 110)  # ms at which the client may begin, and so how soon it is back after a PAUSE
FALLS: Final = 30_000  # ms: until then the factor is 1
END: Final = 120_000  # ms
WINDOWS: Final = (2, 5, 11)
BATCHES: Final = (64e3, 1e6)  # bytes


class Way(Protocol):
    """How limits follow a factor."""

    value: float

    def step(self, factor: float, held: bool, now_ms: int) -> bool:
        """As ``Tap.step``."""


class Ramp:
    """Upwards at once, downwards at once but in steps of which none mutes for longer than ``max.mute``.

    A PAUSE that the fence holds leaves the limits as they were.
    """

    def __init__(self, windows: int) -> None:
        """Takes ``quota.window.num``."""
        self.value = 1.0
        self._window = quota_window({"quota.window.num": str(windows)})
        self._past: list[tuple[float, int]] = []

    def step(self, factor: float, held: bool, now_ms: int) -> bool:
        """As ``Tap.step``."""
        self._past = [each for each in self._past if now_ms - each[1] < self._window * 1000]
        highest = max([self.value, *(value for value, _ in self._past)])
        lowest = highest * self._window / (self._window + MAX_MUTE)
        target = self.value if held else factor
        self._past.append((self.value, now_ms))
        self.value = max(target, min(self.value, lowest))
        return True


@dataclass(frozen=True)
class Scene:
    """A factor over time: 0..1 by ms. ``held`` is while the fence turns requests back."""

    factor: Callable[[int], float]
    held: range = range(0)


FALLING: Final = Scene(lambda ms: max(0.3, 1 - 0.7 * max(0, ms - FALLS) / 60_000))
FALLEN: Final = Scene(lambda ms: 1.0 if ms < FALLS else 0.3)
PAUSED: Final = Scene(lambda ms: 1.0, range(FALLS, FALLS + 20_000))


def sent(scene: Scene, way: Way, windows: int, batch: float, phase: int) -> list[int]:
    """When the batches of an eager client were appended, in ms; it begins at ``phase``."""
    rate, now, beat, appended = SampledRate(windows, 1000), phase, 0, list[int]()
    while now < END:
        for at in range(beat, now + 1, BEAT):
            held = at in scene.held
            way.step(0.0 if held else scene.factor(at), held, at)
            beat = at + BEAT
        if now in scene.held:
            now += RETRY - (now - phase) % RETRY
            continue
        now += max(1, round(batch / LINE * 1000))
        rate.record(batch, now)
        appended.append(now)
        now += rate.throttle_ms(max(FLOOR, QUOTA * way.value), now)
    return appended


def share(times: list[int], batch: float, begin: int, length: int, scene: Scene) -> float:
    """The bytes of a time, divided by the quota times the factor."""
    wanted = sum(scene.factor(at) for at in range(begin, begin + length, BEAT)) * QUOTA * BEAT / 1000
    return batch * sum(begin <= at < begin + length for at in times) / wanted


def silence(times: list[int], begin: int, end: int = END) -> float:
    """The longest time in seconds without a batch that began between two moments."""
    return max((after - before) / 1000 for before, after in pairwise([*times, END]) if begin <= before < end)


def _row(windows: int, batch: float, name: str, way: Callable[[], Way]) -> list[str]:
    """The cells of one row: ranges over PHASES, or the worst."""
    falling, fallen, paused = (
        [sent(scene, way(), windows, batch, phase) for phase in PHASES] for scene in (FALLING, FALLEN, PAUSED)
    )
    means = [share(times, batch, begin, 5000, FALLING) for times in falling for begin in range(FALLS, END - 5000, 2500)]
    firsts = [next(at for at in times if at >= PAUSED.held.stop) for times in paused]
    after = list(zip(paused, firsts, strict=True))
    return [
        str(windows),
        f"{batch / 1e3:,.0f} kB",
        name,
        _range(means),
        f"{max(silence(times, FALLS) for times in falling):.1f}",
        _range([share(times, batch, FALLS, 20_000, FALLEN) for times in fallen]),
        f"{max(silence(times, FALLS) for times in fallen):.1f}",
        _range([share(times, batch, first, 1000, PAUSED) for times, first in after]),
        _range([share(times, batch, first, 5000, PAUSED) for times, first in after]),
        f"{max(silence(times, first, first + 15_000) for times, first in after):.1f}",
    ]


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} - {max(values):.2f}"


def main() -> str:
    """A Markdown table."""
    heads = ["`quota.window.num`", "batches", "limits", "1 to 0.3 in 60 s: means of 5 s / wanted", "longest silence, s"]
    heads += ["1 to 0.3 at once: 20 s / wanted", "longest silence, s"]
    heads += ["after a PAUSE of 20 s: first second / quota", "first 5 s / quota", "longest silence, s"]
    rows = []
    for windows in WINDOWS:
        ways: dict[str, Callable[[], Way]] = {
            "ramp": lambda n=windows: Ramp(n),  # type: ignore[misc]
            "tap": lambda n=windows: Tap(n),  # type: ignore[misc,dict-item]
        }
        rows += [_row(windows, batch, name, way) for batch in BATCHES for name, way in ways.items()]
    return table(heads, rows)
