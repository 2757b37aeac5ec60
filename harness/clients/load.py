"""The base of loads: a client that runs on a thread of its own until it is stopped, and its measured rate.

``ProducerLoad`` and ``ConsumerLoad`` derive from it. A load counts bytes in a ``Meter`` and keeps the throttle times
that brokers report.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Self

from confluent_kafka import ThrottleEvent

from harness.clients.meter import Meter

# The window of Kafka's quotas by default, in seconds: `quota.window.num` samples of 1 s.
KAFKA_WINDOW: Final = 11.0
# Broker properties that shorten the window for tests, and the resulting window in seconds.
QUICK_QUOTAS: Final = {"quota.window.num": "3", "controller.quota.window.num": "3"}
QUICK_WINDOW: Final = 3.0


class Load(ABC):
    """A producer or a consumer. A ``with`` block starts it and stops it at its end.

    Attributes:
        topic: the topic that it writes or reads; a producer of several has the one of its newest record here.
        meter: counts the bytes that the broker acknowledged, or that were consumed.
        errors: librdkafka's messages about deliveries or fetches that failed.
    """

    def __init__(self, topic: str) -> None:
        """Prepares the load; ``start()`` connects it."""
        self.topic = topic
        self.meter = Meter()
        self._throttles: list[tuple[float, float]] = []  # when brokers reported it (monotonic s), and how many seconds
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Starts the client, with a new meter."""
        self.meter = Meter()
        # Only the thread's arguments hold the client, so librdkafka destroys it when the thread ends.
        self._thread = threading.Thread(target=self._work, args=(self._connect(),), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends the client, and raises the exception that ended its thread, if there is one."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def max_throttle(self, since: float = 0.0) -> float:
        """The longest throttle time in seconds that a broker reported since that monotonic moment."""
        return max((seconds for moment, seconds in list(self._throttles) if moment >= since), default=0.0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _connect(self) -> Callable[[], None]:
        """Creates the client; returns the function that the thread runs until ``_stopping`` is set."""

    def _work(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self._failure = error

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._throttles.append((time.monotonic(), event.throttle_time))
