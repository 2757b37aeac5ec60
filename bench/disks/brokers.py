"""Starts the brokers that the benches of full disks compare: quotahost with and without fence, and Strimzi's plugin.

All get the same hard limit, a little above what is used on the file store of TMPDIR, so that a bench can reach it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.callback import strimzi_jars
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, STATES, plugin_properties, prefixed
from harness.system.waiting import eventually

USERS: Final = {"app": "a", "filler": "f"}  # the filler is exempt, so that it can fill any disk
# Strimzi's property in seconds: its default is 60, and 1 turns the check off.
CHECK_INTERVAL: Final = 2
QUICK_DELETION: Final = {
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "1000",
}


class Contender(StrEnum):
    """The plugin that is measured, by its name in the tables."""

    WITH_FENCE = "quotahost, fence"
    WITHOUT_FENCE = "quotahost, no fence"
    STRIMZI = "Strimzi's plugin"


def free_bytes(directory: Path) -> int:
    """Bytes that Kafka could still write on the file store of a directory."""
    store = os.statvfs(directory)
    return store.f_bavail * store.f_frsize


def _strimzi_properties(min_free: int) -> dict[str, str]:
    return {
        "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
        "static.storage.check-interval": str(CHECK_INTERVAL),
        "static.storage.per.volume.limit.min.available.bytes": str(min_free),
    }


def _quotahost_properties(min_free: int | None, soft_free: int | None) -> dict[str, str]:
    limits = {"hard": min_free, "soft": soft_free}
    return {
        "factor.source": "snapshots",
        **{f"static.storage.{name}.min-free-bytes": str(at) for name, at in limits.items() if at is not None},
    }


def _set_properties(node: KafkaNode, contender: Contender, settings: dict[str, str]) -> None:
    """Gives a node the plugin's properties."""
    settings = {"static.excluded.principal.name.list": "User:filler", **settings}
    if contender is Contender.STRIMZI:
        settings["static.kafka.admin.bootstrap.servers"] = node.bootstrap
    if contender is Contender.WITH_FENCE:
        settings["fence.authorizer"] = "none"
    loaded = prefixed(settings) if contender is Contender.STRIMZI else plugin_properties(settings)
    node.properties = QUICK_DELETION | loaded | (FENCE if contender is Contender.WITH_FENCE else {})


@contextmanager
def brokers(
    contender: Contender, count: int, headroom: int, soft_at: float | None = None, **more: str
) -> Iterator[Cluster]:
    """Starts brokers that are OPEN, with a hard limit ``headroom`` bytes above what is used now.

    They share the file store of ``TMPDIR``. With quotahost only broker 1 has a limit, so that the others learn of the
    full disk from its snapshots alone. With Strimzi's plugin each broker looks at all disks and needs the limit.

    Args:
        contender: the plugin.
        count: the number of brokers.
        headroom: bytes between what is used now and the hard limit.
        soft_at: the soft limit as a share of the headroom; Strimzi's plugin has none.
        more: further properties, without prefix, with ``_`` for ``.``.

    Raises:
        ValueError: fewer than headroom bytes are free.
    """
    with tempfile.TemporaryDirectory(prefix="quotahost-bench-") as folder:
        classpath = [JAR, *map(Path, strimzi_jars())]
        cluster = Cluster(Path(folder), count, classpath=classpath, users=USERS, jvm_options=())
        hard = free_bytes(Path(folder)) - headroom
        if hard <= 0:
            raise ValueError(f"{folder} has less than {headroom:,} bytes free; set TMPDIR to another file store")
        soft = None if soft_at is None else hard + headroom - int(headroom * soft_at)
        given = {name.replace("_", "."): value for name, value in more.items()}
        for node in cluster.brokers:
            limits = (hard, soft) if node.node_id == 1 else (None, None)
            plugin = _strimzi_properties(hard) if contender is Contender.STRIMZI else _quotahost_properties(*limits)
            _set_properties(node, contender, plugin | given)
        with cluster:
            # The nodes start with different limits, so some apply the fallback at first: wait until none does.
            eventually(lambda: not any(is_stopped(node) for node in cluster.brokers), 60, "all brokers OPEN")
            try:
                yield cluster
            finally:
                cluster.kill()  # quicker than a clean stop, and nobody needs the data


def min_free(node: KafkaNode) -> int:
    """The hard limit of a node, as a number of free bytes."""
    names = ("static.storage.hard.min-free-bytes", "static.storage.per.volume.limit.min.available.bytes")
    return max(int(node.properties.get(PREFIX + name, "0")) for name in names)


def is_stopped(node: KafkaNode) -> bool:
    """Whether a node's plugin reports that producers are stopped: state PAUSE, or Strimzi's throttle factor 0.

    Raises:
        RuntimeError: the node has ended, which would look like a stop.
    """
    check_alive(node)
    try:
        if "strimzi" in node.properties[PREFIX + "class"]:
            found = Jmx(node).query("io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor,*")
            return any(float(bean["Value"]) == 0 for bean in found.values())
        return float(Jmx(node).get("quotahost:type=QuotaTable", "State")) == STATES.index("PAUSE")
    except HelperError:  # not registered yet
        return True


def check_alive(*nodes: KafkaNode) -> None:
    """Raises RuntimeError if one of the nodes has ended, since a figure from a dead broker is worthless."""
    for node in nodes:
        if not node.running:
            raise RuntimeError(f"broker {node.node_id} has ended with exit code {node.exit_code}: the run is void")


def wait_until(condition: Callable[[], bool], timeout: float, poll: float = 0.01) -> float | None:
    """The moment (monotonic s) at which a cheap condition came true; None if not within timeout seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return None
        time.sleep(poll)
    return time.monotonic()


def on_disk(cluster: Cluster, topic: str) -> int:
    """Bytes of a topic's segments, all replicas together: what was really appended."""
    found = 0
    for node in cluster.brokers:
        for segment in node.data_dirs[0].glob(f"{topic}-[0-9]*/*.log"):
            try:
                found += segment.stat().st_size
            except FileNotFoundError:  # it was deleted meanwhile
                continue
    return found
