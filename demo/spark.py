"""The demo's part with Spark: three brokers, the pipeline, and a disk that fills.

Each act does something to the brokers, the disk or the pipeline, waits for the state that must follow, and says in a
sentence what happened. In the middle the pipeline is killed, and the brokers go on protecting the disk by each other's
snapshots. Samples of all brokers are taken all the while: a live table or plain lines show them, and in the end a
summary of the acts and a picture.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from matplotlib import pyplot
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.disk import STYLES
from demo.pictures import save, tidy
from demo.quotas import mega
from demo.spark_cluster import BROKER, RECORD_SOURCE, SNAPSHOT_SOURCE, BrokerSample, Sample, Setup, running_setup
from harness.plugin import ROOT
from harness.system.filesystem import own_file_system

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


BAR: Final = 20
_EVERY: Final = 10  # samples between two plain lines


def live(setup: Setup, recording: Recording, caption: str) -> Group:
    """The newest sample as a table under the caption."""
    sample = recording.samples[-1]
    table = Table()
    for column in ("broker", "state", "factor", "", "which source answers", "age of the record", "producer"):
        table.add_column(column)
    for broker, broker_sample in sample.brokers.items():
        table.add_row(
            str(broker),
            Text(f"{broker_sample.state:8}", style=STYLES[broker_sample.state]),
            f"{broker_sample.factor:.2f}",
            Text(
                "█" * round(BAR * broker_sample.factor) + "·" * (BAR - round(BAR * broker_sample.factor)),
                STYLES[broker_sample.state],
            ),
            f"{broker_sample.source:15}",
            _age(broker_sample),
            mega(broker_sample.rate),
        )
    acts = Text(f"{sample.at:.0f} s · {disk(setup)}", style="dim")
    return Group(Text(caption, style="bold"), table, acts)


def disk(setup: Setup) -> str:
    """A sentence about how full the disk of broker 3 is."""
    outcome = f"disk of broker {BROKER}: {setup.disk.used() / 1e6:,.0f} MB used"
    if setup.disk.limits is None:
        return outcome
    soft, hard = (level / 1e6 for level in setup.disk.limits)
    return f"{outcome}, soft {soft:,.0f} MB, hard {hard:,.0f} MB"


def _age(broker_sample: BrokerSample) -> str:
    return "none yet" if broker_sample.age is None else f"{broker_sample.age:4.1f} s"


class PlainOutput:
    """Prints lines on a console that is no terminal: each new caption, and a sample now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._caption = console, ""

    def __call__(self, setup: Setup, recording: Recording, caption: str) -> None:
        """Print the newest sample, if the caption is new or enough samples have passed."""
        if caption != self._caption:
            self._caption = caption
            self._console.print(caption, soft_wrap=True)
        elif len(recording.samples) % _EVERY:
            return
        sample = recording.samples[-1]
        outcome = (
            f"{n} {broker_sample.state} {broker_sample.factor:.2f} {_source_and_rate(broker_sample)}"
            for n, broker_sample in sample.brokers.items()
        )
        self._console.print(f"  {sample.at:3.0f} s  {' | '.join(outcome)}; {disk(setup)}", soft_wrap=True)


def _source_and_rate(broker_sample: BrokerSample) -> str:
    return f"by {broker_sample.source or 'none'}, {mega(broker_sample.rate)}"


def output_for(console: Console, shown: Live) -> Show:
    """The function that shows a sample on this console."""
    return (
        (lambda setup, recording, caption: shown.update(live(setup, recording, caption), refresh=True))
        if console.is_terminal
        else PlainOutput(console)
    )


def summary(acts: list[Act]) -> Table:
    """A table of all acts, each with a tick or a cross."""
    table = Table(title="With the Spark pipeline", title_justify="left")
    for column in ("", "what should happen", "what happened"):
        table.add_column(column)
    for act in acts:
        mark = Text("✓", style="green") if act.passed else Text("✗", style="red" if act.passed is False else "dim")
        table.add_row(mark, act.title, act.outcome)
    return table


COLOURS: Final = {1: "#1f77b4", 2: "#2ca02c", 3: "#c0392b"}
WIDTHS: Final = {1: 7.0, 2: 4.0, 3: 1.5}  # the lines lie on each other, so the lower ones are wider
SOURCES: Final = {RECORD_SOURCE: "#6a51a3", SNAPSHOT_SOURCE: "#e6a700"}


def draw(recording: Recording, file: Path) -> None:
    """Draws a PNG: factors above, throughput below, between them the answering source as a band; marks are lines."""
    figure, (above, band, below) = pyplot.subplots(
        3, figsize=(10, 6.5), sharex=True, layout="constrained", height_ratios=(5, 1, 4)
    )
    times = [sample.at for sample in recording.samples]
    for broker, colour in COLOURS.items():
        broker_sample = [sample.brokers[broker] for sample in recording.samples]
        style = {"color": colour, "label": f"broker {broker}"}
        above.plot(times, [each.factor for each in broker_sample], linewidth=WIDTHS[broker], **style)
        below.plot(times, [each.rate / 1e6 for each in broker_sample], linewidth=1.2, **style)
    _sources(band, recording)
    _marks(above, (above, below), recording)
    tidy((above, band, below))
    above.set(ylabel="factor", ylim=(-0.04, 1.06))
    above.set_title("One full disk stops three brokers, with Spark and without", pad=34)
    below.set(xlabel="seconds", xlim=(0, times[-1]), ylabel="MB/s, last 2 s", ylim=(0, None))
    save(figure, file)


def _sources(axes: Any, recording: Recording) -> None:
    for source, colour in SOURCES.items():
        axes.plot([], [], color=colour, linewidth=6, label=source)
    for one, other in pairwise(recording.samples):
        for row, broker in enumerate(one.brokers):
            colour = SOURCES.get(one.brokers[broker].source, "#dddddd")
            axes.barh(row, other.at - one.at, left=one.at, height=0.7, color=colour, linewidth=0)
    axes.set_yticks(range(3), [str(broker) for broker in COLOURS], fontsize=8)
    axes.set_ylim(2.6, -0.6)
    axes.set_ylabel("source", fontsize=9)


def _marks(top: Any, every: tuple[Any, ...], recording: Recording) -> None:
    for number, (word, at) in enumerate(recording.marks.items()):
        for axes in every:
            axes.axvline(at, color="#555555", linestyle="dotted", linewidth=1)
        top.annotate(
            word,
            (at, 1.06),
            xytext=(0, 4 + 12 * (number % 2)),  # in two rows, because some marks are close to each other
            textcoords="offset points",
            ha="center",
            fontsize=9,
            annotation_clip=False,
        )


PICTURE: Final = ROOT / "build/demo/spark.png"
LOGS: Final = ROOT / "build/demo/spark-logs"
WITHOUT: Final = "The Spark pipeline is not part of this run; to see it at work: SPARK=1 make demo"


def missing() -> str | None:
    """A sentence about what must be installed before this part can be played; None if nothing is missing."""
    if find_spec("pyspark") is None:
        return "pyspark is missing: run 'make build', or pip install 'quotahost[spark]'"
    return None


def show(console: Console) -> bool:
    """Plays all acts and draws the picture; returns whether everything was as it should be."""
    console.print(
        "[bold]Now with Spark[/]: a pipeline reads the snapshots of three brokers and makes one small record of them"
    )
    with (
        tempfile.TemporaryDirectory(prefix="quotahost-demo-") as folder,
        own_file_system(Path(folder) / "node-3", size="1g") as mounted,
    ):
        if not mounted:
            console.print("no small disk can be mounted here: limits below what is used stand for a full disk")
        began = time.monotonic()
        console.print("three brokers start, each with Python inside it ...")
        with running_setup(Path(folder), mounted) as setup:
            console.print(f"they run after {time.monotonic() - began:.1f} s; a producer writes to each of them")
            with Live(console=console, auto_refresh=False) as shown:
                recording = play(setup, output_for(console, shown))
            if not all(act.passed for act in recording.acts):
                _keep_logs(Path(folder), console)
    draw(recording, PICTURE)
    console.print(summary(recording.acts))
    console.print(f"Picture: the factors over time in {PICTURE}")
    return all(act.passed for act in recording.acts)


def _keep_logs(folder: Path, console: Console) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*/*.log"):
        shutil.copy(log, LOGS / f"{log.parent.name}.log")
    console.print(f"the logs of the brokers and of Spark are in {LOGS}")
