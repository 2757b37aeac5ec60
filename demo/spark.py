"""The demo's part with Spark: three brokers, the pipeline, and a disk that fills.

``_running`` starts the brokers and a producer for each. The brokers read the pipeline's record, or the snapshots while
no record arrives. An exempt service fills the disk of broker 3, whose limits are slightly above the bytes used.
Each act of ``_Acts`` changes the disk or the pipeline, waits for the expected state, and describes in a sentence what
happened. In the middle an act kills the pipeline, and the brokers go on protecting the disk by each other's snapshots.
At the end the demo prints a summary of the acts and draws a picture.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition
from matplotlib import pyplot
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.disk import consumed
from demo.pictures import save, tidy
from demo.quotas import MEGA, mega
from demo.watch import ACT_TIMEOUT, POLL, Watch
from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, ROOT, STATES, plugin_properties
from harness.system.filesystem import own_file_system
from harness.system.pipeline import PipelineProcess

PICTURE: Final = ROOT / "build/demo/spark.png"
LOGS: Final = ROOT / "build/demo/spark-logs"
WITHOUT: Final = "The Spark pipeline is not part of this run; to see it at work: SPARK=1 make demo"

# ---- what runs -------------------------------------------------------------------------------------------------

FILLING: Final = "filling"  # the topic that fills the disk of broker 3
SOFT: Final = 60 * MEGA  # bytes above what is used when the disk begins to fill
HARD: Final = 190 * MEGA
SERVICE: Final = 4 * MEGA  # bytes/s of the exempt service; slow, because Spark needs some seconds for each step
QUOTA: Final = 1 * MEGA  # bytes/s of each producer
# The factor source that reads the pipeline's record, and its standby, which reads all snapshots.
RECORD_SOURCE, SNAPSHOT_SOURCE = "cluster-volumes", "snapshots"
VALIDITY: Final = "10s"
SETTINGS: Final = {
    "factor.source": RECORD_SOURCE,
    "validity": VALIDITY,
    "snapshots.period": "1s",
    "fence.authorizer": "none",
    "static.produce": str(QUOTA),
    "static.scope": "client",
    "static.excluded.principal.name.list": "User:service",
    # Brokers 1 and 2 are on this machine's own disk. Their limits are so high that the disk never reaches them.
    "static.storage.soft": str(10**15),
    "static.storage.hard": str(10**15),
}


def missing() -> str | None:
    """A sentence about what must be installed before this part can be played; None if nothing is missing."""
    if find_spec("pyspark") is None:
        return "pyspark is missing: run 'make build', or pip install 'quotahost[spark]'"
    return None


def topic(broker: int) -> str:
    """The topic whose only replica is on that broker."""
    return f"written-{broker}"


@contextmanager
def _running(folder: Path, console: Console) -> Iterator["_Acts"]:
    """Three brokers and their producers; the pipeline is not started yet."""
    properties = plugin_properties(SETTINGS) | FENCE | {"log.segment.delete.delay.ms": "200"} | dict(QUICK_QUOTAS)
    users = dict.fromkeys(("app", "service"), "secret")
    with Cluster(folder, brokers=3, classpath=[JAR], properties=properties, users=users) as cluster:
        place_topics(cluster, {topic(n): n for n in (1, 2, 3)} | {FILLING: 3})
        config: dict[str, Any] = cluster.client_config("app", "app") | {"linger.ms": 50}
        # A producer just below its quota sends evenly; a producer that has more to send would send in bursts.
        loads = {n: ProducerLoad(config, topic(n), rate=0.95 * QUOTA) for n in (1, 2, 3)}
        service = ProducerLoad(cluster.client_config("service", "filler"), FILLING, rate=SERVICE)
        driver = PipelineProcess(folder / "pipeline", cluster.bootstrap, tick="1s", interval="500ms", validity=VALIDITY)
        with ExitStack() as stack:
            stack.callback(driver.kill)
            stack.callback(service.stop)
            for load in loads.values():
                stack.enter_context(load)
            yield _Acts(console, cluster, loads, service, driver)


# ---- samples ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokerSample:
    """One broker at one moment."""

    state: str  # OPEN, THROTTLE or PAUSE
    factor: float  # the factor in force
    source: str  # the factor source that answers; empty if none does
    age: float | None  # the age of the cluster record in seconds; None if there is none
    rate: float  # bytes/s over the last 2 s of the producer that writes to it


@dataclass(frozen=True)
class Sample:
    """All brokers by id at one moment, in seconds since the start."""

    at: float
    brokers: dict[int, BrokerSample]

    def all_are(self, state: str) -> bool:
        """Whether every broker is in that state."""
        return all(broker.state == state for broker in self.brokers.values())

    def all_use(self, source: str) -> bool:
        """Whether that factor source answers on every broker."""
        return all(broker.source == source for broker in self.brokers.values())


def _sample(node: KafkaNode, load: ProducerLoad) -> BrokerSample:
    table = Jmx(node).query("quotahost:type=QuotaTable")["quotahost:type=QuotaTable"]
    sources = Jmx(node).query("quotahost:type=FactorSource,*")
    answers = [name.rpartition("=")[2] for name, bean in sources.items() if bean["Answers"] == 1]
    age = next((bean["Age"] for bean in Jmx(node).query("quotahost:type=ClusterRecord").values()), None)
    state, factor = STATES[int(table["State"])], float(table["Factor"])
    return BrokerSample(state, factor, answers[0] if answers else "", age, load.meter.rate_over(2.0))


# ---- the acts --------------------------------------------------------------------------------------------------

SPARK_TIMEOUT: Final = 240.0  # seconds for Spark's first record on a busy machine
# Spark has warmed up when no record is older than FRESH_AGE seconds in STEADY_SAMPLES samples.
STEADY_SAMPLES: Final = 8
FRESH_AGE: Final = 4.0
WATCH_TIME: Final = 3.0  # seconds to watch that nothing changes


class Act(NamedTuple):
    """The expected result of one act, whether the act passed, and what happened."""

    title: str
    passed: bool
    outcome: str


class Failed(Exception):
    """An act failed; the message says why."""


class _Acts:
    """Plays the acts one after the other, until one fails.

    Attributes:
        watch: takes and keeps the samples.
        marks: the moments to mark in the picture, in seconds since the start, by label.
    """

    def __init__(
        self,
        console: Console,
        cluster: Cluster,
        loads: dict[int, ProducerLoad],
        service: ProducerLoad,
        driver: PipelineProcess,
    ) -> None:
        self._cluster, self._loads, self._service, self._driver = cluster, loads, service, driver
        self.watch = Watch(console, self._take, self._line)
        self.marks: dict[str, float] = {}
        self._records_at_pause = 0  # records that had been appended when all producers had stopped
        self._samples_before_pause = 0  # samples that had been taken then

    def play(self) -> list[Act]:
        acts = {
            "Spark starts: all three brokers read its record": self._start_spark,
            "a disk fills beyond its soft limit: all three are slowed alike": self._fill_to_soft,
            "the disk reaches its hard limit: all three are stopped": self._fill_to_hard,
            "Spark is killed (kill -9): each broker reads all snapshots itself": self._kill_spark,
            "Spark is back: its record answers again": self._restart_spark,
            "space is freed: all three go on": self._free_space,
        }
        played: list[Act] = []
        for title, act in acts.items():
            try:
                played.append(Act(title, True, act()))
            except Failed as failed:
                return [*played, Act(title, False, str(failed))]
        return played

    def _start_spark(self) -> str:
        self._driver.launch()
        caption = "Spark starts; until its first record, each broker reads the snapshots of all brokers"
        seconds = self._until(caption, lambda sample: sample.all_are("OPEN") and self._steady(), SPARK_TIMEOUT)
        self.watch.during("Spark publishes one small record about the whole cluster, for all three brokers", WATCH_TIME)
        return f"{seconds:.0f} s after its start; by then every record came in time"

    def _fill_to_soft(self) -> str:
        used = consumed(self._cluster.brokers[2])
        limits = {"soft": used + SOFT, "hard": used + HARD}
        changes = {f"{PREFIX}static.storage.{side}": str(level) for side, level in limits.items()}
        alter_broker_config(self._cluster.brokers[0], changes, broker=3)
        self._service.start()
        caption = "the disk of broker 3 fills; brokers 1 and 2 have space, but the record shows the disk of broker 3"
        self._until(caption, lambda sample: sample.all_are("THROTTLE"))
        factors = [f"{broker.factor:.2f}" for broker in self.watch.samples[-1].brokers.values()]
        self.watch.during(
            "between soft and hard limit: the fuller the disk of broker 3, the slower all three", WATCH_TIME
        )
        return f"THROTTLE on all, factors {', '.join(factors)} in the first sample"

    def _fill_to_hard(self) -> str:
        caption = "the disk comes close to its hard limit: producers become slower and slower"
        self._until(caption, lambda sample: sample.all_are("PAUSE"))
        self._service.stop()
        if not self.watch.samples[-1].all_use(RECORD_SOURCE):
            raise Failed("all brokers are in PAUSE, but not because of Spark's record")
        caption = "the disk is at its hard limit: the fence turns all producers back"
        self.watch.during(caption, 2 * POLL)  # requests that were under way may still be appended
        self._records_at_pause = self._records()
        self._samples_before_pause = len(self.watch.samples) - 1
        self.watch.during(caption, WATCH_TIME)
        return f"PAUSE on all, {self._nothing_appended()} in {WATCH_TIME:.0f} s"

    def _kill_spark(self) -> str:
        self.marks["kill -9"] = self.watch.now
        self._driver.kill()
        caption = "Spark was killed; its last record grows old, and until it is too old all producers stay stopped"
        seconds = self._until(caption, lambda sample: sample.all_use(SNAPSHOT_SOURCE))
        self.watch.during(
            "without Spark: each broker reads the snapshots of all brokers and comes to the same factor", WATCH_TIME
        )
        return f"all brokers did so {seconds:.1f} s later; {self._nothing_appended()}"

    def _restart_spark(self) -> str:
        self.marks["started again"] = self.watch.now
        self._driver.launch()
        caption = "Spark is started again, from its checkpoint"
        seconds = self._until(caption, lambda sample: sample.all_use(RECORD_SOURCE), SPARK_TIMEOUT)
        self.marks["back"] = self.watch.now
        self.watch.during(
            "brokers read its record again; the disk is still full, so no producer gets through", WATCH_TIME
        )
        return f"{seconds:.0f} s after its start; {self._nothing_appended()} since the stop"

    def _free_space(self) -> str:
        self.marks["freed"] = self.watch.now
        delete_topics(self._cluster, FILLING)
        opened = self._until("the disk's space is freed", lambda sample: sample.all_are("OPEN"))
        sent = {broker: load.meter.bytes for broker, load in self._loads.items()}
        caption = "all producers go on"
        more = self._until(caption, lambda _: all(load.meter.bytes > sent[n] for n, load in self._loads.items()))
        self.watch.during("all three producers write as before", 2 * WATCH_TIME)
        return f"OPEN on all after {opened:.1f} s; all three produce {more:.1f} s later"

    def _until(self, caption: str, reached: Callable[[Sample], bool], timeout: float = ACT_TIMEOUT) -> float:
        """The seconds until ``reached`` accepts a sample. Raises Failed if that takes too long, or Spark ends."""
        seconds = self.watch.until(
            caption, lambda sample: reached(sample) or self._driver.exit_code is not None, timeout
        )
        if self._driver.exit_code is not None:
            raise Failed("Spark ended by itself")
        if seconds is None:
            raise Failed(f"it did not happen within {timeout:.0f} s")
        return seconds

    def _take(self, at: float) -> Sample:
        return Sample(at, {node.node_id: _sample(node, self._loads[node.node_id]) for node in self._cluster.brokers})

    def _line(self, sample: Sample) -> str:
        shown = " | ".join(
            f"{number} {broker.state} {broker.factor:.2f} by {broker.source or 'none'}, {mega(broker.rate)}"
            for number, broker in sample.brokers.items()
        )
        used = consumed(self._cluster.brokers[2]) / 1e6
        return f"{sample.at:3.0f} s  {shown}; disk of broker 3: {used:,.0f} MB used"

    def _records(self) -> int:
        """The number of records appended to the producers' topics, acknowledged or not."""
        consumer = Consumer(self._cluster.client_config(client_id="harness") | {"group.id": "harness"})
        try:
            partitions = [TopicPartition(topic(broker), 0) for broker in self._loads]
            return sum(int(consumer.get_watermark_offsets(one, timeout=30)[1]) for one in partitions)
        finally:
            consumer.close()

    def _steady(self) -> bool:
        """Whether records reach all brokers in time. Spark's batches are slow until its JVM has warmed up."""
        samples = self.watch.samples[-STEADY_SAMPLES:]
        ages = [broker.age for sample in samples for broker in sample.brokers.values()]
        quick = all(age is not None and age < FRESH_AGE for age in ages)
        return len(samples) == STEADY_SAMPLES and quick and all(sample.all_use(RECORD_SOURCE) for sample in samples)

    def _nothing_appended(self) -> str:
        """Returns that nothing was appended since all stopped. Raises Failed if a record was, or a broker was open."""
        samples = self.watch.samples[self._samples_before_pause :]
        if any(broker.factor for sample in samples for broker in sample.brokers.values()):
            raise Failed("a broker was open for a moment")
        if records := self._records() - self._records_at_pause:
            raise Failed(f"{records} records were appended")
        return "0 bytes appended"


# ---- what is shown ---------------------------------------------------------------------------------------------

COLOURS: Final = {1: "#1f77b4", 2: "#2ca02c", 3: "#c0392b"}
WIDTHS: Final = {1: 7.0, 2: 4.0, 3: 1.5}  # the lines overlap, so the lower ones are wider
SOURCES: Final = {RECORD_SOURCE: "#6a51a3", SNAPSHOT_SOURCE: "#e6a700"}


def show(console: Console) -> bool:
    """Plays all acts and draws the picture; returns whether everything was as it should be."""
    console.print(
        "[bold]Now with Spark[/]: a pipeline reads the snapshots of three brokers and makes one small record of them"
    )
    with (
        tempfile.TemporaryDirectory(prefix="quotahost-demo-") as folder,
        own_file_system(Path(folder) / "node-3", size="1g"),
    ):
        began = time.monotonic()
        console.print("three brokers start, each with Python inside it ...")
        with _running(Path(folder), console) as run:
            console.print(f"they run after {time.monotonic() - began:.1f} s; a producer writes to each of them")
            acts = run.play()
            passed = all(act.passed for act in acts)
            if not passed:
                LOGS.mkdir(parents=True, exist_ok=True)
                for log in Path(folder).glob("*/*.log"):
                    shutil.copy(log, LOGS / f"{log.parent.name}.log")
                console.print(f"the logs of the brokers and of Spark are in {LOGS}")
    _draw(run.watch.samples, run.marks)
    table = Table(title="With the Spark pipeline", title_justify="left")
    for column in ("", "what should happen", "what happened"):
        table.add_column(column)
    for act in acts:
        mark = Text("✓", style="green") if act.passed else Text("✗", style="red")
        table.add_row(mark, act.title, act.outcome)
    console.print(table)
    console.print(f"Picture: the factors over time in {PICTURE}")
    return passed


def _draw(samples: list[Sample], marks: dict[str, float]) -> None:
    """Draws the factors at the top, the answering source as a band below, then the throughput; marks are lines."""
    figure, (above, band, below) = pyplot.subplots(
        3, figsize=(10, 6.5), sharex=True, layout="constrained", height_ratios=(5, 1, 4)
    )
    times = [sample.at for sample in samples]
    for number, colour in COLOURS.items():
        brokers = [sample.brokers[number] for sample in samples]
        style = {"color": colour, "label": f"broker {number}"}
        above.plot(times, [broker.factor for broker in brokers], linewidth=WIDTHS[number], **style)
        below.plot(times, [broker.rate / 1e6 for broker in brokers], linewidth=1.2, **style)
    for source, colour in SOURCES.items():
        band.plot([], [], color=colour, linewidth=6, label=source)
    for one, other in pairwise(samples):
        for row, broker in enumerate(one.brokers.values()):
            colour = SOURCES.get(broker.source, "#dddddd")
            band.barh(row, other.at - one.at, left=one.at, height=0.7, color=colour, linewidth=0)
    band.set_yticks(range(3), [str(number) for number in COLOURS], fontsize=8)
    band.set_ylim(2.6, -0.6)
    band.set_ylabel("source", fontsize=9)
    for number, (word, at) in enumerate(marks.items()):
        for axes in (above, below):
            axes.axvline(at, color="#555555", linestyle="dotted", linewidth=1)
        # Two rows of labels, because some marks are close to each other.
        above.annotate(
            word, (at, 1.06), xytext=(0, 4 + 12 * (number % 2)), textcoords="offset points", ha="center", fontsize=9,
            annotation_clip=False,
        )  # fmt: skip
    tidy((above, band, below))
    above.set(ylabel="factor", ylim=(-0.04, 1.06))
    above.set_title("One full disk stops three brokers, with Spark and without", pad=34)
    below.set(xlabel="seconds", xlim=(0, times[-1]), ylabel="MB/s, last 2 s", ylim=(0, None))
    save(figure, PICTURE)
