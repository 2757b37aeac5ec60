"""Kafka's own Java clients in the driver's JVM: admin, producer and consumer for the work beside the queries.

Spark's Kafka source brings these clients along and is configured in their names (JKS keystores, JAAS). An operator
writes that configuration once, for Spark and for this module; confluent-kafka would need a second one in librdkafka's
names. :mod:`quotahost.pipeline.kafka.topics` makes the topics with it, and :mod:`quotahost.pipeline.job` publishes the
cluster records and follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from quotahost.pipeline.kafka.clock import Written, wall_ms
from quotahost.pipeline.spark.session import jvm

_TIMEOUT_MS: Final = 20_000
_LOOK_WITHIN_MS: Final = 3_000
_CLOSE_WITHIN: Final = 2  # seconds


class Topic(NamedTuple):
    """What the pipeline looks at in a topic: its number of partitions, and ``cleanup.policy``, "" if unknown."""

    partitions: int
    policy: str


def short(problem: Exception) -> str:
    """An exception in one line of bounded length; one of Java's comes with whole stacks."""
    text = str(getattr(problem, "java_exception", problem))
    return f"{type(problem).__name__}: {next(iter(text.splitlines()), '')[:300]}"


class JvmKafka:
    """Makes clients from one configuration in Java's names, which contains secrets. Py4J converts dicts and lists."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        """Connects nothing yet."""
        self._jvm = jvm(spark)
        self._config: dict[str, Any] = dict(config)
        # Py4J looks a Java name up package by package, each in all jars: once is enough.
        self._admins = self._jvm.org.apache.kafka.clients.admin.Admin
        self._resource = self._jvm.org.apache.kafka.common.config.ConfigResource
        self._of_topic = self._resource.Type.TOPIC
        self._admin: Any = None

    def cluster(self) -> tuple[str, list[str]]:
        """The cluster's id, and the ids of its brokers that are alive.

        Raises:
            Py4JJavaError: the cluster doesn't answer.
        """
        with self._asked() as admin:
            described = admin.describeCluster()
            brokers = [node.idString() for node in _items(described.nodes().get())]
            return described.clusterId().get(), brokers

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the topics that exist, by name.

        Raises:
            Py4JJavaError: the cluster doesn't answer, or doesn't let this client look at a topic.
        """
        with self._asked() as admin:
            there = [name for name in _items(admin.listTopics().names().get()) if name in names]
            described = admin.describeTopics(there).allTopicNames().get()
            return {name: Topic(described.get(name).partitions().size(), self._policy(admin, name)) for name in there}

    def _policy(self, admin: Any, topic: str) -> str:
        resource = self._resource(self._of_topic, topic)
        try:
            config = admin.describeConfigs([resource]).all().get().get(resource)
            return str(config.get("cleanup.policy").value())
        except Py4JJavaError:  # it may not look at configurations, which is no reason not to work
            return ""

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic; False if it exists.

        Raises:
            Py4JJavaError: the cluster doesn't answer, or refuses to create the topic.
        """
        make = self._jvm.org.apache.kafka.clients.admin.NewTopic
        topic = make(name, partitions, self._jvm.java.lang.Short(str(replicas))).configs(dict(config))
        with self._asked() as admin:
            try:
                admin.createTopics([topic]).all().get()
            except Py4JJavaError as problem:
                if "TopicExistsException" not in str(problem.java_exception):
                    raise
                return False
        return True

    def producer(self) -> JvmProducer:
        """A producer that waits for all replicas."""
        serializer = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
        settings = {
            "acks": "all",
            # Partitions that were added to a topic are seen soon; by default in 5 minutes.
            "metadata.max.age.ms": 10_000,
            # Each send waits for its record, so nothing else would come to fill a batch.
            "linger.ms": 0,
            # Kafka demands that this is no less than linger.ms and request.timeout.ms together.
            "delivery.timeout.ms": _TIMEOUT_MS,
            "request.timeout.ms": _TIMEOUT_MS // 2,
        }
        make = self._jvm.org.apache.kafka.clients.producer.KafkaProducer
        return JvmProducer(self._jvm, make(self._config | settings, serializer(), serializer()))

    def consumer(self, topic: str) -> JvmConsumer:
        """A consumer of a topic of one partition, from its beginning; without a group and without commits."""
        deserializer = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        make = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        settings = self._config | {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        partition = self._jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        consumer = make(settings, deserializer(), deserializer())
        return JvmConsumer(self._jvm, consumer, partition)

    def ends(self) -> JvmEnds:
        """A client that only asks where topics end."""
        deserializer = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        make = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        # The ticks wait for the answer, and do without it.
        settings = self._config | {"default.api.timeout.ms": _LOOK_WITHIN_MS, "request.timeout.ms": _LOOK_WITHIN_MS}
        return JvmEnds(self._jvm, make(settings, deserializer(), deserializer()))

    def close(self) -> None:
        """Close the connections for questions."""
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN))
            self._admin = None

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        """The admin client, which keeps its connections; after an error the next question makes another one."""
        if self._admin is None:
            settings = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS // 2}
            self._admin = self._admins.create(self._config | settings)
        try:
            yield self._admin
        except Py4JJavaError:
            # Brokers may have other addresses by now, so it must begin with bootstrap.servers.
            self.close()
            raise


class JvmProducer:
    """Sends records, and waits until Kafka has written each."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        """Made by :class:`JvmKafka`."""
        # Py4J looks a Java name up package by package, each in all jars: once is enough.
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._close_within = jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN)
        self._producer = producer

    def begin(self, topic: str, key: bytes, value: bytes) -> Callable[[], Written]:
        """Begin to write one record. The result waits until it is written, and raises Py4JJavaError if it can't be.

        Raises:
            Py4JJavaError: it can't even be sent.
        """
        sent = wall_ms()
        future = self._producer.send(self._record(topic, key, value))

        def finish() -> Written:
            # Kafka's own time with LogAppendTime, else this machine's.
            written = int(future.get().timestamp())
            return Written(sent, written, wall_ms())

        return finish

    def send(self, topic: str, key: bytes, value: bytes) -> Written:
        """Write one record.

        Raises:
            Py4JJavaError: it could not be written.
        """
        return self.begin(topic, key, value)()

    def partitions(self, topic: str) -> int:
        """The number of a topic's partitions, as this client knows it.

        Raises:
            Py4JJavaError: the cluster doesn't answer, or has no such topic.
        """
        return int(self._producer.partitionsFor(topic).size())

    def close(self) -> None:
        """Close it, and give up what is not written within 2 s."""
        self._producer.close(self._close_within)


class JvmConsumer:
    """Polls one partition from its beginning; only one thread at a time may use it."""

    def __init__(self, jvm: Any, consumer: Any, partition: Any) -> None:
        """Made by :class:`JvmKafka`."""
        self._duration, self._consumer = jvm.java.time.Duration, consumer
        self._partition = partition
        consumer.assign([partition])
        consumer.seekToBeginning([partition])

    def end(self) -> int:
        """The offset after the last record."""
        return int(self._consumer.endOffsets([self._partition]).get(self._partition))

    def at(self) -> int:
        """The offset of the next record that a poll returns."""
        return int(self._consumer.position(self._partition))

    def poll(self, seconds: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of the records that came; waits for the first as long as ``seconds``."""
        found = self._consumer.poll(self._duration.ofMillis(int(seconds * 1000)))
        for record in _items(found.records(self._partition)):
            value = record.value()
            yield bytes(record.key() or b""), None if value is None else bytes(value)

    def close(self) -> None:
        """Close it."""
        self._consumer.close()


class JvmEnds:
    """Asks for the ends of partitions; only one thread at a time may use it."""

    def __init__(self, jvm: Any, consumer: Any) -> None:
        """Made by :class:`JvmKafka`."""
        self._partition, self._consumer = jvm.org.apache.kafka.common.TopicPartition, consumer

    def of(self, partitions: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """The offset after the last record of each partition, by topic and number.

        Raises:
            Py4JJavaError: the cluster doesn't answer, or has no such topic.
        """
        found = self._consumer.endOffsets([self._partition(topic, int(number)) for topic, number in partitions])
        # As one text, {TOPIC-NUMBER=OFFSET, ...}: Py4J would ask for item by item.
        ends = dict(each.split("=") for each in str(found.toString()).strip("{}").split(", ") if each)
        return {(topic, number): int(ends[f"{topic}-{number}"]) for topic, number in partitions}

    def close(self) -> None:
        """Close it."""
        self._consumer.close()


def _items(java: Any) -> Iterator[Any]:
    """A Java collection's items. Py4J's own iterator ends by a Java exception, which PySpark examines at length."""
    return iter(java.toArray())
