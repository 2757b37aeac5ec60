"""The clients that are never throttled: listed principals, brokers among themselves, quotahost's own clients.

The resolver asks here before it asks any supplier, and the loop hands the same names to Java's fence
(``org.quotahost.fence.Fence``), which lets these clients write while it is closed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from quotahost.model import Client, Cluster
from quotahost.settings.broker import Settings

ANONYMOUS: Final = "ANONYMOUS"
OWN: Final = "quotahost-"  # begins the client-id of the plugins' own client on any node

# Client-ids of Kafka's own clients inside a broker (ReplicaFetcherThread, KafkaRaftManager), and of quotahost's own on
# any broker and in the pipeline. Fence.java has the same pattern. NodeToControllerChannelManager, which sends
# heartbeats and forwards requests, uses the plain node id: those are in ``Exemptions.client_ids``.
_INSIDE: Final = re.compile(r"broker-\d+-\S+|raft-client-\d+|quotahost-(\d+|pipeline)")
_JAAS_USER: Final = re.compile(r'\busername\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')


class Reason(StrEnum):
    """Why a client is exempt: the first of these that applies."""

    EXCLUDED = "excluded"
    BROKER = "broker"
    PLUGIN = "plugin"


class Exemptions:
    """Knows whether a client is exempt, and why.

    Where nobody authenticates, everybody is ANONYMOUS, the brokers and quotahost's clients too. That principal as a
    whole is exempt only if it is listed; otherwise the brokers and quotahost's clients are known by their client-ids,
    which anybody can claim.

    Attributes:
        principals: the exempt principals by name, and why.
        client_ids: the client-ids by which ANONYMOUS clients are exempt, besides those of Kafka's own clients.
        brokers_anonymous: whether brokers don't authenticate to each other, so that they are known by client-ids.
    """

    def __init__(self, settings: Settings, broker: Mapping[str, str]) -> None:
        """``broker`` are the broker's own properties with node.id and inter.broker.principals (``Shim.broker``)."""
        brokers = [name for name in broker.get("inter.broker.principals", "").split("\n") if name]
        self.brokers_anonymous = ANONYMOUS in brokers
        # The last reason wins: an operator's list stands above what quotahost finds out.
        self.principals = dict.fromkeys(_own_users(settings), Reason.PLUGIN)
        self.principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self.principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self._plugin_anonymous = self.brokers_anonymous or _connects_anonymously(settings)
        self.client_ids: set[str] = set()
        self._add({node_id(broker)})

    def know(self, cluster: Cluster) -> bool:
        """Learn the cluster's broker ids; returns whether client-ids became exempt by that."""
        before = len(self.client_ids)
        self._add(cluster.brokers)
        return len(self.client_ids) > before

    def _add(self, nodes: Collection[int]) -> None:
        if self._plugin_anonymous:
            self.client_ids |= {own_client_id(node) for node in nodes}
        if self.brokers_anonymous:
            self.client_ids |= {str(node) for node in nodes}

    def reason(self, client: Client) -> Reason | None:
        """Why a client is exempt, None if it isn't."""
        listed = self.principals.get(client.principal)
        if listed is not None or client.principal != ANONYMOUS:
            return listed
        inside = self.brokers_anonymous and _INSIDE.fullmatch(client.client_id) is not None
        if not inside and client.client_id not in self.client_ids:
            return None
        return Reason.PLUGIN if client.client_id.startswith(OWN) else Reason.BROKER


def _connects_anonymously(settings: Settings) -> bool:
    """Whether ``kafka.*`` leads the plugins' own client to a listener without authentication."""
    if "bootstrap.servers" not in settings.kafka:
        return False
    protocol = settings.kafka.get("security.protocol")
    return protocol is None or protocol.get_secret_value().lower() == "plaintext"


def _own_users(settings: Settings) -> set[str]:
    """The SASL user of the plugins' own client: that of ``kafka.*``, or of Strimzi's names if they give the address."""
    user, jaas = settings.kafka.get("sasl.username"), settings.kafka_admin.get("sasl.jaas.config")
    if user is not None:
        return {user.get_secret_value()}
    if jaas is None or "bootstrap.servers" in settings.kafka:
        return set()
    found = _JAAS_USER.search(jaas.get_secret_value())
    if found is None:
        return set()
    return {found[2] if found[1] is None else re.sub(r"\\(.)", r"\1", found[1])}


def node_id(broker: Mapping[str, str]) -> int:
    """This node's id, -1 if the properties don't name it."""
    return int(broker.get("node.id") or broker.get("broker.id") or -1)


def own_client_id(node: int) -> str:
    """The client-id of the plugin's own Kafka client on a node."""
    return f"{OWN}{node}"
