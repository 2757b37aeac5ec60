"""A stand-in for the Spark pipeline's part about usage: divides cluster-wide quotas in plain Python, twice a second."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from quotahost.records import shares as share_records
from quotahost.records import usage as usage_records
from quotahost.records.shares import Shares
from quotahost.records.usage import Usage
from tests.broker.support.background import Background
from tests.reference.max_min import shares

USAGE: Final = "__quotahost_usage"
SHARES: Final = "__quotahost_shares"
VALIDITY: Final = timedelta(seconds=8)


class FakeShares(Background):
    """Reads usage and publishes shares for the time of a ``with`` block."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Takes librdkafka's properties."""
        super().__init__()
        self._config = {**config, "log_level": 4, "topic.metadata.refresh.interval.ms": 500}
        self.partitions = self.sequence = 0
        self._run_ms = int(time.time() * 1000)
        self._newest: dict[str, Usage] = {}

    def _run(self) -> None:
        consumer = Consumer({**self._config, "group.id": "pipeline", "enable.auto.commit": False})
        consumer.assign([TopicPartition(USAGE, 0, OFFSET_BEGINNING)])
        producer = Producer({**self._config, "linger.ms": 0})
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.5):
                if message.error() is None:
                    usage = usage_records.decode(message.key(), message.value() or b"")
                    self._newest[usage.broker] = usage
            self.sequence += 1
            self._publish(producer)
        consumer.close()

    def _publish(self, producer: Producer) -> None:
        now = datetime.now(UTC)
        self.partitions = len(producer.list_topics(SHARES, timeout=10).topics[SHARES].partitions)
        silent = {each.broker for each in self._newest.values() if now - each.captured_at > VALIDITY}
        for broker, row in shares(self._newest.values(), silent).items():
            record = Shares(broker, self._run_ms, self.sequence, now, row)
            partition = share_records.partition_of(broker, self.partitions)
            producer.produce(SHARES, key=broker, value=share_records.encode(record), partition=partition)
        producer.flush(5)
