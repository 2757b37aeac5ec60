"""The pipeline uses Kafka's own Java clients, which run in the driver's JVM, and creates its topics with them.

Spark's Kafka source brings these clients along and uses their configuration names (JKS keystores, JAAS). So an operator
writes one configuration for Spark and for this module; confluent-kafka would need a second one in librdkafka's names.
Each request and each write raises Py4JJavaError if the cluster doesn't answer, lacks the topic, or refuses.

:func:`ensure_topics` creates absent topics before a query starts, and again while it runs. If brokers have
``auto.create.topics.enable``, a broker recreates a deleted topic first, as soon as a producer of this module or of
Spark writes to it: Java's producer has no option against that.
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
from quotahost.records.topics import CLUSTER_VOLUMES, REFUSED, SHARES, TICKS, USAGE, WRITABLE, config_of

_TIMEOUT_MS: Final = 20_000
# After an outage brokers may have other addresses, so clients start from bootstrap.servers again.
_ALL: Final = {"metadata.recovery.strategy": "rebootstrap"}
#: For Spark's clients, too: by default Spark would ask a minute or more for the offsets of a deleted topic.
TIMEOUTS: Final = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS // 2)}
_PRODUCER: Final = {
    "acks": "all",
    # The producer finds new partitions of a topic within this time; the default is 5 minutes.
    "metadata.max.age.ms": 10_000,
    # Each send waits until its record is written, so a batch gains nothing from waiting for more records.
    "linger.ms": 0,
    # Kafka requires at least the sum of linger.ms and request.timeout.ms.
    "delivery.timeout.ms": _TIMEOUT_MS,
    "request.timeout.ms": _TIMEOUT_MS // 2,
    "max.block.ms": _TIMEOUT_MS,
}
_CLOSE_WITHIN: Final = 2  # seconds
_POLL: Final = 0.25  # seconds that a poll waits in to_the_end


def _items(java: Any) -> Iterator[Any]:
    """Iterate over a Java collection. Py4J's own iterator ends with a Java exception, which PySpark handles slowly."""
    return iter(java.toArray())


class JvmProducer:
    """Sends records; several threads may use one producer."""

    def __init__(self, jvm: Any, producer: Any) -> None:
        # Py4J searches all jars for each package of a Java name, so the name is looked up only once.
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._close_within = jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN)
        self._producer = producer

    def send(self, topic: str, key: bytes, value: bytes) -> Written:
        """Write one record, and wait until it is written."""
        sent = wall_ms()
        # The timestamp is the broker's time if the topic has LogAppendTime, else this machine's time.
        written = int(self._producer.send(self._record(topic, key, value)).get().timestamp())
        return Written(sent, written, wall_ms())

    def partitions(self, topic: str) -> int:
        return int(self._producer.partitionsFor(topic).size())

    def close(self) -> None:
        """Close the producer, and drop records that are not written within 2 s."""
        self._producer.close(self._close_within)


class JvmConsumer:
    """Polls a topic of one partition from its beginning; one thread at a time may use a consumer."""

    def __init__(self, jvm: Any, consumer: Any, topic: str) -> None:
        self._duration, self._consumer = jvm.java.time.Duration, consumer
        self._partition = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        consumer.assign([self._partition])
        consumer.seekToBeginning([self._partition])

    def to_the_end(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the keys and values of the records that the topic has now."""
        end = int(self._consumer.endOffsets([self._partition]).get(self._partition))
        # The loop checks the position: a poll may return nothing before the end, and compaction leaves gaps in offsets.
        while int(self._consumer.position(self._partition)) < end:
            yield from self.poll(_POLL)

    def poll(self, seconds: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the keys and values of new records; wait for the first record up to ``seconds``."""
        polled = self._consumer.poll(self._duration.ofMillis(int(seconds * 1000)))
        for record in _items(polled.records(self._partition)):
            value = record.value()
            yield bytes(record.key() or b""), None if value is None else bytes(value)

    def close(self) -> None:
        # By default the consumer would wait 30 s for an answer.
        self._consumer.close(self._duration.ofSeconds(_CLOSE_WITHIN))


class JvmKafka:
    """Makes clients from one configuration, which has Java's names and secrets. Py4J converts dicts and lists."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        self._jvm = jvm(spark)
        self._config: dict[str, Any] = _ALL | dict(config)
        self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(self._config | TIMEOUTS)

    def cluster(self) -> tuple[str, list[str]]:
        """Return the cluster's id, and the ids of the brokers in service."""
        described = self._admin.describeCluster()
        brokers = [node.idString() for node in _items(described.nodes().get())]
        return described.clusterId().get(), brokers

    def topics(self, names: Collection[str]) -> dict[str, int]:
        """Return those of these topics that this client can see, with their numbers of partitions."""
        # Reading all names would cost a call of Py4J for each topic of the cluster.
        listed = self._admin.listTopics().names().get()
        there = [name for name in names if listed.contains(name)]
        described = self._admin.describeTopics(there).allTopicNames().get()
        return {name: described.get(name).partitions().size() for name in there}

    def ends(self, names: Collection[str]) -> dict[tuple[str, int], int]:
        """Return the offset behind the last record of each partition of these topics, by topic and partition."""
        latest = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        at = self._jvm.org.apache.kafka.common.TopicPartition
        wanted = [at(name, partition) for name, count in self.topics(names).items() for partition in range(count)]
        found = self._admin.listOffsets(dict.fromkeys(wanted, latest)).all().get()
        return {(each.topic(), each.partition()): found.get(each).offset() for each in wanted}

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic, unless it exists; return whether this call created it."""
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
        """Return a consumer of a topic of one partition, without a group and without commits."""
        deserializer = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        make = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        settings = TIMEOUTS | {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        return JvmConsumer(self._jvm, make(self._config | settings, deserializer(), deserializer()), topic)

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofSeconds(_CLOSE_WITHIN))


# ---- the pipeline's topics -------------------------------------------------------------------------

#: The configuration of topics whose old records nobody needs.
# The broker sets the timestamps, so the pipeline learns Kafka's time before it publishes anything.
_DELETED: Final = WRITABLE | {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
# Ten minutes in ms. Kafka deletes closed segments only, so a segment is closed after the same time.
_SHORT_LIVED: Final = _DELETED | {"retention.ms": "600000", "segment.ms": "600000"}
#: Dead letters stay for a week, and take no more than 1 GiB, however many records are refused.
_DEAD_LETTERS: Final = _DELETED | {
    "retention.ms": "604800000", "retention.bytes": "1073741824", "segment.bytes": "67108864",
}  # fmt: skip
_REPLICAS: Final = 3
_GATHERING: Final = 5.0  # seconds to wait for brokers that are still starting: nobody adds replicas later


def ensure_topics(kafka: JvmKafka, options: Options, wait: Callable[[float], object] = time.sleep) -> None:
    """Create the topics of a pipeline that are absent.

    Raises Unusable if the pipeline can't work with a topic's partitions; Py4JJavaError if the cluster doesn't answer,
    or refuses to create a topic.
    """
    # The order of the cluster records decides which pipeline leads, so their topic must have one partition.
    single, shares = options.named(CLUSTER_VOLUMES), options.named(SHARES)
    configs = {name: config_of(name) for name in (*options.clusters(""), single, options.named(USAGE), shares)}
    configs |= {options.named(REFUSED): _DEAD_LETTERS, options.named(TICKS): _SHORT_LIVED}
    there = kafka.topics(configs)
    if (partitions := there.get(single, 1)) != 1:
        raise Unusable(
            f"topic {single} has {partitions} partitions, and must have one: the order of its records decides which "
            "pipeline publishes. Stop all pipelines and delete the topic; the next pipeline creates it again"
        )
    # Some of these topics may exist without this client's right to see them; create() then returns False.
    if absent := sorted(configs.keys() - there.keys()):
        brokers = len(kafka.cluster()[1])
        if brokers < _REPLICAS:
            wait(_GATHERING)
            brokers = len(kafka.cluster()[1]) or 1
        replicas, created = min(_REPLICAS, brokers), []
        for name in absent:
            # A broker or another pipeline may create the topic first.
            if kafka.create(name, partitions_for(brokers) if name == shares else 1, replicas, configs[name]):
                log.info("created the topic %s with %d replicas", name, replicas)
                created.append(name)
        if created and replicas < _REPLICAS:
            text = "only %d brokers are up, so these topics have only so many replicas: %s; add replicas later"
            log.warning(text, replicas, ", ".join(created))
