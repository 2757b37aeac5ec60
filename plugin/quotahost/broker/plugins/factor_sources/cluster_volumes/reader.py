"""Follows the topic of the clusters' volumes and keeps the newest record of this broker's own cluster.

The pipeline writes one record for each cluster, with the cluster's id as its key. The follower calls this module on
its own thread; ``ClusterVolumesSource`` asks on the host thread for the newest record and its age.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quotahost.api import Context
from quotahost.kafka.follower import Follower
from quotahost.kafka.newest import Newest
from quotahost.records.cluster_volumes import ClusterRecord, decode
from quotahost.records.codec import Refused

_SILENCE: Final = 30.0  # seconds without any record after which the topic is read again; one is due every few seconds
#: Texts to remember: they name runs, whose numbers come from the topic and must fill neither memory nor log.
_MOST_LOGGED: Final = 100


class RecordReader:
    """Reads the whole topic at the start and then follows it; records of other clusters are passed over.

    Attributes:
        topic_read: whether all that was in the topic has been read, or the topic doesn't exist.
    """

    def __init__(self, context: Context[object], clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """It reads from ``follow`` on. ``clock`` monotonic, ``wall`` since the epoch, both in seconds."""
        self._context = context
        self._newest: Newest[ClusterRecord] = Newest(clock, wall)
        self._key = b""
        self._follower: Follower | None = None
        self._logged: set[str] = set()
        self.topic_read = False

    def follow(self, cluster_id: str) -> None:
        """Begin to read, as soon as the cluster's id is known."""
        if self._follower is None and cluster_id:
            self._key = cluster_id.encode()
            self._follower = Follower(self._context, self._topic, self, _SILENCE, self.absent)

    def known(self) -> tuple[ClusterRecord | None, float]:
        """The newest record and its age in seconds; see ``Newest.known``."""
        return self._newest.known()

    def waits_for(self) -> str:
        """A sentence about what is still missing before the reader knows a record, "" if nothing is."""
        if self._follower is None:
            return "the cluster's id is not read from the log directories yet"
        if not self.topic_read:
            return f"topic {self._topic} is not read yet"
        return "" if self._newest.known()[0] else f"topic {self._topic} holds no record of this cluster yet"

    def close(self) -> None:
        """End the thread and the client."""
        if self._follower:
            self._follower.close()

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        """See quotahost.kafka.follower.Reader."""
        if key != self._key:
            return
        if value is None:
            self._newest.remove()
            return
        try:
            reason = self._take(decode(key, value), live, written_ms)
        except Refused as refused:
            reason = refused.reason
            self._log_once(reason, "a record of %s was refused: %s", self._topic, refused)
        if reason:
            self._context.metrics.count("Refused", reason, "Records")

    def caught_up(self) -> None:
        """See quotahost.kafka.follower.Reader."""
        if not self.topic_read:
            self._context.log.info("topic %s is read", self._topic)
        self.topic_read = True

    def absent(self) -> None:
        """The topic doesn't exist (yet)."""
        # Nothing can be read, so the standby needn't wait for it.
        self.topic_read = True

    @property
    def _topic(self) -> str:
        return self._context.settings.cluster_volumes_topic

    def _take(self, record: ClusterRecord, live: bool, written_ms: int | None) -> str:
        """Keep the record if it is newer; "" or the reason why it is refused."""
        validity = self._context.settings.validity.total_seconds()
        # Judged before Newest sees it: kept, it would count as fresh by its arrival.
        if _behind(record) > validity:
            text = "the pipeline is behind: the newest snapshot in its records is older than validity (%g s)"
            self._log_once("behind", text, validity)
            return "behind" if live else ""
        reason = self._newest.take(record, live, validity, written_ms)
        if reason == "other-pipeline":
            text = "two pipelines run for this cluster: records of run %d are refused, those of a newer run are taken"
            self._log_once(f"run {record.run}", text, record.run)
        elif reason == "ahead":
            text = "records of run %d are refused: a run is a time of launch in ms, and that one is still to come"
            self._log_once("ahead", text, record.run)
        return reason

    def _log_once(self, what: str, text: str, *values: object) -> None:
        if what not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(what)
            self._context.log.warning(text, *values)


def _behind(record: ClusterRecord) -> float:
    """The age in seconds of the newest snapshot in the record when the record was made.

    A pipeline that has lost its place reads all snapshots again, and meanwhile publishes how the disks once were.
    """
    if not record.reporting or record.newest_snapshot_at is None:
        return 0.0
    return (record.computed_at - record.newest_snapshot_at).total_seconds()
