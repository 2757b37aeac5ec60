"""Plays the demo's Spark part, act by act.

Each act does something to the brokers, the disk or the pipeline, waits for the state that must follow, and says in a
sentence what happened. Samples of all brokers are taken all the while; ``table`` and ``picture`` show them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from demo.spark.cluster import RECORD_SOURCE, SNAPSHOT_SOURCE, Sample, Setup

POLL: Final = 0.5  # seconds between two samples
ACT_TIMEOUT: Final = 60.0  # seconds for one act
SPARK_TIMEOUT: Final = 240.0  # seconds for Spark's first record on a busy machine
# Spark has warmed up when in so many samples no record is older than so many seconds.
STEADY_SAMPLES: Final = 8
FRESH_AGE: Final = 4.0
WATCH_TIME: Final = 3.0  # seconds to watch that nothing changes


@dataclass(frozen=True)
class Act:
    """What should happen, whether it did, and what happened. ``passed`` is None if the act was not played."""

    title: str
    passed: bool | None
    outcome: str


@dataclass
class Recording:
    """All samples, the moments to mark in the picture (seconds since the start, by label), and the acts."""

    samples: list[Sample] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)


Show = Callable[[Setup, Recording, str], None]


def play(setup: Setup, show: Show) -> Recording:
    """Plays the acts until one fails; calls ``show`` after each sample with a caption."""
    return _Runner(setup, show).run()


class _Runner:
    def __init__(self, setup: Setup, show: Show) -> None:
        self._setup, self._show = setup, show
        self.recording = Recording()
        self._records_at_pause = 0  # how many records had been appended when all had stopped
        self._samples_before_pause = 0  # how many samples were taken until then

    def run(self) -> Recording:
        acts = {
            "Spark starts: all three brokers read its record": self._start_spark,
            "a disk fills beyond its soft limit: all three are slowed alike": self._fill_to_soft,
            "the disk reaches hard: all three are stopped": self._fill_to_hard,
            "Spark is killed (kill -9): each broker reads all snapshots itself": self._kill_spark,
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
            "Spark starts; until its first record, each broker reads the snapshots of all brokers",
            lambda sample: sample.all_are("OPEN") and self._steady(),
            self._setup.driver.launch,
            timeout=SPARK_TIMEOUT,
        )
        if seconds is None:
            return False, self._why_not(SPARK_TIMEOUT)
        self._watch_for(
            WATCH_TIME, "Spark publishes one small record about the whole cluster, and all three brokers read it"
        )
        return True, f"{seconds:.0f} s after its start; since then every record came in time"

    def _fill_to_soft(self) -> tuple[bool, str]:
        caption = "the disk of broker 3 fills; brokers 1 and 2 have space, but the record shows the disk of broker 3"
        seconds = self._watch_until(caption, lambda sample: sample.all_are("THROTTLE"), self._setup.disk.fill)
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        factors = [f"{broker_sample.factor:.2f}" for broker_sample in self._newest.brokers.values()]
        self._watch_for(
            WATCH_TIME, "between soft and hard limit: the fuller the disk of broker 3, the slower all three"
        )
        return True, f"THROTTLE on all, factors {', '.join(factors)} in the first sample"

    def _fill_to_hard(self) -> tuple[bool, str]:
        caption = "the disk comes close to its hard limit: producers become slower and slower"
        seconds = self._watch_until(caption, lambda sample: sample.all_are("PAUSE"), self._setup.disk.on_throttle)
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        by_record = self._newest.all_use(RECORD_SOURCE)
        self._setup.disk.on_pause()
        caption = "the disk is at its hard limit: the fence turns all producers back"
        self._watch_for(2 * POLL, caption)  # requests that were under way may still be appended
        self._records_at_pause = self._setup.records()
        self._samples_before_pause = len(self.recording.samples) - 1
        self._watch_for(WATCH_TIME, caption)
        return by_record and self._nobody_passed(), f"PAUSE on all, {self._appended()} in {WATCH_TIME:.0f} s"

    def _kill_spark(self) -> tuple[bool, str]:
        seconds = self._watch_until(
            "Spark was killed; its last record grows old, and until it is too old all producers stay stopped",
            lambda sample: sample.all_use(SNAPSHOT_SOURCE),
            self._setup.driver.kill,
            mark="kill -9",
        )
        if seconds is None:
            return False, self._why_not(ACT_TIMEOUT)
        self._watch_for(
            WATCH_TIME, "without Spark: each broker reads the snapshots of all brokers and comes to the same factor"
        )
        return self._nobody_passed(), f"all did so {seconds:.1f} s later; {self._appended()}"

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
            WATCH_TIME, "brokers read its record again; the disk is still full, so no producer gets through"
        )
        return self._nobody_passed(), f"{seconds:.0f} s after its start; {self._appended()} since the stop"

    def _free_space(self) -> tuple[bool, str]:
        caption = "the disk's space is freed"
        opened = self._watch_until(caption, lambda sample: sample.all_are("OPEN"), self._setup.disk.free, mark="freed")
        if opened is None:
            return False, self._why_not(ACT_TIMEOUT)
        freed, sent = (self.recording.marks["freed"], {n: load.meter.bytes for n, load in self._setup.loads.items()})
        on = self._watch_until(
            "all producers are let go",
            lambda _: all(load.meter.bytes > sent[n] for n, load in self._setup.loads.items()),
        )
        after = self._newest.at - freed
        self._watch_for(2 * WATCH_TIME, "all three producers write as before")
        return on is not None, f"OPEN on all after {opened:.1f} s; all three produce after {after:.1f} s"

    # ---- samples ----

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
        """Calls ``first``, then takes samples until the condition is reached.

        ``mark`` and ``done`` label the begin and the end in the picture.

        Returns:
            How many seconds it took; None if it took longer than timeout, or Spark ended.
        """
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
        """Whether records reach all brokers in time. Spark's first batches are slow, until its JVM is warm."""
        samples = self.recording.samples[-STEADY_SAMPLES:]
        ages = [broker_sample.age for sample in samples for broker_sample in sample.brokers.values()]
        quick = all(age is not None and age < FRESH_AGE for age in ages)
        return len(samples) == STEADY_SAMPLES and quick and all(sample.all_use(RECORD_SOURCE) for sample in samples)

    def _watch_for(self, seconds: float, caption: str) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(POLL)
            self._take_sample(caption)

    def _take_sample(self, caption: str) -> None:
        self.recording.samples.append(self._setup.sample())
        self._show(self._setup, self.recording, caption)

    # ---- checks ----

    def _nobody_passed(self) -> bool:
        """Whether no producer got through since the stop, neither in a sample nor between two samples."""
        samples = self.recording.samples[self._samples_before_pause :]
        shut = all(broker_sample.factor == 0.0 for sample in samples for broker_sample in sample.brokers.values())
        changes = [
            {n: broker_sample.transitions for n, broker_sample in sample.brokers.items()}
            for sample in (samples[0], samples[-1])
        ]
        return shut and changes[0] == changes[1] and self._setup.records() == self._records_at_pause

    def _appended(self) -> str:
        records = self._setup.records() - self._records_at_pause
        return "0 bytes appended" if records == 0 else f"{records} records appended"

    def _spark_ended(self) -> bool:
        """Whether Spark ended by itself, which it should not."""
        return self._setup.driver.exit_code is not None

    def _why_not(self, timeout: float) -> str:
        what = "Spark ended by itself" if self._spark_ended() else f"it did not happen within {timeout:.0f} s"
        lines = self._setup.driver.log_text().strip().splitlines()
        return f"{what}; its last line: {lines[-1] if lines else 'none'}"
