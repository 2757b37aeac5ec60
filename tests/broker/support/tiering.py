"""Tiered storage for a real broker: Kafka's own file system implementation, from the jar of Kafka's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.java.jars import maven_jar

METADATA_TOPIC: Final = "__remote_log_metadata"


def tiering_jars(version: str) -> Path:
    """The directory with the jar that contains ``LocalTieredStorage``."""
    return maven_jar(f"org.apache.kafka:kafka-storage:{version}:test")


def tiering_properties(remote: Path, listener: str) -> dict[str, str]:
    """Broker properties that offload to the directory, every half second.

    Args:
        remote: the directory; it is not on the broker's own disk.
        listener: the listener at which the broker's client for ``__remote_log_metadata`` connects.
    """
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(remote),
        "remote.log.metadata.manager.listener.name": listener,
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "100",
    }


def segments(remote: Path) -> int:
    """How many segments were offloaded."""
    return len(list(remote.rglob("*.log")))
