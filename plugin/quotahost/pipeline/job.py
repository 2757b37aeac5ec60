"""The job connects the pipeline's parts: it creates topics, and runs the queries and some threads until a signal.

:mod:`quotahost.pipeline.main` makes one ``Job`` and runs it. :mod:`quotahost.pipeline.queries` describes the queries,
:mod:`quotahost.pipeline.supervisor` keeps them running, and :mod:`quotahost.pipeline.publisher` and
:mod:`quotahost.pipeline.shares` publish the results of two queries.
"""

import threading
from collections.abc import Collection
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from quotahost.base.background import LoggedOnce, Periodic
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.clients import JvmKafka, ensure_topics
from quotahost.pipeline.clock import WITNESSES, KafkaClock
from quotahost.pipeline.cluster import Rules
from quotahost.pipeline.history import PARTS, checkpoint
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.monitoring import DEAD_LETTERS, Progress
from quotahost.pipeline.options import Options
from quotahost.pipeline.publisher import Publisher
from quotahost.pipeline.queries import Queries
from quotahost.pipeline.shares import SharesPublisher
from quotahost.pipeline.supervisor import Supervisor, set_checkpoint_aside
from quotahost.records.cluster_volumes import encode
from quotahost.records.topics import CLUSTER_VOLUMES, SHARES, TICKS

_LOOK: Final = 1.0  # seconds
_SILENCE: Final = 30.0  # seconds; another pipeline that is only slow must not lose the leadership
_ASK_EVERY: Final = 5.0  # seconds
_FOLLOW_EVERY: Final = 0.25  # seconds between two polls; each poll waits, too
_CLOSE_WITHIN: Final = 5.0  # seconds


class Job:
    """The queries, and everything that runs beside them."""

    def __init__(self, spark: SparkSession, options: Options, progress: Progress) -> None:
        """Connect, create the topics that are missing, and take a run.

        Raises Py4JJavaError if the cluster doesn't answer; Unusable if a topic can't be used as it is.
        """
        tick, volumes = options.tick.total_seconds(), options.named(CLUSTER_VOLUMES)
        self._options, self._fault = options, LoggedOnce(log)
        self._kafka = JvmKafka(spark, options.client())
        own, brokers = self._kafka.cluster()
        clusters = options.clusters(own)
        # Only the cluster with the topics lists its brokers. If the snapshots are mirrored from another cluster, the
        # pipeline can't know which brokers of that cluster are missing.
        self._asks_for_brokers = own in clusters.values()
        cluster = own if self._asks_for_brokers else next(iter(clusters.values()))
        ensure_topics(self._kafka, options)
        # The ticks' thread and the batches share the producer, because Kafka's producer is thread-safe.
        producer = self._producer = self._kafka.producer()
        send_tick = partial(producer.send, options.named(TICKS), b"tick", b"")
        clock = self._clock = KafkaClock()
        # The clock is corrected before the first batch: with a wrong clock, that batch would make all brokers stale.
        for _ in range(WITNESSES):
            clock.correct(send_tick())
        self._consumer = self._kafka.consumer(volumes)
        # A leader publishes with every tick, even while no snapshot arrives.
        leadership = self._leadership = Leadership(
            self._consumer, max(3 * tick, _SILENCE), set(clusters.values()), clock.now,
            lambda reason: progress.refused_runs.labels(reason).inc(),
        )  # fmt: skip
        supervisor = self._supervisor = Supervisor(progress, partial(set_checkpoint_aside, spark, options.checkpoint))
        publisher = self._publisher = Publisher(
            Rules(cluster, options.validity, options.expiry), leadership, clock, progress, tick,
            lambda record: producer.send(volumes, record.cluster.encode(), encode(record)), send_tick,
            supervisor.caught_up,
        )  # fmt: skip
        queries = self._queries = Queries(spark, options, own, clock, self._kafka)
        shares = SharesPublisher(
            options, leadership, clock, lambda: queries.listed, partial(producer.partitions, options.named(SHARES))
        )
        self._registered(brokers)
        supervisor.add("volumes", lambda: queries.volumes(publisher))
        supervisor.add(DEAD_LETTERS, queries.dead_letters)
        supervisor.add("shares", lambda: queries.shares(shares))
        if history := options.history:
            # With a new checkpoint, a part would write the topics' records again, and a bill would count them twice.
            for part in PARTS:
                supervisor.add(part, partial(queries.record, part, history), checkpoint(history, part))
        for topic, name in clusters.items():
            log.info("topic %s holds the snapshots of cluster %s", topic, name)
        log.info("run %d of cluster %s begins", leadership.run, cluster)

    def run(self, stop: threading.Event) -> None:
        """Keep the queries running until ``stop`` is set, then close everything."""
        ticks = Periodic("ticks", self._publisher.tick_if_due, self._publisher.remaining)
        following = Periodic("leadership", self._leadership.follow, lambda: _FOLLOW_EVERY)
        # This has its own thread, because an answer may take 20 s, and a stop must not wait for an answer.
        asking = Periodic("cluster", lambda: self._ask(stop), lambda: _ASK_EVERY)
        try:
            while not stop.is_set():
                # If either value changes, the queries restart: running queries cut the large records of a new broker,
                # and if the clock was set back, Spark's triggers wait for that time.
                self._supervisor.look((self._clock.ahead, self._queries.listed))
                stop.wait(_LOOK)
        finally:
            asking.close()
            # The ticks and the query of the volumes use the producer, so it is closed last.
            ticks.close(_CLOSE_WITHIN)
            self._supervisor.close()
            # If the thread hangs, its consumer stays open, because no other thread may use it.
            if following.close(_CLOSE_WITHIN):
                self._consumer.close()
            self._kafka.close()
            self._producer.close()

    def _registered(self, brokers: Collection[str]) -> None:
        """Pass on the ids of the brokers that the cluster lists now."""
        if self._asks_for_brokers:
            self._publisher.registered(brokers)
        self._queries.registered(brokers)

    def _ask(self, stop: threading.Event) -> None:
        """Ask the cluster for its brokers, and create a topic again if an operator has deleted it."""
        try:
            self._registered(self._kafka.cluster()[1])
            ensure_topics(self._kafka, self._options, stop.wait)
            self._supervisor.kafka_answers()
            self._fault.healed()
        except Exception as problem:  # Java's client failed, or a topic is unusable; the next attempt may succeed
            if stop.is_set():
                return
            text = "brokers and topics can't be checked; those known so far stay: %s"
            self._fault.report(text, short(problem))
