"""A broker on a small file system of its own, whose volume somebody holds: quotahost, Strimzi's plugin, or nobody.

``held``, ``lumps`` and ``tap`` run several of these at the same time, so that whatever else the machine does disturbs
all of them alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.callback import strimzi_jars
from bench.disks.brokers import CHECK_INTERVAL, QUICK_DELETION, free_bytes
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, plugin_properties, prefixed
from harness.system.filesystem import own_file_system

MEGA: Final = 1_000_000


class Holder(StrEnum):
    """What holds the volume, by its name in the tables; "stock" is Kafka alone, whose quota somebody sets by hand."""

    STOCK = "stock, by hand"
    LIMITS = "quotahost, policy limits"
    SETPOINT = "quotahost, policy setpoint"
    STRIMZI = "Strimzi's plugin"

    @property
    def policy(self) -> str | None:
        """The policy's name; None of the peers."""
        return self.rpartition(" policy ")[2] if self.startswith("quotahost") else None


@dataclass(frozen=True)
class Room:
    """The volume's capacity and its limits, in bytes used, and each client's quota in bytes/s."""

    quota: float
    soft: int
    hard: int
    capacity: int

    @property
    def band(self) -> int:
        """Bytes from the soft to the hard limit."""
        return self.hard - self.soft


@contextmanager
def small_broker(holder: Holder, room: Room, windows: int = 11, **more: str) -> Iterator[KafkaNode]:
    """Starts a broker on a file system of ``room.capacity`` bytes; each client-id has the quota.

    With Strimzi's plugin all clients share the quota, as it knows no other.

    Args:
        holder: what the broker loads.
        room: the limits and the quota.
        windows: Kafka's ``quota.window.num``, of a second each.
        more: further properties of quotahost, without prefix, with ``_`` for ``.``.

    Raises:
        RuntimeError: this user may mount no file system.
    """
    with tempfile.TemporaryDirectory() as folder, own_file_system(Path(folder) / "node", str(room.capacity)) as mounted:
        if not mounted:
            raise RuntimeError("no small file system can be mounted here: run this bench as root")
        own = _properties(holder, room, {name.replace("_", "."): value for name, value in more.items()})
        properties = QUICK_DELETION | {"quota.window.num": str(windows)} | own
        node = KafkaNode(Path(folder) / "node", classpath=[JAR, *map(Path, strimzi_jars())], properties=properties)
        if holder is Holder.STRIMZI:
            node.properties[PREFIX + "static.kafka.admin.bootstrap.servers"] = node.bootstrap
        with node:
            if holder is Holder.STOCK:
                set_by_hand(node, room.quota)
            yield node


def _properties(holder: Holder, room: Room, more: dict[str, str]) -> dict[str, str]:
    if holder is Holder.STOCK:
        return {}
    if holder is Holder.STRIMZI:
        strimzi = {
            "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
            "static.produce": f"{room.quota:.0f}",
            "static.storage.check-interval": str(CHECK_INTERVAL),
            "static.storage.per.volume.limit.min.available.bytes": str(room.capacity - room.hard),
        }
        return prefixed(strimzi)
    limits = {"static.storage.soft": str(room.soft), "static.storage.hard": str(room.hard)}
    clients = {"static.produce": f"{room.quota:.0f}", "static.scope": "client"}
    own = {"factor.source": "local", "policy": holder.policy or "", "fence.authorizer": "none"}
    return plugin_properties(own | limits | clients | more) | FENCE


def set_by_hand(node: KafkaNode, quota: float) -> None:
    """Gives every client-id of a stock broker a quota in bytes/s, as an operator does."""
    set_quota(node, {"producer_byte_rate": round(quota)}, client_id=DEFAULT)


def factor(node: KafkaNode, holder: Holder) -> float:
    """The factor in force; 1 for a stock broker, which has none."""
    if holder is Holder.STOCK:
        return 1.0
    if holder is Holder.STRIMZI:
        found = Jmx(node).query("io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor,*")
        return max((float(bean["Value"]) for bean in found.values()), default=1.0)
    return float(Jmx(node).get("quotahost:type=QuotaTable", "Factor"))


def used_bytes(node: KafkaNode, room: Room) -> int:
    """Bytes that are used of the node's volume."""
    return room.capacity - free_bytes(node.data_dirs[0])
