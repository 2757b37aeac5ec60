"""Kafka's own Java clients in the driver's JVM: admin, producer and consumer for the work beside the queries.

Spark's Kafka source brings these clients along and is configured in their names (JKS keystores, JAAS). An operator
writes that configuration once, for Spark and for this module; confluent-kafka would need a second one in librdkafka's
names. :mod:`quotahost.pipeline.job` makes the topics with it, publishes the cluster records and follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

#: Configuration of a topic of which nobody needs the past.
# Ten minutes in ms. Kafka deletes closed segments only, so a segment is closed as early.
SHORT_LIVED: Final = {"cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "600000"}
_TIMEOUT_MS: Final = 20_000
_REPLICAS: Final = 3
_CLOSE_WITHIN: Final = 2  # seconds


class JvmKafka:
    """Makes clients from one configuration in Java's names, which contains secrets. Py4J converts dicts and lists."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        """Connects nothing yet."""
        self._jvm: Any = spark._jvm
        self._config: dict[str, Any] = dict(config)

    def cluster(self) -> tuple[str, list[str]]:
        """The cluster's id, and the ids of its brokers that are alive.

        Raises:
            Py4JJavaError: the cluster doesn't answer.
        """
        with closing(self._admin()) as admin:
            described = admin.describeCluster()
            brokers = [node.idString() for node in _items(described.nodes().get())]
            return described.clusterId().get(), brokers

    def ensure(
        self, topics: Mapping[str, Mapping[str, str]], partitions: Mapping[str, Callable[[int], int]] | None = None
    ) -> None:
        """Create the topics that don't exist, each with the configuration given for it, and with one partition.

        Args:
            topics: the configuration of each, by name.
            partitions: by the name of a topic, the function from the number of brokers to its number of partitions.

        Raises:
            Py4JJavaError: the cluster doesn't answer, or refuses to create a topic.
        """
        with closing(self._admin()) as admin:
            present = set(_items(admin.listTopics().names().get()))
            brokers = admin.describeCluster().nodes().get().size()
            for name in topics.keys() - present:
                number = partitions[name](brokers) if partitions and name in partitions else 1
                self._create(admin, name, number, topics[name], min(_REPLICAS, brokers))

    def _create(self, admin: Any, name: str, partitions: int, config: Mapping[str, str], replicas: int) -> None:
        make = self._jvm.org.apache.kafka.clients.admin.NewTopic
        topic = make(name, partitions, self._jvm.java.lang.Short(str(replicas))).configs(dict(config))
        try:
            admin.createTopics([topic]).all().get()
        except Py4JJavaError as problem:
            if "TopicExistsException" not in str(problem.java_exception):  # another pipeline was quicker
                raise

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

    def _admin(self) -> Any:
        settings = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS // 2}
        return self._jvm.org.apache.kafka.clients.admin.Admin.create(self._config | settings)


class JvmProducer:
    """Sends records, and waits until Kafka has written each."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        """Made by :class:`JvmKafka`."""
        # Py4J looks a Java name up package by package, each in all jars: once is enough.
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._close_within = jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN)
        self._producer = producer

    def send(self, topic: str, key: bytes, value: bytes) -> int:
        """Write one record and return its timestamp in ms since the epoch (Kafka's own with LogAppendTime).

        Raises:
            Py4JJavaError: it could not be written.
        """
        return int(self._producer.send(self._record(topic, key, value)).get().timestamp())

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


def _items(java: Any) -> Iterator[Any]:
    """A Java collection's items. Py4J's own iterator ends by a Java exception, which PySpark examines at length."""
    return iter(java.toArray())
