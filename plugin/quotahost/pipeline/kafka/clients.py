"""Kafka's own Java clients in the driver's JVM, so that one configuration serves Spark and what is done beside it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

# TODO(merge) Kafka's clock: by a wrong one of the driver's machine all brokers would look stale, or none.


_TIMEOUT_MS: Final = 20_000


_REPLICAS: Final = 3


SHORT_LIVED: Final = {"cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "600000"}


class JvmKafka:
    """Admin, producer and consumers with one configuration in Java's names, which holds secrets."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        """Nothing is connected yet."""
        self._jvm: Any = spark._jvm
        self._config = dict(config)

    def cluster(self) -> tuple[str, list[str]]:
        """The cluster's id, and those of its brokers that are alive.

        Raises:
            Py4JJavaError: the cluster doesn't answer.
        """
        admin = self._admin()
        try:
            told = admin.describeCluster()
            nodes = self._jvm.java.util.ArrayList(told.nodes().get())
            return told.clusterId().get(), [node.idString() for node in _items(nodes)]
        finally:
            admin.close()

    def ensure(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Make the topics that aren't there, with one partition and these configurations.

        Raises:
            Py4JJavaError: they can't be made or looked up.
        """
        admin = self._admin()
        try:
            present = set(_items(self._jvm.java.util.ArrayList(admin.listTopics().names().get())))
            nodes = admin.describeCluster().nodes().get().size()
            for name in topics.keys() - present:
                self._make(admin, name, topics[name], min(_REPLICAS, nodes))
        finally:
            admin.close()

    def _make(self, admin: Any, name: str, config: Mapping[str, str], replicas: int) -> None:
        topic = self._jvm.org.apache.kafka.clients.admin.NewTopic
        new = topic(name, 1, self._jvm.java.lang.Short(str(replicas))).configs(self._map(config))
        topics = self._jvm.java.util.ArrayList()
        topics.add(new)
        try:
            admin.createTopics(topics).all().get()
        except Py4JJavaError as problem:
            if "TopicExistsException" not in str(problem.java_exception):  # another one was quicker
                raise

    def _admin(self) -> Any:
        return self._jvm.org.apache.kafka.clients.admin.Admin.create(
            self._java({"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS // 2})
        )

    def _java(self, more: Mapping[str, Any]) -> Any:
        return self._map({**self._config, **more})

    def _map(self, items: Mapping[str, Any]) -> Any:
        java = self._jvm.java.util.HashMap()
        for name, value in items.items():
            java.put(name, value)
        return java

    def producer(self) -> JvmProducer:
        """A producer that waits for all replicas."""
        serializer = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
        settings = {"acks": "all", "linger.ms": 0, "delivery.timeout.ms": _TIMEOUT_MS}
        settings["request.timeout.ms"] = _TIMEOUT_MS // 2
        make = self._jvm.org.apache.kafka.clients.producer.KafkaProducer
        return JvmProducer(self._jvm, make(self._java(settings), serializer(), serializer()))

    def consumer(self, topic: str) -> JvmConsumer:
        """A consumer of all that is in a topic of one partition, and of what comes; no group, no commits."""
        deserializer = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        make = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        settings = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        return JvmConsumer(self._jvm, make(self._java(settings), deserializer(), deserializer()), topic)


class JvmProducer:
    """Sends records and waits until they are kept."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        """Made by JvmKafka."""
        # A name that Java is asked for is looked up package by package, each in all jars: once is enough.
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._patience = jvm.java.time.Duration.ofSeconds(2)
        self._producer = producer

    def send(self, topic: str, key: bytes, value: bytes) -> int:
        """Send one and wait; its timestamp in ms since the epoch, Kafka's own where the topic has LogAppendTime.

        Raises:
            Py4JJavaError: it could not be written.
        """
        return int(self._producer.send(self._record(topic, key, value)).get().timestamp())

    def close(self) -> None:
        """Give up what is under way."""
        self._producer.close(self._patience)


class JvmConsumer:
    """Polls one partition from its beginning."""

    def __init__(self, jvm: Any, consumer: Any, topic: str) -> None:
        """Made by JvmKafka; used by one thread."""
        self._duration, self._consumer = jvm.java.time.Duration, consumer
        self._partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        self._partitions = jvm.java.util.ArrayList()
        self._partitions.add(self._partition)
        consumer.assign(self._partitions)
        consumer.seekToBeginning(self._partitions)

    def end(self) -> int:
        """The offset after the last record."""
        return int(self._consumer.endOffsets(self._partitions).get(self._partition))

    def at(self) -> int:
        """The offset of the next record to be read."""
        return int(self._consumer.position(self._partition))

    def poll(self, seconds: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of what has come."""
        found = self._consumer.poll(self._duration.ofMillis(int(seconds * 1000)))
        for record in _items(found.records(self._partition)):
            value = record.value()
            yield bytes(record.key() or b""), None if value is None else bytes(value)

    def close(self) -> None:
        """Close it; on the thread that polls."""
        self._consumer.close()


def _items(java: Any) -> list[Any]:
    """Of a Java list; Py4J's iterator ends by an exception of Java's, which PySpark looks into at length."""
    return [java.get(index) for index in range(java.size())]


log = logging.getLogger("quotahost.pipeline")


_ALIKE_MS: Final = 2000  # what a slow answer can make of it


_TOLD_MS: Final = 10_000


class KafkaClock:
    """This machine's wall clock, put right by the times that Kafka gives to what is written."""

    def __init__(self, wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        """``wall`` in ms since the epoch."""
        self._wall = wall
        self.ahead = 0  # ms
        self._told = False

    def now(self) -> int:
        """Ms since the epoch."""
        return self._wall() + self.ahead

    def correct(self, written: int) -> None:
        """A record has just been written, at this time of Kafka's, in ms since the epoch."""
        ahead = written - self._wall()
        self.ahead = ahead if abs(ahead) > _ALIKE_MS else 0
        if abs(ahead) > _TOLD_MS and not self._told:
            log.warning("this machine's clock is %.0f s off Kafka's; Kafka's counts", -ahead / 1000)
        self._told = abs(ahead) > _TOLD_MS
