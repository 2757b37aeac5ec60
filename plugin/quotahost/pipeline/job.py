"""The pipeline's parts and how they are joined: topics, queries, and what runs beside these until a signal ends all.

:mod:`quotahost.pipeline.main` makes one ``Job`` and runs it. :mod:`quotahost.pipeline.queries` describes the data's
way, :mod:`quotahost.pipeline.supervisor` keeps the queries running, and :mod:`quotahost.pipeline.publisher` and
:mod:`quotahost.pipeline.shares` publish what two of them compute.
"""

import threading
from collections.abc import Collection
from functools import partial
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from quotahost.base.background import LoggedOnce, Periodic
from quotahost.base.errors import Unusable
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.clients import JvmKafka, Topics
from quotahost.pipeline.clock import WITNESSES, KafkaClock, Written
from quotahost.pipeline.cluster import Rules
from quotahost.pipeline.history import OF_SNAPSHOTS, OF_USAGE, folder
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.monitoring import DEAD_LETTERS, Progress
from quotahost.pipeline.options import Options
from quotahost.pipeline.publisher import Publisher
from quotahost.pipeline.queries import Queries
from quotahost.pipeline.shares import SharesPublisher
from quotahost.pipeline.supervisor import Supervisor, set_checkpoint_aside
from quotahost.records.cluster_volumes import ClusterRecord, encode
from quotahost.records.topics import CLUSTER_VOLUMES, SHARES, TICKS

_LOOK: Final = 1.0  # seconds
_SILENCE: Final = 30.0  # seconds: another pipeline that is merely slow must not lose the leadership
_ASK_EVERY: Final = 5.0  # seconds


class Job:
    """The queries, and everything that runs beside them."""

    def __init__(self, spark: SparkSession, options: Options, progress: Progress) -> None:
        """Connect, create the topics that are missing, and take a run.

        Raises Py4JJavaError if the cluster doesn't answer; Unusable if a topic can't be used as it is.
        """
        tick = options.tick.total_seconds()
        self._options, self._fault = options, LoggedOnce(log)
        self._has_new_brokers = threading.Event()  # whether the cluster lists any that it never listed
        self._kafka = JvmKafka(spark, options.client())
        own, brokers = self._kafka.cluster()
        clusters = options.clusters(own)
        # Only the cluster with the topics lists its brokers. Where the snapshots are mirrored from another cluster,
        # nobody can say which of its brokers are missing.
        self._asks_for_brokers = own in clusters.values()
        cluster = own if self._asks_for_brokers else next(iter(clusters.values()))
        self._topics = Topics(self._kafka, options)
        self._topics.ensure()
        # The ticks' thread and the batches share the producer, which Kafka lets several threads use.
        self._producer = self._kafka.producer()
        send_tick = partial(self._producer.send, options.named(TICKS), b"tick", b"")
        clock = self._clock = KafkaClock()
        # Before the first batch: by a clock that is wrong, it would make all brokers stale.
        for _ in range(WITNESSES):
            clock.correct(send_tick())
        # A leader publishes with every tick, also while no snapshot comes.
        self._leadership = Leadership(
            self._kafka.consumer(options.named(CLUSTER_VOLUMES)), max(3 * tick, _SILENCE), set(clusters.values()),
            clock.now, lambda reason: progress.refused_runs.labels(reason).inc(),
        )  # fmt: skip
        self._leadership.follow()
        self._supervisor = Supervisor(progress, partial(set_checkpoint_aside, spark, options.checkpoint))
        self._publisher = Publisher(
            Rules(cluster, options.validity, options.expiry, topics=tuple(clusters)), self._leadership, clock, progress,
            tick, self._send, send_tick, self._supervisor.caught_up, self._supervisor.reading,
        )  # fmt: skip
        queries = self._queries = Queries(spark, options, own, clock)
        self._shares = SharesPublisher(
            options, self._leadership, clock, queries.users, partial(self._producer.partitions, options.named(SHARES))
        )
        self._registered(brokers)
        self._add_queries()
        self._publisher.start()
        for topic, name in clusters.items():
            log.info("topic %s holds the snapshots of cluster %s", topic, name)
        log.info("run %d of cluster %s begins", self._leadership.run, cluster)

    def _add_queries(self) -> None:
        queries, add = self._queries, self._supervisor.add
        add("volumes", lambda: queries.volumes(self._publisher, self._supervisor.crowded("volumes")))
        add(DEAD_LETTERS, queries.dead_letters)
        add("shares", lambda: queries.shares(self._shares))
        if history := self._options.history:
            # Its files and its checkpoint belong together: a new checkpoint alone would hide what was written before.
            for part in (*OF_SNAPSHOTS, *OF_USAGE):
                add(part, partial(queries.record, part, history), folder(history, part))

    def run(self, stop: threading.Event) -> None:
        """Keep the queries running until ``stop`` is set, then close everything."""
        ahead = self._clock.ahead
        # On a thread of its own, since an answer may take 20 s, and a stop must not wait for it.
        asking = Periodic("cluster", lambda: self._ask(stop), lambda: _ASK_EVERY)
        try:
            while not stop.is_set():
                # Queries have been given both: the large records of a new broker are a stranger's for those that run.
                # And where the clock was put back, Spark's triggers wait for as long.
                if ahead != self._clock.ahead or self._has_new_brokers.is_set():
                    ahead = self._clock.ahead
                    self._has_new_brokers.clear()
                    self._supervisor.begin_again()
                self._supervisor.look()
                stop.wait(_LOOK)
        finally:
            asking.close()
            self.close()

    def close(self) -> None:
        # The ticks and the query of the volumes send by the producer, so it is closed last.
        self._publisher.close()
        self._supervisor.close()
        self._leadership.close()
        self._kafka.close()
        self._producer.close()

    def _send(self, record: ClusterRecord) -> Written:
        return self._producer.send(self._options.named(CLUSTER_VOLUMES), record.cluster.encode(), encode(record))

    def _registered(self, brokers: Collection[str]) -> bool:
        """Hand on the ids of the brokers that the cluster lists now; whether there are any that it never listed."""
        if self._asks_for_brokers:
            self._publisher.registered(brokers)
        return self._queries.register(brokers)

    def _ask(self, stop: threading.Event) -> None:
        """Ask the cluster for its brokers, and make a topic anew that somebody has deleted."""
        try:
            if self._registered(self._kafka.cluster()[1]):
                self._has_new_brokers.set()
            self._topics.ensure(stop.wait)
            self._supervisor.kafka_answers()
            self._fault.healed()
        except (Py4JError, Unusable, OSError) as problem:
            if stop.is_set():
                return
            text = "the cluster can't be asked for its brokers and topics; the brokers known so far stay: %s"
            self._fault.report(text, short(problem))
