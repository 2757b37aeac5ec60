"""Whether another pipeline publishes for the same clusters: the one launched last wins, and both say so."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from quotahost.pipeline.kafka.clients import JvmConsumer
from quotahost.records.cluster_volumes import decode
from quotahost.records.codec import Refused

log = logging.getLogger("quotahost.pipeline")

_POLL: Final = 0.5  # seconds
_CLOSE_WITHIN: Final = 5.0  # seconds


class Leadership:
    """Follows the topic that is published to, and gives this pipeline its run.

    ``run`` is the time of the launch in ms since the epoch, or one more than the highest that was there before.
    While records of a higher run come, this pipeline stands by; when they have ceased for ``silence`` seconds, it
    goes on with a new run, which is higher.
    """

    def __init__(self, silence: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds."""
        self._silence, self._clock = silence, clock
        self._lock = threading.Lock()
        self._highest = 0
        self._heard = 0.0
        self._told: int | None = None
        self.standing_by = False
        self.run = 0

    def begin(self, consumer: JvmConsumer, launched: int) -> None:
        """Read what is there, and take a run: ``launched`` (ms since the epoch), if it is the highest."""
        end = consumer.end()
        while consumer.at() < end:
            for key, value in consumer.poll(_POLL):
                self._highest = max(self._highest, _run(key, value))
        self.run = max(launched, self._highest + 1)
        self._highest = self.run

    def note(self, run: int) -> None:
        """A record with this run has come."""
        if run in (0, self.run):
            return
        with self._lock:
            higher = run > self.run
            if higher:
                self._highest, self._heard = max(self._highest, run), self._clock()
            if run != self._told:
                self._told = run
                log.warning(
                    "another pipeline publishes the same, run %d, this one is run %d: %s; stop one of them",
                    run, self.run, "it was launched later and wins, this one stands by" if higher
                    else "this one was launched later and wins, readers pass over the other's records",
                )  # fmt: skip

    def stands_by(self) -> bool:
        """Whether a later one publishes; if it no longer does, this pipeline has a new run by now."""
        with self._lock:
            standing_by = self._highest > self.run
            if standing_by and self._clock() - self._heard > self._silence:
                self.run = self._highest = max(int(time.time() * 1000), self._highest + 1)
                log.warning("the other pipeline publishes no more; this one goes on as run %d", self.run)
                self._told, standing_by = None, False
            self.standing_by = standing_by
            return standing_by


class Watch:
    """The thread that follows the topic of the cluster records, for Leadership."""

    def __init__(self, consumer: JvmConsumer, leadership: Leadership) -> None:
        """Begins at once, where ``leadership.begin`` has ended."""
        self._consumer, self._leadership = consumer, leadership
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="quotahost-leadership", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, and the consumer."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _follow(self) -> None:
        told = False
        while not self._stop.is_set():
            try:
                for key, value in self._consumer.poll(_POLL):
                    self._leadership.note(_run(key, value))
                told = False
            except Exception as problem:
                if not told and not self._stop.is_set():
                    log.warning("other pipelines can't be watched for: %s", problem)
                told = True
                self._stop.wait(_POLL)
        self._consumer.close()


def _run(key: bytes, value: bytes | None) -> int:
    """0 for what is no record of a cluster."""
    try:
        return decode(key, value).run if value is not None else 0
    except Refused:
        return 0
