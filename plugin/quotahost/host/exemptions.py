"""Who is never throttled: listed principals, the brokers among themselves, and quotahost's own clients.

The resolver asks here before it asks any supplier, and the loop hands the same names to Java's fence
(``org.quotahost.fence.Fence``), which lets these clients write while it is closed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    """

    def __init__(self, settings: Settings, broker: Mapping[str, str]) -> None:
        """``broker`` are the broker's own properties with node.id and inter.broker.principals (see ``Shim.broker``)."""
        brokers = [name for name in broker.get("inter.broker.principals", "").split("\n") if name]
        self._anonymous_brokers = ANONYMOUS in brokers
        self._principals: dict[str, Reason] = dict.fromkeys(_own_users(settings), Reason.PLUGIN)
        self._principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self._principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self._anonymous_plugin = self._anonymous_brokers or _connects_anonymously(settings)
        self._nodes = {node_id(broker)}
        self._client_ids = self._current_client_ids()

    @property
    def principals(self) -> frozenset[str]:
        """The exempt principal names."""
        return frozenset(self._principals)

    @property
    def client_ids(self) -> frozenset[str]:
        """The client-ids by which ANONYMOUS clients are exempt, besides those of Kafka's own clients."""
        return self._client_ids

    def _current_client_ids(self) -> frozenset[str]:
        brokers = {str(node) for node in self._nodes} if self._anonymous_brokers else set()
        return frozenset(brokers | {own_client_id(n) for n in self._nodes if self._anonymous_plugin})

    @property
    def brokers_anonymous(self) -> bool:
        """Whether brokers don't authenticate to each other, so that they are known by their client-ids."""
        return self._anonymous_brokers

    def know(self, cluster: Cluster) -> bool:
        """Learn the cluster's broker ids; returns whether client-ids became exempt by that."""
        known = len(self._nodes)
        self._nodes |= cluster.brokers
        self._client_ids = self._current_client_ids()
        return len(self._nodes) > known and self._anonymous_plugin

    def reason(self, client: Client) -> Reason | None:
        """Why a client is exempt, None if it isn't."""
        listed = self._principals.get(client.principal)
        if listed is not None or client.principal != ANONYMOUS:
            return listed
        inside = self._anonymous_brokers and _INSIDE.fullmatch(client.client_id) is not None
        if not inside and client.client_id not in self._client_ids:
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
