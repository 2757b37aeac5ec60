"""The base of loads: a client that runs on a thread of its own until it is stopped, and its measured rate.

``ProducerLoad`` and ``ConsumerLoad`` derive from it. A load counts bytes in a ``Meter`` and keeps the throttle times
that brokers report; ``settled_rate`` turns the count into the rate that a quota should allow.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from confluent_kafka import ThrottleEvent

from harness.clients.meter import Meter

# The window of Kafka's quotas by default, in seconds: `quota.window.num` samples of 1 s.
KAFKA_WINDOW: Final = 11.0
# Broker properties that shorten the window for tests, and the resulting window in seconds.
QUICK_QUOTAS: Final = {"quota.window.num": "3", "controller.quota.window.num": "3"}
QUICK_WINDOW: Final = 3.0


class Throttled(NamedTuple):
    """One report of throttling: its moment (monotonic seconds), the broker's id, and the throttle time in seconds."""

    moment: float
    broker: int
    seconds: float


class Load(ABC):
    """A producer or a consumer. A ``with`` block starts it and stops it at its end.

    Attributes:
        topic: the topic that it writes or reads; a producer of several has the one of its newest record here.
        meter: counts the bytes that the broker acknowledged, or that were consumed.
        throttles: the throttle times that brokers reported, in order; 0 s when a broker stops throttling.
        errors: librdkafka's messages about deliveries or fetches that failed.
    """

    def __init__(self, topic: str) -> None:
        """Prepares the load; ``start()`` connects it."""
        self.topic = topic
        self.meter = Meter()
        self.throttles: list[Throttled] = []
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
        return max((each.seconds for each in list(self.throttles) if each.moment >= since), default=0.0)

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
        self.throttles.append(Throttled(time.monotonic(), event.broker_id, event.throttle_time))


def settled_rate(load: Load, window: float = KAFKA_WINDOW, windows: int = 4, since: float | None = None) -> float:
    """Waits for some quota windows, and returns the mean bytes/s over all of them but the first.

    Kafka lets a client use up a whole window's bytes at once, and then almost nothing until the window has passed.
    Therefore this is the smooth mean (``Meter.smooth_rate``). By it an eager producer gets 97 to 101% of its quota,
    also with QUICK_QUOTAS. An eager consumer gets 92 to 96%, and with QUICK_QUOTAS only 65 to 90%: Kafka takes back
    the charge of a throttled fetch but not the wait, which is a second too long in each window.

    Args:
        load: a running load.
        window: the broker's quota window in seconds.
        windows: the number of windows to measure over, three or more.
        since: the monotonic moment of the last change of the quota; None means the load's start.
            After a quota was lowered to 1/n, Kafka first mutes the client for up to n windows.
    """
    start = (load.meter.started if since is None else since) + window
    end = start + window * windows
    time.sleep(max(0.0, end - time.monotonic()))
    return load.meter.smooth_rate(start, end)
