"""The pipeline as a program: topics, queries, and what keeps them going until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.dead_letters import DeadLetters, Sifted
from quotahost.pipeline.kafka.clients import SHORT_LIVED, JvmKafka
from quotahost.pipeline.kafka.leadership import Leadership, Watch
from quotahost.pipeline.kafka.ticks import Ticks
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options
from quotahost.pipeline.queries import Queries
from quotahost.pipeline.shares import SharesPublisher
from quotahost.pipeline.spark.offsets import behind
from quotahost.pipeline.volumes.aggregate import Rules
from quotahost.pipeline.volumes.publisher import Publisher
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.topics import COMPACTED

log = logging.getLogger("quotahost.pipeline")

_LOOK: Final = 0.5  # seconds
_SILENCE: Final = 30.0  # seconds: another pipeline that only has a hard time must not lose its turn
_MEMBERS: Final = 5.0  # seconds
_FIRST_PAUSE: Final = 1.0  # seconds before a failed query is started again; doubled each time
_LONGEST_PAUSE: Final = 30.0


class Job:
    """Everything that runs beside the queries, and the queries."""

    def __init__(self, spark: SparkSession, options: Options, progress: Progress) -> None:
        """Connect, make the topics that are missing, take a run, start the queries.

        Raises:
            Py4JJavaError: the cluster doesn't answer.
        """
        self._spark, self._options, self._progress = spark, options, progress
        self._kafka = JvmKafka(spark, options.client())
        own, brokers = self._kafka.cluster()
        cluster = options.cluster or own
        self._kafka.ensure(_topics(options))
        self._producer = self._kafka.producer()
        self._leadership = Leadership(max(3 * options.tick.total_seconds(), _SILENCE))
        watched = self._kafka.consumer(options.cluster_volumes_topic)
        self._leadership.begin(watched, launched=time.time_ns() // 1_000_000)
        self._watch = Watch(watched, self._leadership)
        self._ticks = Ticks(
            options.tick.total_seconds(),
            lambda key, value: self._producer.send(options.tick_topic, key, value),
        )
        self._members = cluster == own
        rules = Rules(cluster, options.validity, options.expiry, tuple(brokers) if cluster == own else ())
        self._publisher = Publisher(rules, self._leadership, self._send, self._published, self._caught_up)
        divider = SharesPublisher(options.shares_topic, options.client(), options.validity, self._leadership)
        self._sifted = {
            "volumes": Sifted(*options.snapshots_topic),
            "shares": Sifted(options.usage_topic),
        }
        dead_letters = DeadLetters(spark, options.refused_topic, options.client(), self._sifted.values())
        queries = Queries(spark, options, cluster, options.client())
        self._starts: dict[str, Callable[[], StreamingQuery]] = {
            "volumes": lambda: queries.volumes(self._publisher),
            DeadLetters.NAME: lambda: queries.refused(dead_letters),
            "shares": lambda: queries.shares(divider),
        }
        if options.history:
            directory = options.history
            self._starts["history"] = lambda: queries.history(directory)
        self._running: dict[str, StreamingQuery] = {}
        self._begun = False
        self._pauses: dict[str, tuple[float, float]] = {}
        log.info("run %d of cluster %s begins", self._leadership.run, cluster)

    def run(self, stop: threading.Event) -> None:
        """Keep the queries going until ``stop`` is set; one that fails is started again from its checkpoint."""
        asked = time.monotonic()
        try:
            while not stop.is_set():
                for name in self._due():
                    self._keep(name)
                if self._members and time.monotonic() - asked > _MEMBERS:
                    asked = time.monotonic()
                    self._ask_members()
                stop.wait(_LOOK)
        finally:
            self.close()

    def close(self) -> None:
        """End the queries and what runs beside them."""
        self._ticks.close()
        for each in self._sifted.values():
            each.close()
        for query in self._running.values():
            query.stop()
        self._watch.close()
        self._producer.close()

    # ---- the queries ----

    def _due(self) -> Iterable[str]:
        """The volumes first: while their backlog is read, the others would take the cores from them."""
        self._begun = self._begun or self._read_all()
        return self._starts if self._begun else ("volumes",)

    def _keep(self, name: str) -> None:
        query = self._running.get(name)
        if query is not None and query.isActive:
            self._tell(name, query)
            return
        if query is not None:
            self._failed(name, query)
        due, _ = self._pauses.get(name, (0.0, _FIRST_PAUSE))
        if time.monotonic() >= due:
            self._running[name] = self._starts[name]()

    def _tell(self, name: str, query: StreamingQuery) -> None:
        last = query.lastProgress
        if last is not None:
            for each in [last] if self._progress.follows(name, last) else query.recentProgress:
                self._progress.batch(name, each)
                if name in self._sifted:
                    self._sifted[name].told(each)
            self._pauses.pop(name, None)

    def _failed(self, name: str, query: StreamingQuery) -> None:
        problem = query.exception()
        why = _why(str(problem)) if problem else "it ended"
        self._progress.failed(name, why)
        del self._running[name]
        _, pause = self._pauses.get(name, (0.0, _FIRST_PAUSE))
        self._pauses[name] = time.monotonic() + pause, min(2 * pause, _LONGEST_PAUSE)

    # ---- what is published ----

    def _send(self, key: bytes, value: bytes) -> int:
        return self._producer.send(self._options.cluster_volumes_topic, key, value)

    def _published(self, record: ClusterRecord) -> None:
        self._ticks.published()
        self._progress.published(record, standing_by=self._leadership.standing_by)

    def _caught_up(self) -> bool:
        read = self._read_all()
        if not read:
            self._ticks.hurry()  # another batch follows
        return read

    def _read_all(self) -> bool:
        query = self._running.get("volumes")
        last = query.lastProgress if query is not None else None
        return last is not None and not any(map(behind, last["sources"]))

    def _ask_members(self) -> None:
        try:
            self._publisher.registered(self._kafka.cluster()[1])
        except Py4JError as problem:
            log.debug("the cluster doesn't tell its brokers; the last known stay: %s", problem)


def _why(text: str) -> str:
    """Of Spark's many lines the one that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "BatchFailed: " in line), lines[0] if lines else "")[:500]


def _topics(options: Options) -> dict[str, dict[str, str]]:
    usage = (options.usage_topic, options.shares_topic)
    compacted = (*options.snapshots_topic, options.cluster_volumes_topic, options.refused_topic, *usage)
    return dict.fromkeys(compacted, COMPACTED) | {options.tick_topic: SHORT_LIVED}
