"""The demo with Spark in the loop, act by act; each waits for its condition and tells what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from demo.spark.cluster import RECORD_SOURCE, SNAPSHOT_SOURCE, Sample, Setup

POLL: Final = 0.5  # seconds between two looks
ACT_TIMEOUT: Final = 60.0  # seconds for one act
SPARK_TIMEOUT: Final = 240.0  # seconds for Spark's first record, on a machine that has other things to do
STEADY_SAMPLES: Final = 8  # looks
FRESH_AGE: Final = 4.0  # seconds
WATCH_TIME: Final = 3.0  # seconds to look on while nothing may happen


@dataclass(frozen=True)
class Act:
    """What should happen, whether it did, and what was seen; ``good`` None: it was not played."""

    title: str
    passed: bool | None
    outcome: str


@dataclass
class Recording:
    """All looks, the moments to mark (seconds since the start, by word), and the acts."""

    samples: list[Sample] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)


Show = Callable[[Setup, Recording, str], None]


def play(setup: Setup, show: Show) -> Recording:
    """All acts, until one fails; ``show`` is called after each look with what is going on, in plain words."""
    return _Runner(setup, show).run()


class _Runner:
    def __init__(self, setup: Setup, show: Show) -> None:
        self._setup, self._show = setup, show
        self.recording = Recording()
        self._records_at_pause = 0  # what the topics held when all had been stopped
        self._samples_before_pause = 0  # how many looks there were until then

    def run(self) -> Recording:
        acts = {
            "Spark starts: all three brokers read its record": self._start_spark,
            "a disk fills past soft: all three are slowed alike": self._fill_to_soft,
            "it reaches hard: all three are stopped": self._fill_to_hard,
            "kill -9 of Spark: each reads all snapshots itself": self._kill_spark,
            "Spark is back: its record answers again": self._restart_spark,
            "space is freed: all three are let go": self._free_space,
        }
        passed_so_far = True
        for title, act in acts.items():
            passed, outcome = act() if passed_so_far else (None, "not played")
            self.recording.acts.append(Act(title, passed, outcome))
            passed_so_far = bool(passed)
        return self.recording

    # ---- the acts ----

    def _start_spark(self) -> tuple[bool, str]:
        seconds = self._watch_until(
            "Spark starts; until its first record, each broker reads the snapshots of all",
            lambda sample: sample.all_are("OPEN") and self._steady(),
            self._setup.driver.launch,
            timeout=SPARK_TIMEOUT,
        )
        if seconds is None:
            return False, self._why_not(SPARK_TIMEOUT)
        self._watch_for(WATCH_TIME, "one small record for the whole cluster, read by all three")
        return True, f"{seconds:.0f} s after its launch, all in time since"

    def _fill_to_soft(self) -> tuple[bool, str]:
        caption = "the disk of broker 3 fills; broker 1 and 2 have space, but the record tells of broker 3"
        seconds = self._watch_until(caption, lambda sample: sample.all_are("THROTTLE"), self._setup.disk.fill)
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        factors = [f"{broker_sample.factor:.2f}" for broker_sample in self._newest.brokers.values()]
        self._watch_for(
            WATCH_TIME, "between soft and hard: the fuller the disk of broker 3, the slower all three"
        )
        return True, f"THROTTLE on all, factors {', '.join(factors)} at the first look"

    def _fill_to_hard(self) -> tuple[bool, str]:
        caption = "close to hard: slower and slower"
        seconds = self._watch_until(
            caption, lambda sample: sample.all_are("PAUSE"), self._setup.disk.on_throttle
        )
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        by_record = self._newest.all_use(RECORD_SOURCE)
        self._setup.disk.on_pause()
        self._watch_for(
            2 * POLL, "at hard: the fence turns all producers back"
        )  # what was under way is appended
        self._records_at_pause, self._samples_before_pause = (
            self._setup.records(),
            len(self.recording.samples) - 1,
        )
        self._watch_for(WATCH_TIME, "at hard: the fence turns all producers back")
        return by_record and self._nobody_passed(), f"PAUSE on all, {self._appended()} in {WATCH_TIME:.0f} s"

    def _kill_spark(self) -> tuple[bool, str]:
        seconds = self._watch_until(
            "Spark was killed with -9; its last record grows old, and while it counts, all stay stopped",
            lambda sample: sample.all_use(SNAPSHOT_SOURCE),
            self._setup.driver.kill,
            mark="kill -9",
        )
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        self._watch_for(WATCH_TIME, "no Spark: each broker reads the snapshots of all, and knows the same")
        return self._nobody_passed(), f"{seconds:.1f} s later all did; {self._appended()}"

    def _restart_spark(self) -> tuple[bool, str]:
        seconds = self._watch_until(
            "Spark is started again, from its checkpoint",
            lambda sample: sample.all_use(RECORD_SOURCE),
            self._setup.driver.launch,
            mark="started again",
            done="back",
            timeout=SPARK_TIMEOUT,
        )
        if seconds is None:
            return False, self._why_not(SPARK_TIMEOUT)
        self._watch_for(
            WATCH_TIME, "its record answers again; the disk is still full, so nobody gets through"
        )
        return self._nobody_passed(), f"{seconds:.0f} s after its launch; {self._appended()} since the stop"

    def _free_space(self) -> tuple[bool, str]:
        caption = "the disk's space is freed"
        opened = self._watch_until(
            caption, lambda sample: sample.all_are("OPEN"), self._setup.disk.free, mark="freed"
        )
        if opened is None:
            return False, self._why_not(ACT_TIMEOUT)
        freed, sent = (
            self.recording.marks["freed"],
            {n: load.meter.bytes for n, load in self._setup.loads.items()},
        )
        on = self._watch_until(
            "all are let go",
            lambda _: all(load.meter.bytes > sent[n] for n, load in self._setup.loads.items()),
        )
        after = self._newest.at - freed
        self._watch_for(2 * WATCH_TIME, "and all three produce as before")
        return on is not None, f"OPEN on all after {opened:.1f} s, all three produce after {after:.1f} s"

    # ---- looks ----

    @property
    def _newest(self) -> Sample:
        return self.recording.samples[-1]

    def _watch_until(
        self,
        caption: str,
        reached: Callable[[Sample], bool],
        first: Callable[[], None] = lambda: None,
        mark: str = "",
        done: str = "",
        timeout: float = ACT_TIMEOUT,
    ) -> float | None:
        """Do what comes first, and look until it is reached; the seconds it took, None if it took too long."""
        begin = time.monotonic()
        if mark:
            self.recording.marks[mark] = begin - self._setup.began
        first()
        while time.monotonic() - begin < timeout:
            self._take_sample(caption)
            if self._spark_ended():
                return None
            if reached(self._newest):
                if done:
                    self.recording.marks[done] = self._newest.at
                return self._newest.at - (begin - self._setup.began)
            time.sleep(POLL)
        return None

    def _steady(self) -> bool:
        """Whether records come to all brokers in time; Spark's first batches are slow, until its JVM is warm."""
        samples = self.recording.samples[-STEADY_SAMPLES:]
        ages = [broker_sample.age for sample in samples for broker_sample in sample.brokers.values()]
        quick = all(age is not None and age < FRESH_AGE for age in ages)
        return (
            len(samples) == STEADY_SAMPLES
            and quick
            and all(sample.all_use(RECORD_SOURCE) for sample in samples)
        )

    def _watch_for(self, seconds: float, caption: str) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(POLL)
            self._take_sample(caption)

    def _take_sample(self, caption: str) -> None:
        self.recording.samples.append(self._setup.sample())
        self._show(self._setup, self.recording, caption)

    # ---- what held ----

    def _nobody_passed(self) -> bool:
        """Whether nobody was let through since the stop, at no look and not between two either."""
        samples = self.recording.samples[self._samples_before_pause :]
        shut = all(
            broker_sample.factor == 0.0 for sample in samples for broker_sample in sample.brokers.values()
        )
        changes = [
            {n: broker_sample.transitions for n, broker_sample in sample.brokers.items()}
            for sample in (samples[0], samples[-1])
        ]
        return shut and changes[0] == changes[1] and self._setup.records() == self._records_at_pause

    def _appended(self) -> str:
        records = self._setup.records() - self._records_at_pause
        return "0 bytes appended" if records == 0 else f"{records} records appended"

    def _spark_ended(self) -> bool:
        """Whether it ended by itself, which it should not."""
        return self._setup.driver.exit_code is not None

    def _why_not(self, timeout: float) -> str:
        what = "Spark ended by itself" if self._spark_ended() else f"not within {timeout:.0f} s"
        lines = self._setup.driver.log_text().strip().splitlines()
        return f"{what}; its last line: {lines[-1] if lines else 'none'}"
