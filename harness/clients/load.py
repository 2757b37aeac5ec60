"""A client of librdkafka that keeps going in a thread of its own, and what is measured about it."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from confluent_kafka import ThrottleEvent

from harness.clients.meter import Meter

# Seconds that Kafka's quotas look back by default: `quota.window.num` samples of 1 s.
KAFKA_WINDOW: Final = 11.0
# Broker properties for tests that would not wait so long, and what they make of it.
QUICK_QUOTAS: Final = {"quota.window.num": "3", "controller.quota.window.num": "3"}
QUICK_WINDOW: Final = 3.0


class Throttled(NamedTuple):
    """A response in which a broker said that it throttles: when (monotonic s), who, how long (s)."""

    moment: float
    broker: int
    seconds: float


class Load(ABC):
    """A producer or consumer; as a context manager it is started, and on the way out stopped.

    Attributes:
        meter: what the broker has acknowledged, or what was consumed.
        throttles: the throttle times that brokers reported, in order; 0 s when one stops throttling.
        errors: deliveries or fetches that failed, in librdkafka's words.
    """

    def __init__(self, topic: str) -> None:
        """Nothing is sent or fetched yet."""
        self.topic: Final = topic
        self.meter = Meter()
        self.throttles: list[Throttled] = []
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Starts the client; counting starts."""
        self.meter = Meter()
        # The client lives in the thread's arguments, so that it is destroyed when the thread ends.
        self._thread = threading.Thread(target=self._work, args=(self._connect(),), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends the client. What broke its thread is raised here."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def max_throttle(self, since: float = 0.0) -> float:
        """The longest throttle time in seconds that a broker reported since that monotonic moment."""
        return max((each.seconds for each in list(self.throttles) if each.moment >= since), default=0.0)

    def __enter__(self) -> Self:
        """Starts it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stops it."""
        self.stop()

    @abstractmethod
    def _connect(self) -> Callable[[], None]:
        """Makes the client; returns what the thread does with it until ``_stopping`` is set."""

    def _work(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self._failure = error

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self.throttles.append(Throttled(time.monotonic(), event.broker_id, event.throttle_time))


def settled_rate(
    load: Load, window: float = KAFKA_WINDOW, windows: int = 4, since: float | None = None
) -> float:
    """Waits, and returns the mean bytes/s over some quota windows, the first one left out.

    Kafka lets pass at once what the whole window allows, and then next to nothing until the window has
    passed; hence the smooth mean. Measured so, an eager producer gets 97 to 101% of its quota, also with
    QUICK_QUOTAS. An eager consumer gets 92 to 96%, and with QUICK_QUOTAS only 65 to 90%: Kafka takes back the
    charge of a throttled fetch but not the wait, which is a second too long in each window.

    Args:
        load: must be running.
        window: how far the broker looks back in seconds.
        windows: over how many to measure; three or more.
        since: the monotonic moment when the quota was last changed; None: when the load was started.
            After a quota was lowered to 1/n, Kafka mutes the client for up to n windows first.
    """
    start = (load.meter.started if since is None else since) + window
    end = start + window * windows
    time.sleep(max(0.0, end - time.monotonic()))
    return load.meter.smooth_rate(start, end)
