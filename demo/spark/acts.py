"""The demo with Spark in the loop, act by act; each waits for its condition and tells what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from demo.spark.cluster import FIRST, SECOND, Look, Scene

STEP: Final = 0.5  # seconds between two looks
LONGEST: Final = 60.0  # seconds for one act
START: Final = 240.0  # seconds for Spark's first record, on a machine that has other things to do
STEADY: Final = 8  # looks
FRESH: Final = 4.0  # seconds
QUIET: Final = 3.0  # seconds to look on while nothing may happen


@dataclass(frozen=True)
class Act:
    """What should happen, whether it did, and what was seen; ``good`` None: it was not played."""

    title: str
    good: bool | None
    told: str


@dataclass
class Tale:
    """All looks, the moments to mark (seconds since the start, by word), and the acts."""

    looks: list[Look] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)


Show = Callable[[Scene, Tale, str], None]


def play(scene: Scene, show: Show) -> Tale:
    """All acts, until one fails; ``show`` is called after each look with what is going on, in plain words."""
    return _Play(scene, show).run()


class _Play:
    def __init__(self, scene: Scene, show: Show) -> None:
        self._scene, self._show = scene, show
        self.tale = Tale()
        self._records = 0  # what the topics held when all had been stopped
        self._stopped_by = 0  # how many looks there were until then

    def run(self) -> Tale:
        acts = {
            "Spark starts: all three brokers read its record": self._begin,
            "a disk fills past soft: all three are slowed alike": self._slow,
            "it reaches hard: all three are stopped": self._stop,
            "kill -9 of Spark: each reads all snapshots itself": self._kill,
            "Spark is back: its record answers again": self._back,
            "space is freed: all three are let go": self._free,
        }
        going_on = True
        for title, act in acts.items():
            good, told = act() if going_on else (None, "not played")
            self.tale.acts.append(Act(title, good, told))
            going_on = bool(good)
        return self.tale

    # ---- the acts ----

    def _begin(self) -> tuple[bool, str]:
        took = self._until(
            "Spark starts; until its first record, each broker reads the snapshots of all",
            lambda look: look.all_are("OPEN") and self._steady(),
            self._scene.driver.launch,
            longest=START,
        )
        if took is None:
            return False, self._not_reached(START)
        self._for(QUIET, "one small record for the whole cluster, read by all three")
        return True, f"{took:.0f} s after its launch, all in time since"

    def _slow(self) -> tuple[bool, str]:
        words = "the disk of broker 3 fills; broker 1 and 2 have space, but the record tells of broker 3"
        took = self._until(words, lambda look: look.all_are("THROTTLE"), self._scene.disk.fill)
        if took is None:
            return False, self._not_reached(LONGEST)
        factors = [f"{seen.factor:.2f}" for seen in self._now.brokers.values()]
        self._for(QUIET, "between soft and hard: the fuller the disk of broker 3, the slower all three")
        return True, f"THROTTLE on all, factors {', '.join(factors)} at the first look"

    def _stop(self) -> tuple[bool, str]:
        words = "close to hard: slower and slower"
        took = self._until(words, lambda look: look.all_are("PAUSE"), self._scene.disk.slowed)
        if took is None:
            return False, self._not_reached(LONGEST)
        by_record = self._now.all_ask(FIRST)
        self._scene.disk.stopped()
        self._for(2 * STEP, "at hard: the fence turns all producers back")  # what was under way is appended
        self._records, self._stopped_by = self._scene.records(), len(self.tale.looks) - 1
        self._for(QUIET, "at hard: the fence turns all producers back")
        return by_record and self._held(), f"PAUSE on all, {self._appended()} in {QUIET:.0f} s"

    def _kill(self) -> tuple[bool, str]:
        took = self._until(
            "Spark was killed with -9; its last record grows old, and while it counts, all stay stopped",
            lambda look: look.all_ask(SECOND),
            self._scene.driver.kill,
            mark="kill -9",
        )
        if took is None:
            return False, self._not_reached(LONGEST)
        self._for(QUIET, "no Spark: each broker reads the snapshots of all, and knows the same")
        return self._held(), f"{took:.1f} s later all did; {self._appended()}"

    def _back(self) -> tuple[bool, str]:
        took = self._until(
            "Spark is started again, from its checkpoint",
            lambda look: look.all_ask(FIRST),
            self._scene.driver.launch,
            mark="started again",
            done="back",
            longest=START,
        )
        if took is None:
            return False, self._not_reached(START)
        self._for(QUIET, "its record answers again; the disk is still full, so nobody gets through")
        return self._held(), f"{took:.0f} s after its launch; {self._appended()} since the stop"

    def _free(self) -> tuple[bool, str]:
        words = "the disk's space is freed"
        opened = self._until(words, lambda look: look.all_are("OPEN"), self._scene.disk.free, mark="freed")
        if opened is None:
            return False, self._not_reached(LONGEST)
        freed, sent = self.tale.marks["freed"], {n: load.meter.bytes for n, load in self._scene.loads.items()}
        on = self._until(
            "all are let go",
            lambda _: all(load.meter.bytes > sent[n] for n, load in self._scene.loads.items()),
        )
        after = self._now.at - freed
        self._for(2 * QUIET, "and all three produce as before")
        return on is not None, f"OPEN on all after {opened:.1f} s, all three produce after {after:.1f} s"

    # ---- looks ----

    @property
    def _now(self) -> Look:
        return self.tale.looks[-1]

    def _until(
        self,
        words: str,
        reached: Callable[[Look], bool],
        first: Callable[[], None] = lambda: None,
        mark: str = "",
        done: str = "",
        longest: float = LONGEST,
    ) -> float | None:
        """Do what comes first, and look until it is reached; the seconds it took, None if it took too long."""
        begin = time.monotonic()
        if mark:
            self.tale.marks[mark] = begin - self._scene.began
        first()
        while time.monotonic() - begin < longest:
            self._look(words)
            if self._spark_ended():
                return None
            if reached(self._now):
                if done:
                    self.tale.marks[done] = self._now.at
                return self._now.at - (begin - self._scene.began)
            time.sleep(STEP)
        return None

    def _steady(self) -> bool:
        """Whether records come to all brokers in time; Spark's first batches are slow, until its JVM is warm."""
        looks = self.tale.looks[-STEADY:]
        ages = [seen.age for look in looks for seen in look.brokers.values()]
        quick = all(age is not None and age < FRESH for age in ages)
        return len(looks) == STEADY and quick and all(look.all_ask(FIRST) for look in looks)

    def _for(self, seconds: float, words: str) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(STEP)
            self._look(words)

    def _look(self, words: str) -> None:
        self.tale.looks.append(self._scene.look())
        self._show(self._scene, self.tale, words)

    # ---- what held ----

    def _held(self) -> bool:
        """Whether nobody was let through since the stop, at no look and not between two either."""
        looks = self.tale.looks[self._stopped_by :]
        shut = all(seen.factor == 0.0 for look in looks for seen in look.brokers.values())
        changes = [
            {n: seen.transitions for n, seen in look.brokers.items()} for look in (looks[0], looks[-1])
        ]
        return shut and changes[0] == changes[1] and self._scene.records() == self._records

    def _appended(self) -> str:
        records = self._scene.records() - self._records
        return "0 bytes appended" if records == 0 else f"{records} records appended"

    def _spark_ended(self) -> bool:
        """Whether it ended by itself, which it should not."""
        return self._scene.driver.exit_code is not None

    def _not_reached(self, longest: float) -> str:
        what = "Spark ended by itself" if self._spark_ended() else f"not within {longest:.0f} s"
        lines = self._scene.driver.log_text().strip().splitlines()
        return f"{what}; its last line: {lines[-1] if lines else 'none'}"
