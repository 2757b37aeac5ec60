"""A consumer that keeps going."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from harness.clients.load import Load


class ConsumerLoad(Load):
    """Consumes all partitions of a topic from their beginnings, and at their ends from there again.

    So a topic of some 50 MB lasts for ever. It belongs to no group. Little is fetched ahead (1 MB), so that
    what is consumed follows a change of quota at once. A fetch may end amid a batch, which Kafka charges
    though it is fetched again: ``fill_topic`` makes batches small enough to keep that below 2%.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, rewind: bool = True) -> None:
        """Nothing is fetched yet.

        Args:
            config: librdkafka's, as from ``node.client_config()``; put over the load's own.
            topic: must exist.
            rewind: False to wait for new records at a partition's end instead.
        """
        super().__init__(topic)
        self._config: Final = config
        self._rewind: Final = rewind

    def _connect(self) -> Callable[[], None]:
        own = {
            "group.id": "harness",
            "enable.auto.commit": False,
            "enable.partition.eof": self._rewind,
            "fetch.message.max.bytes": 512 * 1024,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 1024,
            "log_level": 4,
        }
        return partial(self._run, Consumer({**own, "throttle_cb": self._on_throttle, **self._config}))

    def _run(self, client: Consumer) -> None:
        try:
            partitions = client.list_topics(self.topic, timeout=30).topics[self.topic].partitions
            client.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in partitions])
            while not self._stopping.is_set():
                self._process(client, client.consume(500, timeout=0.05))
        finally:
            client.close()

    def _process(self, client: Consumer, messages: list[Message]) -> None:
        good = [message for message in messages if message.error() is None]
        if good:
            self.meter.add(sum(map(len, good)), len(good))
        for message in messages:
            error, partition = message.error(), message.partition()
            if error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None:
                client.seek(TopicPartition(self.topic, partition, OFFSET_BEGINNING))
            elif error is not None:
                self.errors.append(error.str())
