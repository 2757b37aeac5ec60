"""Stand-ins for the Spark pipeline, in plain Python.

``FakePipeline`` reads all brokers' snapshots and publishes the record of the cluster, four times a second.
``FakeShares`` reads their usage and divides the cluster-wide quotas, twice a second.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from harness.kafka.cluster import Cluster
from harness.max_min import shares
from harness.rollup import Known, Sample, rollup
from harness.system.background import Background
from harness.system.waiting import eventually
from quotahost.pipeline.cluster import Rules
from quotahost.records import shares as share_records
from quotahost.records import usage as usage_records
from quotahost.records.cluster_volumes import ClusterRecord, encode
from quotahost.records.shares import Shares
from quotahost.records.snapshot import decode
from quotahost.records.usage import Usage
from tests.broker.support.seen import gauge
from tests.broker.support.volumes import SNAPSHOTS

TOPIC: Final = "__quotahost_cluster_volumes"
RECORD_SOURCE, SNAPSHOT_SOURCE = "cluster-volumes", "snapshots"
USAGE: Final = "__quotahost_usage"
SHARES: Final = "__quotahost_shares"
SHARES_VALIDITY: Final = timedelta(seconds=8)
PERIOD: Final = 0.25  # seconds between two records
BATCH: Final = 20  # snapshots of one read
# This client-id is exempt if clients don't authenticate, so its records pass the fence in a PAUSE.
CLIENT_ID: Final = "quotahost-0"


class FakePipeline(Background):
    """Publishes for the time of a ``with`` block. A broker that was silent for ``validity`` seconds is stale.

    It begins with the first snapshot of the topic and publishes only when it has read all. It takes the time of reading
    for the time of a snapshot, so it would otherwise publish an old state as the present one.
    """

    def __init__(self, cluster: Cluster, validity: float) -> None:
        """Connects to nothing yet."""
        super().__init__()
        self._cluster, self._validity = cluster, validity
        self._run_id = int(time.time() * 1000)
        self._latest: dict[str, Sample] = {}
        self.sequence = 0

    def _run(self) -> None:
        own = {"group.id": "pipeline", "enable.auto.commit": False}
        consumer = Consumer(self._cluster.client_config(client_id="pipeline") | own)
        producer = Producer(self._cluster.client_config(client_id=CLIENT_ID))
        consumer.assign([TopicPartition(SNAPSHOTS, 0, OFFSET_BEGINNING)])
        while not self._stopping.is_set():
            messages = consumer.consume(BATCH, 0.1)
            for message in messages:
                if message.error() is None:
                    snapshot = decode(message.key(), message.value() or b"")
                    self._latest[snapshot.broker] = Sample(datetime.now(UTC), 0, snapshot)
            if self._latest and len(messages) < BATCH:
                record = self._record()
                producer.produce(TOPIC, key=record.cluster.encode(), value=encode(record))
            producer.poll(0)
            self._stopping.wait(PERIOD)
        producer.flush(10)
        consumer.close()

    def _record(self) -> ClusterRecord:
        self.sequence += 1
        known = {(SNAPSHOTS, broker): Known(latest, None) for broker, latest in self._latest.items()}
        rules = Rules("", timedelta(seconds=self._validity))
        (record,) = rollup(known, rules, self._run_id, self.sequence, int(time.time() * 1000))
        return record


def wait_for_source(cluster: Cluster, source: str, timeout: float = 120) -> None:
    """Waits until every broker uses this factor source."""
    bean, what = f"FactorSource,name={source}", f"{source} answers on all brokers"
    eventually(lambda: all(gauge(node, bean, "Answers") == 1 for node in cluster.brokers), timeout, what)


class FakeShares(Background):
    """Reads usage and publishes shares for the time of a ``with`` block."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Takes librdkafka's properties."""
        super().__init__()
        self._config = {**config, "log_level": 4, "topic.metadata.refresh.interval.ms": 500}
        self.partitions = self.sequence = 0
        self._run_ms = int(time.time() * 1000)
        self._latest: dict[str, Usage] = {}

    def _run(self) -> None:
        consumer = Consumer({**self._config, "group.id": "pipeline", "enable.auto.commit": False})
        consumer.assign([TopicPartition(USAGE, 0, OFFSET_BEGINNING)])
        producer = Producer({**self._config, "linger.ms": 0})
        while not self._stopping.is_set():
            for message in consumer.consume(500, 0.5):
                if message.error() is None:
                    usage = usage_records.decode(message.key(), message.value() or b"")
                    self._latest[usage.broker] = usage
            self.sequence += 1
            self._publish(producer)
        consumer.close()

    def _publish(self, producer: Producer) -> None:
        now = datetime.now(UTC)
        self.partitions = len(producer.list_topics(SHARES, timeout=60).topics[SHARES].partitions)
        silent = {each.broker for each in self._latest.values() if now - each.captured_at > SHARES_VALIDITY}
        for broker, row in shares(self._latest.values(), silent).items():
            record = Shares(broker, self._run_ms, self.sequence, now, row)
            partition = share_records.partition_of(broker, self.partitions)
            producer.produce(SHARES, key=broker, value=share_records.encode(record), partition=partition)
        producer.flush(5)
