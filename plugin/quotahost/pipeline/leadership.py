"""The leadership decides which of several pipelines publishes: the pipeline launched last. The others stand by.

Two pipelines run for one cluster by mistake, or while one replaces the other; both log it. Each pipeline writes its run
into its records, and readers keep the record of the highest run. This module reads the topic of the cluster records to
find the runs of other pipelines. The publishers ask for their ``role`` with each batch.

Any client that may write to the topic can claim a run. A run that no pipeline can have is refused and counted:
otherwise one record with the largest number would make this pipeline stand by, and it could take no higher run.
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

_WAIT: Final = 2.0  # seconds that a poll waits; the poll returns with the first record


class Leadership:
    """Gives this pipeline its ``run``, its launch time in ms since the epoch, and says whether it leads."""

    def __init__(
        self, consumer: JvmConsumer, silence: float, clusters: Collection[str], now_ms: Callable[[], int],
        refused: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Read the topic to its end, and take a run: Kafka's time now, or more if the topic has a later run.

        While records of a higher run arrive, this pipeline stands by. After ``silence`` seconds without such a record,
        it takes a new, higher run and leads. It publishes for ``clusters``. ``now_ms`` returns Kafka's time in ms since
        the epoch; ``refused`` takes the reason of each record that is refused.
        """
        self._consumer, self._silence, self._clusters = consumer, silence, clusters
        self._now_ms, self._refused = now_ms, refused
        self._lock = threading.Lock()
        self._other_arrived_at = 0.0
        # A client that may write to the topic can claim any number of runs, so there is no log line for each run.
        self._later, self._earlier, self._fault = LoggedOnce(log), LoggedOnce(log), LoggedOnce(log)
        highest = max((self._run_of(key, value) for key, value in consumer.to_the_end()), default=0)
        # Readers ignore records of a lower run. After a clock was set back, Kafka's time would be such a lower run.
        self._highest = self.run = max(now_ms(), highest + 1)

    def role(self) -> tuple[bool, int]:
        """Return whether another pipeline leads, and this one's run, which is new if the other pipeline has stopped."""
        with self._lock:  # the threads of two queries call this method, and the follower's thread changes the state
            if self._highest > self.run and time.monotonic() - self._other_arrived_at > self._silence:
                self.run = self._highest = max(self._now_ms(), self._highest + 1)
                log.warning("the other pipeline has stopped publishing; this one takes over as run %d", self.run)
                self._later.healed()  # if the other pipeline comes back, the log says so again
            return self._highest > self.run, self.run

    def follow(self) -> None:
        """Read the topic's new records. Only one thread may call this method: threads can't share a consumer."""
        # Java's client raises errors of many kinds; the next poll may succeed.
        with self._fault.caught("the cluster records can't be read, so other pipelines go unnoticed: %s", short):
            for key, value in self._consumer.poll(_WAIT):
                self._note(self._run_of(key, value))

    def _note(self, run: int) -> None:
        # The run 0 means that the record doesn't count.
        if run in (0, self.run):
            return
        with self._lock:
            if higher := run > self.run:
                self._highest, self._other_arrived_at = max(self._highest, run), time.monotonic()
        fault, who = self._earlier, "this one was launched later and wins, readers ignore the other's records"
        if higher:
            fault, who = self._later, "it was launched later and wins, this one stands by"
        text = "another pipeline (run %d) publishes for the same cluster as this one (run %d): %s; stop one of them"
        fault.report(text, run, self.run, who)

    def _run_of(self, key: bytes, value: bytes | None) -> int:
        """Return the run of a cluster record; 0 for any other record, and for one that no pipeline can have written."""
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
