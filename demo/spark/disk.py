"""The disk of broker 3, which fills in the demo.

It is a small file system that a service fills. Where none can be mounted, limits below what is used stand for a full
disk: for the brokers there is no difference.
"""

from typing import Final, Protocol

from demo.disk.acts import consumed
from demo.quotas.scenario import MEGA
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, delete_topics
from harness.kafka.cluster import Cluster
from harness.plugin import PREFIX

BROKER: Final = 3
SOFT: Final = 60 * MEGA  # bytes above what is used when the disk begins to fill
HARD: Final = 190 * MEGA
# Bytes/s of the exempt service that fills it; slow, because Spark needs some seconds for each step.
SERVICE: Final = 4 * MEGA


class Disk(Protocol):
    """A disk that can be filled and freed. ``limits`` are soft and hard limit in bytes used; None before it fills."""

    limits: tuple[int, int] | None

    def fill(self) -> None:
        """Begins to fill the disk."""

    def on_throttle(self) -> None:
        """All producers have been slowed: fills the disk up to its hard limit."""

    def on_pause(self) -> None:
        """All producers have been stopped: stops filling."""

    def free(self) -> None:
        """Frees the space."""

    def used(self) -> int:
        """Bytes used of the disk."""

    def close(self) -> None:
        """Ends the client that fills it, if there is one."""


class FilledDisk:
    """A file system of its own. An exempt service fills it by writing to a topic; deleting the topic frees it."""

    TOPIC: Final = "filling"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._service = ProducerLoad(cluster.client_config("service", "filler"), self.TOPIC, rate=SERVICE)
        self.limits: tuple[int, int] | None = None

    def fill(self) -> None:
        """Sets limits above what is used, and starts the service."""
        self.limits = self.used() + SOFT, self.used() + HARD
        limit(self._cluster, *self.limits)
        self._service.start()

    def on_throttle(self) -> None:
        """Does nothing: the service writes on."""

    def on_pause(self) -> None:
        """Stops the service."""
        self._service.stop()

    def free(self) -> None:
        """Deletes the topic."""
        delete_topics(self._cluster, self.TOPIC)

    def used(self) -> int:
        """Bytes used of the disk."""
        return consumed(self._cluster.brokers[BROKER - 1])

    def close(self) -> None:
        """Stops the service."""
        self._service.stop()


class LoweredLimits:
    """Limits that move below what is used. For the other brokers that is a disk that has filled."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.limits: tuple[int, int] | None = None

    def fill(self) -> None:
        """Sets limits so that the used bytes lie in the middle between soft and hard."""
        self._limit(self.used() // 2, self.used() * 3 // 2)

    def on_throttle(self) -> None:
        """Sets limits so that the used bytes lie above hard."""
        self._limit(self.used() // 3, self.used() // 2)

    def on_pause(self) -> None:
        """Does nothing: no client fills the disk."""

    def free(self) -> None:
        """Sets limits so that the used bytes lie below soft."""
        self._limit(self.used() * 2, self.used() * 3)

    def used(self) -> int:
        """Bytes used of the disk."""
        return consumed(self._cluster.brokers[BROKER - 1])

    def close(self) -> None:
        """Does nothing: there is no client to end."""

    def _limit(self, soft: int, hard: int) -> None:
        self.limits = soft, hard
        limit(self._cluster, soft, hard)


def limit(cluster: Cluster, soft: int, hard: int) -> None:
    """Sets the limits of broker 3, in bytes used, as an operator does."""
    levels = {"soft": str(soft), "hard": str(hard)}
    changes = {f"{PREFIX}static.storage.{side}": level for side, level in levels.items()}
    alter_broker_config(cluster.brokers[0], changes, broker=BROKER)
