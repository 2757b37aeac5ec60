"""Follows the topic of the clusters' volumes and keeps the newest record of this broker's own cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quotahost.api import Context
from quotahost.plugins.kafka.follower import Follower
from quotahost.plugins.kafka.newest import Newest
from quotahost.records.cluster_volumes import ClusterRecord, decode
from quotahost.records.codec import Refused

_SILENCE: Final = 30.0  # seconds without any record after which the topic is read anew; one is due every few


class ClusterReader:
    """Reads the whole topic at the start, and follows it; records of other clusters are passed over.

    Attributes:
        answered: whether all that was there has been read, or there is no such topic.
    """

    def __init__(
        self, context: Context[object], clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        """It reads from ``follow`` on. ``clock`` monotonic, ``wall`` since the epoch, both in seconds."""
        self._context = context
        self._newest: Newest[ClusterRecord] = Newest(clock, wall)
        self._key = b""
        self._follower: Follower | None = None
        self._told: set[str] = set()
        self.answered = False

    def follow(self, cluster: str) -> None:
        """Begin to read once the cluster's id is known."""
        if self._follower is None and cluster:
            self._key = cluster.encode()
            topic = self._context.settings.cluster_volumes_topic
            self._follower = Follower(self._context, topic, self, _SILENCE, self.absent)

    def known(self) -> tuple[ClusterRecord | None, float]:
        """The newest record and its age in seconds."""
        return self._newest.known()

    def waits_for(self) -> str:
        """What it still waits for, "" for nothing."""
        if self._follower is None:
            return "the log directories have not told the cluster's id yet"
        topic = self._context.settings.cluster_volumes_topic
        if not self.answered:
            return f"topic {topic} is not read yet"
        return "" if self._newest.known()[0] else f"topic {topic} holds no record of this cluster yet"

    def close(self) -> None:
        """End the thread and the client."""
        if self._follower:
            self._follower.close()

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""
        if key != self._key:
            return
        if value is None:
            self._newest.remove()
            return
        try:
            problem = self._take(decode(key, value), live)
        except Refused as refused:
            problem = refused.reason
            self._once(
                problem,
                "a record of %s was refused: %s",
                self._context.settings.cluster_volumes_topic,
                refused,
            )
        if problem:
            self._context.metrics.count("Refused", problem, "Records")

    def caught_up(self) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""
        if not self.answered:
            self._context.log.info("topic %s is read", self._context.settings.cluster_volumes_topic)
        self.answered = True

    def absent(self) -> None:
        """There is no such topic (yet)."""
        self.answered = True

    def _take(self, record: ClusterRecord, live: bool) -> str:
        validity = self._context.settings.validity.total_seconds()
        if _behind(record) > validity:
            self._once(
                "behind",
                "the pipeline is behind: its records tell of a time before validity (%g s)",
                validity,
            )
            return "behind" if live else ""
        problem = self._newest.take(record, live, validity)
        if problem == "rival":
            what = "two pipelines run for this cluster: records of run %d are passed over, those of a newer run count"
            self._once(f"run {record.run}", what, record.run)
        return problem

    def _once(self, what: str, text: str, *values: object) -> None:
        if what not in self._told and len(self._told) < 100:
            self._told.add(what)
            self._context.log.warning(text, *values)


def _behind(record: ClusterRecord) -> float:
    """How old in seconds the newest snapshot was that it is made of.

    A pipeline that has lost its place reads all snapshots again, and tells meanwhile how the disks once were.
    """
    if not record.reporting or record.newest_snapshot_at is None:
        return 0.0
    return (record.computed_at - record.newest_snapshot_at).total_seconds()
