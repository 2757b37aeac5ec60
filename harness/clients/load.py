"""The base of loads: a client that runs on a thread of its own until it is stopped, and its measured rate.

``ProducerLoad`` and ``ConsumerLoad`` derive from it. A load counts bytes in a ``Meter`` and keeps the throttle times
that brokers report.
"""

import time
from typing import Final, Self

from confluent_kafka import ThrottleEvent

from harness.clients.meter import Meter
from harness.system.background import Background

# The default window of Kafka's quotas, in seconds: `quota.window.num` samples of 1 s.
KAFKA_WINDOW: Final = 11.0
# Broker properties that shorten the window for tests, and the resulting window in seconds.
QUICK_QUOTAS: Final = {"quota.window.num": "3", "controller.quota.window.num": "3"}
QUICK_WINDOW: Final = 3.0


class Load(Background):
    """A producer or a consumer. ``_run`` makes the client, so that librdkafka destroys it when the thread ends.

    Attributes:
        topic: the topic that the load writes or reads; for several topics, that of the latest record.
        meter: counts the bytes that the broker acknowledged, or that were consumed.
        errors: librdkafka's messages about deliveries or fetches that failed.
    """

    def __init__(self, topic: str) -> None:
        """Prepares the load; ``start()`` connects it."""
        super().__init__()
        self.topic = topic
        self.meter = Meter()
        self._throttles: list[tuple[float, float]] = []  # time of each report (monotonic s), and the reported seconds
        self.errors: list[str] = []

    def start(self) -> Self:
        """Starts the client, with a new meter."""
        self.meter = Meter()
        return super().start()

    def max_throttle(self, since: float = 0.0) -> float:
        """Returns the longest throttle time in seconds that a broker reported since that monotonic time."""
        return max((seconds for moment, seconds in list(self._throttles) if moment >= since), default=0.0)

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._throttles.append((time.monotonic(), event.throttle_time))
