"""Which of several pipelines leads: the one that was launched last publishes, the others stand by, and all log it.

Two pipelines for one cluster are a mistake, or a replacement under way. Each gives its records a run, and readers
keep the record of the highest run. The publishers ask for their ``role`` with each batch.

Whoever may write to the topic can claim a run. One that no pipeline can have is refused and counted: otherwise a single
record of the largest number would make this pipeline stand by, and there would be no higher run to go on with.
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from quotahost.base.background import LoggedOnce
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.clients import JvmConsumer
from quotahost.records.cluster_volumes import decode
from quotahost.records.codec import Refused
from quotahost.records.fields import MAX_AHEAD_MS

_WAIT: Final = 2.0  # seconds that a poll waits; it returns with the first record


class Leadership:
    """Gives this pipeline its ``run``, the time of its launch in ms since the epoch, and tells who leads."""

    def __init__(
        self, consumer: JvmConsumer, silence: float, clusters: Collection[str], now_ms: Callable[[], int],
        refused: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Read the topic to its end, and take a run: Kafka's time now, if that is the highest.

        While records of a higher run come, this pipeline stands by; once none has come for ``silence`` seconds, it goes
        on with a new, higher run. It publishes for ``clusters``. ``now_ms`` is Kafka's time in ms since the epoch;
        ``refused`` takes the reason of each record that is refused.
        """
        self._consumer, self._silence, self._clusters = consumer, silence, clusters
        self._now_ms, self._refused = now_ms, refused
        self._lock = threading.Lock()
        self._other_arrived_at = 0.0
        # Whoever may write to the topic can claim as many runs as they like, so neither logs run by run.
        self._later, self._earlier, self._fault = LoggedOnce(log), LoggedOnce(log), LoggedOnce(log)
        highest = max((self._run_of(key, value) for key, value in consumer.to_the_end()), default=0)
        # Readers pass over records of a lower run, such as this pipeline's would have after a clock was put back.
        self._highest = self.run = max(now_ms(), highest + 1)

    def role(self) -> tuple[bool, int]:
        """Whether a pipeline that was launched later publishes, and this one's run: a new one if that has ceased to."""
        with self._lock:
            # The threads of two queries ask, and the follower's changes it: hence the lock.
            if self._highest > self.run and time.monotonic() - self._other_arrived_at > self._silence:
                self.run = self._highest = max(self._now_ms(), self._highest + 1)
                log.warning("the other pipeline's records come no more; this one goes on as run %d", self.run)
                self._later.healed()  # if the other pipeline comes back, the log says so again
            return self._highest > self.run, self.run

    def follow(self) -> None:
        """Read what has come to the topic. One thread calls: two must not use one consumer."""
        try:
            for key, value in self._consumer.poll(_WAIT):
                self._note(self._run_of(key, value))
            self._fault.healed()
        except Exception as problem:  # of Java's clients, of any kind; the next poll may succeed
            self._fault.report("other pipelines can't be watched for: %s", short(problem))

    def _note(self, run: int) -> None:
        # 0 is no cluster record's.
        if run in (0, self.run):
            return
        with self._lock:
            if higher := run > self.run:
                self._highest, self._other_arrived_at = max(self._highest, run), time.monotonic()
        fault, who = self._earlier, "this one was launched later and wins, readers pass over the other's records"
        if higher:
            fault, who = self._later, "it was launched later and wins, this one stands by"
        text = "another pipeline publishes the same, run %d, this one is run %d: %s; stop one of them"
        fault.report(text, run, self.run, who)

    def _run_of(self, key: bytes, value: bytes | None) -> int:
        """The run of a cluster record; 0 of any other record, and of one that no pipeline can have written."""
        if value is None:
            return 0
        try:
            record = decode(key, value)
        except Refused as refused:
            reason: str = refused.reason
        else:
            ahead = record.run > self._now_ms() + MAX_AHEAD_MS
            reason = "cluster" if record.cluster not in self._clusters else "ahead" if ahead else ""
            if not reason:
                return record.run
        self._refused(reason)
        return 0
