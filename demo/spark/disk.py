"""The disk of broker 3 that fills: a small file system, or, where none can be mounted, limits that stand for it."""

from __future__ import annotations

from typing import Final, Protocol

from demo.disk.acts import consumed
from demo.quotas.scenario import MEGA
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, delete_topics
from harness.kafka.cluster import Cluster
from harness.plugin import PREFIX

BROKER: Final = 3
SOFT: Final = 60 * MEGA  # above what is used when it begins to fill
HARD: Final = 190 * MEGA
SERVICE: Final = 4 * MEGA  # bytes/s of the excluded service that fills it; slow, as Spark may be here


class Disk(Protocol):
    """A disk that can be filled and freed; ``limits`` are soft and hard in bytes used, None before."""

    limits: tuple[int, int] | None

    def fill(self) -> None:
        """Begin to fill it."""

    def on_throttle(self) -> None:
        """All have been slowed: on to the hard limit."""

    def on_pause(self) -> None:
        """All have been stopped: no need to fill it any further."""

    def free(self) -> None:
        """Give its space back."""

    def used(self) -> int:
        """Bytes."""

    def close(self) -> None:
        """End what fills it."""


class FilledDisk:
    """A service that nobody slows writes to a topic on the disk; the topic is deleted."""

    TOPIC: Final = "filling"

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is written yet."""
        self._cluster = cluster
        self._service = ProducerLoad(cluster.client_config("service", "filler"), self.TOPIC, rate=SERVICE)
        self.limits: tuple[int, int] | None = None

    def fill(self) -> None:
        """Set limits above what is used, and write."""
        self.limits = self.used() + SOFT, self.used() + HARD
        limit(self._cluster, *self.limits)
        self._service.start()

    def on_throttle(self) -> None:
        """It goes on by itself."""

    def on_pause(self) -> None:
        """Stop writing."""
        self._service.stop()

    def free(self) -> None:
        """Delete the topic."""
        delete_topics(self._cluster, self.TOPIC)

    def used(self) -> int:
        """Bytes."""
        return consumed(self._cluster.brokers[BROKER - 1])

    def close(self) -> None:
        """Stop writing."""
        self._service.stop()


class LoweredLimits:
    """Limits below what is used: to all others that is a disk that has filled."""

    def __init__(self, cluster: Cluster) -> None:
        """No limits yet."""
        self._cluster = cluster
        self.limits: tuple[int, int] | None = None

    def fill(self) -> None:
        """What is used lies in the middle between soft and hard."""
        self._limit(self.used() // 2, self.used() * 3 // 2)

    def on_throttle(self) -> None:
        """What is used lies above hard."""
        self._limit(self.used() // 3, self.used() // 2)

    def on_pause(self) -> None:
        """Nothing fills it."""

    def free(self) -> None:
        """What is used lies below soft."""
        self._limit(self.used() * 2, self.used() * 3)

    def used(self) -> int:
        """Bytes."""
        return consumed(self._cluster.brokers[BROKER - 1])

    def close(self) -> None:
        """Nothing to end."""

    def _limit(self, soft: int, hard: int) -> None:
        self.limits = soft, hard
        limit(self._cluster, soft, hard)


def limit(cluster: Cluster, soft: int, hard: int) -> None:
    """Set the limits of broker 3, in bytes used, as an operator does."""
    levels = {"soft": str(soft), "hard": str(hard)}
    changes = {f"{PREFIX}static.storage.{side}": level for side, level in levels.items()}
    alter_broker_config(cluster.brokers[0], changes, broker=BROKER)
