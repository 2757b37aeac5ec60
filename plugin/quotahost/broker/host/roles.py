"""What a node does by its roles: brokers have disks, and a controller alone may judge those of the brokers.

A controller that is no broker serves no client but those who create topics and the like. It has suppliers for the rates
of partition mutations. If it is told how to reach the brokers, it follows their volumes, too, so that it can refuse new
topics and partitions in a PAUSE (Java's ``Fence``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quotahost.api import Role
from quotahost.model import State
from quotahost.settings.broker import Settings

#: The factor sources that find all they need on the cluster's topics.
ON_CONTROLLERS: Final = ("snapshots", "cluster-volumes")
_ABOUT_VOLUMES: Final = (Role.FACTOR_SOURCE, Role.POLICY)


class NodeRoles:
    """The roles of this node, and what follows from them.

    Attributes:
        broker: whether it is a broker: a controller alone has no log directories of clients' topics.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        """``properties`` are the node's own, with ``process.roles``."""
        roles = properties.get("process.roles", "")
        self.broker = not roles or "broker" in roles.split(",")

    def judges(self, settings: Settings) -> bool:
        """Whether this node follows the volumes of the cluster."""
        return self.broker or judges_alone(settings)

    def needs(self, role: Role, settings: Settings) -> bool:
        """Whether this node has plugins of this role. A task is about a broker's own disks or clients."""
        return self.broker or role is Role.SUPPLIER or (role in _ABOUT_VOLUMES and judges_alone(settings))

    def applied(self, settings: Settings) -> Settings:
        """The settings for Java: where nobody judges volumes, a host that is silent must not look like a full disk."""
        if self.judges(settings):
            return settings
        return settings.model_copy(update={"fallback_action": State.OPEN})


def judges_alone(settings: Settings) -> bool:
    """Whether a controller that is no broker follows the volumes: it can if it knows where the brokers are."""
    return settings.factor_source in ON_CONTROLLERS and "bootstrap.servers" in settings.kafka_admin
