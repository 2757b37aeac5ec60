"""A consumer that reads a topic until it is stopped.

It puts FETCH load on a broker, for tests of consumer quotas. ``harness.clients.load`` starts and stops it and
measures its rate.
"""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from harness.clients.load import Load


class ConsumerLoad(Load):
    """Consumes all partitions of a topic from the beginning, and starts again at each partition's end.

    So a topic of 50 MB is enough forever, unless ``enable.partition.eof`` is given as False. The load belongs to no
    consumer group. It fetches only 1 MB ahead, so that its rate follows a change of quota immediately. A fetch may end
    in the middle of a batch; Kafka charges for that part although the client must fetch the batch again. ``fill_topic``
    makes batches so small that this cost stays below 2%.
    """

    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        """Prepares the load; it fetches nothing before ``start()``.

        Args:
            config: librdkafka's properties, as from ``node.client_config()``; they replace the load's own.
            topic: an existing topic.
        """
        super().__init__(topic)
        self._config: Final = config

    def _run(self) -> None:
        own = {
            "group.id": "harness",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 512 * 1024,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 1024,
            "log_level": 4,
        }
        client = Consumer({**own, "throttle_cb": self._on_throttle, **self._config})
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
