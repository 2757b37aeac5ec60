"""The brokers that benches of full disks compare: quotahost with and without the fence, Strimzi's plugin.

They share the file store of TMPDIR, and all get the same hard limit, a little above what is used there, so that a bench
can really reach it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.jvm import strimzi_jars
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, plugin_properties, prefixed
from harness.system.waiting import eventually

USERS: Final = {"app": "a", "filler": "f"}  # the filler is exempt, so that it can fill any disk
# Strimzi's property in seconds: its default is 60, and 1 turns the check off.
CHECK_INTERVAL: Final = 2
BOOTSTRAP: Final = "static.kafka.admin.bootstrap.servers"
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


def strimzi_properties(min_free: int) -> dict[str, str]:
    """Strimzi's plugin, without prefix, with a hard limit in free bytes."""
    return {
        "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
        "static.storage.check-interval": str(CHECK_INTERVAL),
        "static.storage.per.volume.limit.min.available.bytes": str(min_free),
    }


@contextmanager
def brokers(contender: Contender, count: int, headroom: int, **more: str) -> Iterator[Cluster]:
    """Starts brokers that are OPEN, with a hard limit ``headroom`` bytes above what is used now.

    They share the file store of ``TMPDIR``. With quotahost only broker 1 has a limit, so that the others learn of the
    full disk from its snapshots alone. With Strimzi's plugin each broker looks at all disks and needs the limit.
    ``more`` are further properties, without prefix, with ``_`` for ``.``.

    Raises:
        ValueError: fewer than headroom bytes are free.
    """
    with tempfile.TemporaryDirectory(prefix="quotahost-bench-") as folder:
        classpath = [JAR, *map(Path, strimzi_jars())]
        cluster = Cluster(Path(folder), count, classpath=classpath, users=USERS, jvm_options=())
        hard = free_bytes(Path(folder)) - headroom
        if hard <= 0:
            raise ValueError(f"{folder} has less than {headroom:,} bytes free; set TMPDIR to another file store")
        given = {name.replace("_", "."): value for name, value in more.items()}
        for node in cluster.brokers:
            node.properties = QUICK_DELETION | _plugin(node, contender, hard, given)
        with cluster:
            # The nodes start with different limits, so some apply the fallback at first: wait until none does.
            eventually(lambda: not any(is_stopped(node) for node in cluster.brokers), what="all brokers OPEN")
            yield cluster


def _plugin(node: KafkaNode, contender: Contender, hard: int, given: dict[str, str]) -> dict[str, str]:
    """The properties that load the plugin, and those of the fence."""
    settings = {"static.excluded.principal.name.list": "User:filler", **given}
    if contender is Contender.STRIMZI:
        return prefixed(settings | strimzi_properties(hard) | {BOOTSTRAP: node.bootstrap})
    settings["factor.source"] = "snapshots"
    if node.node_id == 1:
        settings["static.storage.hard.min-free-bytes"] = str(hard)
    if contender is Contender.WITHOUT_FENCE:
        return plugin_properties(settings)
    return plugin_properties(settings | {"fence.authorizer": "none"}) | FENCE


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
        return factor(node) == 0
    except HelperError:  # not registered yet
        return True


def check_alive(*nodes: KafkaNode) -> None:
    """Raises RuntimeError if one of the nodes has ended, since a figure from a dead broker is worthless."""
    for node in nodes:
        if not node.running:
            raise RuntimeError(f"broker {node.node_id} has ended with exit code {node.exit_code}: the run is void")


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


def factor(node: KafkaNode) -> float:
    """The factor in force; 1 before Strimzi's plugin shows it."""
    if "strimzi" in node.properties[PREFIX + "class"]:
        beans = Jmx(node).query("io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor,*")
        return max((float(bean["Value"]) for bean in beans.values()), default=1.0)
    return float(Jmx(node).get("quotahost:type=QuotaTable", "Factor"))
