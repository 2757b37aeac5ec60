"""The brokers that benches of full disks compare: quotahost with and without the fence, Strimzi's plugin, stock.

``brokers`` starts several brokers that share the file store of TMPDIR. All get the same hard limit, a little above the
used bytes, so that a bench can reach it. ``small_broker`` starts one on a small file system of its own, whose used
bytes a ``Ballast`` keeps at a level. Several of these run at the same time, so that other load on the machine disturbs
all of them alike.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from bench.jvm import strimzi_jars
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, set_quota
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, plugin_properties, prefixed
from harness.system.background import Background
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually

USERS: Final = {"app": "a", "filler": "f"}  # the filler is exempt, so that it can fill any disk
# Strimzi's property in seconds. Its default is 60, and 1 turns the check off.
CHECK_INTERVAL: Final = 2
MEGA: Final = 1_000_000
BOOTSTRAP: Final = "static.kafka.admin.bootstrap.servers"
_APART: Final = 0.05  # seconds between two looks of a ballast
QUICK_DELETION: Final = {
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "1000",
}


class Contender(StrEnum):
    """The measured plugin, by its name in the tables."""

    WITH_FENCE = "quotahost, fence"
    WITHOUT_FENCE = "quotahost, no fence"
    STRIMZI = "Strimzi's plugin"


def free_bytes(directory: Path) -> int:
    """Returns the bytes that Kafka could still write on the file store of a directory."""
    store = os.statvfs(directory)
    return store.f_bavail * store.f_frsize


def strimzi_properties(min_free: int) -> dict[str, str]:
    """Returns the properties of Strimzi's plugin, without prefix, with a hard limit in free bytes."""
    return {
        "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
        "static.storage.check-interval": str(CHECK_INTERVAL),
        "static.storage.per.volume.limit.min.available.bytes": str(min_free),
    }


@contextmanager
def brokers(contender: Contender, count: int, headroom: int, windows: int = 11, **more: str) -> Iterator[Cluster]:
    """Starts brokers that are OPEN, with a hard limit ``headroom`` bytes above what is used now.

    They share the file store of ``TMPDIR``. With quotahost only broker 1 has a limit, so that the others learn of the
    full disk from its snapshots alone. With Strimzi's plugin each broker looks at all disks and needs the limit.
    ``windows`` is Kafka's ``quota.window.num``. ``more`` are further properties, without prefix, with ``_`` for ``.``.

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
            node.properties = QUICK_DELETION | {"quota.window.num": str(windows)}
            node.properties |= _plugin(node, contender, hard, given)
        with cluster:
            # The nodes start with different limits, so some apply the fallback at first. Waits until none does.
            eventually(lambda: not any(is_stopped(node) for node in cluster.brokers), what="all brokers OPEN")
            yield cluster


def _plugin(node: KafkaNode, contender: Contender, hard: int, given: dict[str, str]) -> dict[str, str]:
    """Returns the properties that load the plugin, and those of the fence."""
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
    """Returns the hard limit of a node, as a number of free bytes."""
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
    """Raises RuntimeError if one of the nodes has ended, since the figures of a dead broker are worthless."""
    for node in nodes:
        if not node.running:
            raise RuntimeError(f"broker {node.node_id} has ended with exit code {node.exit_code}: the run is void")


def on_disk(cluster: Cluster, topic: str) -> int:
    """Returns the bytes of a topic's segments, of all replicas together: the bytes that were really appended."""
    found = 0
    for node in cluster.brokers:
        for folder in node.data_dirs[0].glob(f"{topic}-[0-9]*"):
            if not folder.name.endswith("-delete"):  # a deleted topic's folder, which Kafka no longer counts
                found += sum(_sizes(folder))
    return found


def _sizes(folder: Path) -> Iterator[int]:
    """Returns the bytes of each segment of the folder, except those that are deleted meanwhile."""
    with suppress(FileNotFoundError):  # the folder
        for segment in list(folder.glob("*.log")):
            with suppress(FileNotFoundError):
                yield segment.stat().st_size


# ---- one broker on a small file system of its own ----


class Holder(StrEnum):
    """The plugin that holds the volume, by its name in the tables; "stock" is Kafka with a quota set by hand."""

    STOCK = "stock, by hand"
    QUOTAHOST = "quotahost, policy limits"
    STRIMZI = "Strimzi's plugin"


@dataclass(frozen=True)
class Room:
    """The volume's capacity and its limits, in bytes used, and each client's quota in bytes/s."""

    quota: float
    soft: int
    hard: int
    capacity: int

    @property
    def band(self) -> int:
        """The bytes from the soft to the hard limit."""
        return self.hard - self.soft


@contextmanager
def small_broker(holder: Holder, room: Room, windows: int = 11) -> Iterator[KafkaNode]:
    """Starts a broker on a file system of ``room.capacity`` bytes; each client-id has the quota.

    With Strimzi's plugin all clients share the quota, as it knows no other. ``windows`` is Kafka's
    ``quota.window.num``, of a second each.

    Raises:
        RuntimeError: this user may mount no file system.
    """
    with tempfile.TemporaryDirectory() as folder, own_file_system(Path(folder) / "node", str(room.capacity)) as mounted:
        if not mounted:
            raise RuntimeError("no small file system can be mounted here: run this bench as root")
        properties = QUICK_DELETION | {"quota.window.num": str(windows)} | _properties(holder, room)
        node = KafkaNode(Path(folder) / "node", classpath=[JAR, *map(Path, strimzi_jars())], properties=properties)
        if holder is Holder.STRIMZI:
            node.properties[PREFIX + BOOTSTRAP] = node.bootstrap
        with node:
            if holder is Holder.STOCK:
                set_by_hand(node, room.quota)
            yield node


def _properties(holder: Holder, room: Room) -> dict[str, str]:
    if holder is Holder.STOCK:
        return {}
    if holder is Holder.STRIMZI:
        return prefixed(strimzi_properties(room.capacity - room.hard) | {"static.produce": f"{room.quota:.0f}"})
    limits = {"static.storage.soft": str(room.soft), "static.storage.hard": str(room.hard)}
    clients = {"static.produce": f"{room.quota:.0f}", "static.scope": "client"}
    own = {"factor.source": "local", "policy": "limits", "fence.authorizer": "none"}
    return plugin_properties(own | limits | clients) | FENCE


def set_by_hand(node: KafkaNode, quota: float) -> None:
    """Sets every client-id's quota in bytes/s on a stock broker, as an operator would."""
    set_quota(node, {"producer_byte_rate": round(quota)}, client_id=DEFAULT)


def factor(node: KafkaNode) -> float:
    """Returns the factor in force; 1 before Strimzi's plugin shows it."""
    if "strimzi" in node.properties[PREFIX + "class"]:
        beans = Jmx(node).query("io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor,*")
        return max((float(bean["Value"]) for bean in beans.values()), default=1.0)
    return float(Jmx(node).get("quotahost:type=QuotaTable", "Factor"))


class Ballast(Background):
    """A file that keeps a small volume's used bytes at a level, whatever Kafka writes and deletes beside it."""

    def __init__(self, file: Path, level: int) -> None:
        """Prepares the ballast: ``file`` will be made on the volume, and ``level`` is in bytes used."""
        super().__init__()
        self._file: Final = file
        self._level = level
        self._lock: Final = threading.Lock()

    def to(self, level: float) -> None:
        """Takes the used bytes of the volume to this level. The bytes of Kafka itself remain."""
        with self._lock:
            self._level = int(level)
            self._adjust()

    def start(self) -> Self:
        """Makes the file, and starts to keep the level."""
        self._file.touch()
        return super().start()

    def _run(self) -> None:
        while not self._stopping.wait(_APART):
            with self._lock:
                self._adjust()

    def _adjust(self) -> None:
        own = self._file.stat().st_size
        wanted = own + self._level - shutil.disk_usage(self._file).used
        if wanted > own:
            with self._file.open("rb+") as file:
                os.posix_fallocate(file.fileno(), own, wanted - own)
        else:
            os.truncate(self._file, max(0, wanted))
