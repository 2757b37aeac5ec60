"""A producer that writes to a topic until it is stopped, and a function that fills a topic.

It puts PRODUCE load on a broker, for tests of producer quotas. ``harness.clients.load`` starts and stops it and
measures its rate.
"""

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from harness.clients.load import Load

# The errors of records that the load itself purged when it stopped; the broker did not reject them.
_GIVEN_UP: Final = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class ProducerLoad(Load):
    """Produces records of zeros, noise or numbers to all partitions of a topic, as fast as the broker takes them.

    Batches are small and the queue is short (1 MB), so that the acknowledged rate follows a change of quota
    immediately. The meter counts the bytes of values; Kafka charges about 8 bytes more per record and 61 per batch.

    Attributes:
        sent: how many records were handed to the client.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topic: str,
        record_size: int = 10_000,
        rate: float | None = None,
        numbered: bool = False,
        noise: bool = False,
    ) -> None:
        """Prepares the load; it sends nothing before ``start()``.

        Args:
            config: librdkafka's properties, as from ``node.client_config()``; they replace the load's own.
            topic: an existing topic.
            record_size: bytes of each value.
            rate: bytes/s to offer; None for as fast as possible. After a stall it makes up for a quarter of a second.
            numbered: the values are "0", "1", ... instead.
            noise: the value consists of random bytes, which cannot be compressed.
        """
        super().__init__(topic)
        self._config: Final = config
        self._value: Final = os.urandom(record_size) if noise else bytes(record_size)
        self._numbered: Final = numbered
        self.sent = 0
        self._rate: Final = rate
        self._offered = 0.0
        self._drain_for = 0.0
        self._undelivered = 0

    def drain(self, timeout: float = 120) -> int:
        """Stops after waiting up to timeout seconds for deliveries; returns how many records were not delivered."""
        self._drain_for = timeout
        self.stop()
        return self._undelivered

    def _run(self) -> None:
        own = {"batch.size": 64 * 1024, "linger.ms": 5, "queue.buffering.max.kbytes": 1024, "log_level": 4}
        client = Producer({**own, "throttle_cb": self._on_throttle, **self._config})
        while not self._stopping.is_set():
            if self._is_ahead():
                client.poll(0.005)
            else:
                self._produce(client)
        self._undelivered = client.flush(self._drain_for)
        client.purge()  # to deliver the queue of a throttled client could take minutes
        client.flush(1)

    def _is_ahead(self) -> bool:
        if self._rate is None:
            return False
        due = self._rate * (time.monotonic() - self.meter.started)
        self._offered = max(self._offered, due - 0.25 * self._rate)
        return self._offered > due

    def _produce(self, client: Producer) -> None:
        value = str(self.sent).encode() if self._numbered else self._value
        try:
            client.produce(self.topic, value, on_delivery=self._delivered)
        except BufferError:
            client.poll(0.05)
        else:
            self._offered += len(value)
            self.sent += 1
            client.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.meter.add(len(message))
        elif error.code() not in _GIVEN_UP:
            self.errors.append(error.str())


def fill_topic(config: Mapping[str, Any], topic: str, size: int) -> None:
    """Produces size bytes, in values of 1,000 bytes and batches of 16 KiB, and waits until they are delivered.

    Raises:
        TimeoutError: not all records were delivered within 120 s.
    """
    client = Producer({"batch.size": 16 * 1024, "log_level": 4, **config})
    for _ in range(size // 1000):
        while True:
            try:
                client.produce(topic, bytes(1000))
                break
            except BufferError:
                client.poll(0.05)
    left = client.flush(120)
    if left:
        raise TimeoutError(f"{left} records of {topic} were not delivered")
