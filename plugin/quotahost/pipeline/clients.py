"""Kafka's own Java clients in the driver's JVM, and the pipeline's topics: made where absent, with which configuration.

Spark's Kafka source brings these clients along and is configured in their names (JKS keystores, JAAS). An operator
writes that configuration once, for Spark and for this module; confluent-kafka would need a second one in librdkafka's
names. Each question and each write raises Py4JJavaError where the cluster doesn't answer, lacks the topic, or refuses.

:func:`ensure_topics` makes the pipeline's topics where they are absent: before a query starts, and again while it
runs. Where brokers have ``auto.create.topics.enable``, one of them is quicker as soon as a producer of this module or
of Spark's writes to a topic that somebody has deleted: Java's producer has no option against it.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from quotahost.base.errors import Unusable
from quotahost.pipeline import log
from quotahost.pipeline.clock import Written, wall_ms
from quotahost.pipeline.options import Options
from quotahost.pipeline.session import jvm
from quotahost.records.shares import partitions_for
from quotahost.records.topics import CLUSTER_VOLUMES, COMPACTED, REFUSED, SHARES, TICKS, USAGE, WRITABLE

_TIMEOUT_MS: Final = 20_000
# After an outage brokers may have other addresses, so clients begin with bootstrap.servers again.
_ALL: Final = {"metadata.recovery.strategy": "rebootstrap"}
_TIMEOUTS: Final = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS // 2}
_PRODUCER: Final = {
    "acks": "all",
    # Partitions that were added to a topic are seen soon; by default in 5 minutes.
    "metadata.max.age.ms": 10_000,
    # Each send waits for its record, so nothing else would come to fill a batch.
    "linger.ms": 0,
    # Kafka demands that this is no less than linger.ms and request.timeout.ms together.
    "delivery.timeout.ms": _TIMEOUT_MS,
    "request.timeout.ms": _TIMEOUT_MS // 2,
    "max.block.ms": _TIMEOUT_MS,
}
_CLOSE_WITHIN: Final = 2  # seconds
_POLL: Final = 0.25  # seconds that a poll waits on the way to the end


def _items(java: Any) -> Iterator[Any]:
    """A Java collection's items. Py4J's own iterator ends by a Java exception, which PySpark examines at length."""
    return iter(java.toArray())


class JvmProducer:
    """Sends records; several threads may use it."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        # Py4J looks a Java name up package by package, each in all jars: once is enough.
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._close_within = jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN)
        self._producer = producer

    def send(self, topic: str, key: bytes, value: bytes) -> Written:
        """Write one record, and wait until it is written."""
        sent = wall_ms()
        # The timestamp is Kafka's own time with LogAppendTime, else this machine's.
        written = int(self._producer.send(self._record(topic, key, value)).get().timestamp())
        return Written(sent, written, wall_ms())

    def partitions(self, topic: str) -> int:
        return int(self._producer.partitionsFor(topic).size())

    def close(self) -> None:
        """Close it, and give up what is not written within 2 s."""
        self._producer.close(self._close_within)


class JvmConsumer:
    """Polls a topic of one partition from its beginning; one thread at a time may use it."""

    def __init__(self, jvm: Any, consumer: Any, topic: str) -> None:
        self._duration, self._consumer = jvm.java.time.Duration, consumer
        self._partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        consumer.assign([self._partition])
        consumer.seekToBeginning([self._partition])

    def to_the_end(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of the records that are there now."""
        end = int(self._consumer.endOffsets([self._partition]).get(self._partition))
        # By position: a poll may return nothing before the end, and compaction leaves gaps in the offsets.
        while int(self._consumer.position(self._partition)) < end:
            yield from self.poll(_POLL)

    def poll(self, seconds: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of the records that came; waits for the first as long as ``seconds``."""
        polled = self._consumer.poll(self._duration.ofMillis(int(seconds * 1000)))
        for record in _items(polled.records(self._partition)):
            value = record.value()
            yield bytes(record.key() or b""), None if value is None else bytes(value)

    def close(self) -> None:
        # By itself it would wait 30 s for an answer.
        self._consumer.close(self._duration.ofSeconds(_CLOSE_WITHIN))


class JvmKafka:
    """Makes clients from one configuration in Java's names, which contains secrets. Py4J converts dicts and lists."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        self._jvm = jvm(spark)
        self._config: dict[str, Any] = _ALL | dict(config)
        self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(self._config | _TIMEOUTS)

    def cluster(self) -> tuple[str, list[str]]:
        """The cluster's id, and the ids of the brokers in service."""
        described = self._admin.describeCluster()
        brokers = [node.idString() for node in _items(described.nodes().get())]
        return described.clusterId().get(), brokers

    def topics(self, names: Collection[str]) -> dict[str, int]:
        """Those of these topics that this client can see, with their numbers of partitions."""
        # Py4J would ask for each topic of the cluster by itself.
        listed = self._admin.listTopics().names().get()
        there = [name for name in names if listed.contains(name)]
        described = self._admin.describeTopics(there).allTopicNames().get()
        return {name: described.get(name).partitions().size() for name in there}

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic, unless it exists; whether it was created."""
        make = self._jvm.org.apache.kafka.clients.admin.NewTopic
        topic = make(name, partitions, self._jvm.java.lang.Short(str(replicas))).configs(dict(config))
        try:
            self._admin.createTopics([topic]).all().get()
        except Py4JJavaError as problem:
            if "TopicExistsException" not in str(problem.java_exception):
                raise
            return False
        return True

    def producer(self) -> JvmProducer:
        serializer = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
        make = self._jvm.org.apache.kafka.clients.producer.KafkaProducer
        return JvmProducer(self._jvm, make(self._config | _PRODUCER, serializer(), serializer()))

    def consumer(self, topic: str) -> JvmConsumer:
        """A consumer of a topic of one partition, without a group and without commits."""
        deserializer = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        make = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        settings = _TIMEOUTS | {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        return JvmConsumer(self._jvm, make(self._config | settings, deserializer(), deserializer()), topic)

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN))


# ---- the pipeline's topics -------------------------------------------------------------------------

#: Configuration of a topic of which nobody needs the past.
# Its timestamps are Kafka's, by which the pipeline learns Kafka's time before it publishes anything.
_DELETED: Final = WRITABLE | {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
# Ten minutes in ms. Kafka deletes closed segments only, so a segment is closed as early.
_SHORT_LIVED: Final = _DELETED | {"retention.ms": "600000", "segment.ms": "600000"}
#: Of the dead letters: a week, and no more than 1 GiB whatever is written to the topics they come from.
_DEAD_LETTERS: Final = _DELETED | {
    "retention.ms": "604800000", "retention.bytes": "1073741824", "segment.bytes": "67108864",
}  # fmt: skip
_REPLICAS: Final = 3
_GATHERING: Final = 5.0  # seconds for brokers that are still coming up: nobody adds replicas later


def ensure_topics(kafka: JvmKafka, options: Options, wait: Callable[[float], object] = time.sleep) -> None:
    """Create the topics of a pipeline that are absent.

    Raises Unusable if a topic has a form with which the pipeline can't work; Py4JJavaError if the cluster doesn't
    answer, or refuses to create a topic.
    """
    # Whoever leads is found by the order of the records in the first, so it must have one partition.
    single, shares = options.named(CLUSTER_VOLUMES), options.named(SHARES)
    configs = dict.fromkeys((*options.clusters(""), single, options.named(USAGE), shares), COMPACTED)
    configs |= {options.named(REFUSED): _DEAD_LETTERS, options.named(TICKS): _SHORT_LIVED}
    there = kafka.topics(configs)
    if (partitions := there.get(single, 1)) != 1:
        raise Unusable(
            f"topic {single} has {partitions} partitions, and must have one: by the order of its records "
            "pipelines find out which of them publishes. Stop all of them and delete it; the next one makes it anew"
        )
    # Among them may be topics that this client has no right to see; Kafka says that they exist.
    if absent := sorted(configs.keys() - there.keys()):
        brokers = len(kafka.cluster()[1])
        if brokers < _REPLICAS:
            wait(_GATHERING)
            brokers = len(kafka.cluster()[1]) or 1
        replicas, created = min(_REPLICAS, brokers), []
        for name in absent:
            # A broker or another pipeline may be quicker.
            if kafka.create(name, partitions_for(brokers) if name == shares else 1, replicas, configs[name]):
                log.info("created the topic %s with %d replicas", name, replicas)
                created.append(name)
        if created and replicas < _REPLICAS:
            text = "only %d brokers are up, so these topics have as few replicas: %s; reassign them if more come"
            log.warning(text, replicas, ", ".join(created))
