"""Who is never throttled: listed principals, the brokers among themselves, and the plugin's own client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from quotahost.model import Client, Cluster
from quotahost.settings import Settings

ANONYMOUS: Final = "ANONYMOUS"

# Client-ids by which Kafka's own clients inside a broker connect to others (ReplicaFetcherThread,
# KafkaRaftManager); heartbeats and forwarded requests use the plain node id (NodeToControllerChannelManager).
_INSIDE: Final = re.compile(r"broker-\d+-\S+|raft-client-\d+")


class Reason(StrEnum):
    """Why a client is exempt: it is listed, a broker's, or the plugins' own; the first that fits."""

    EXCLUDED = "excluded"
    BROKER = "broker"
    PLUGIN = "plugin"


class Exemptions:
    """Whether a client is exempt; ``client in exemptions``.

    Where nobody authenticates all are ANONYMOUS, brokers and the plugin too: this name as a whole is
    exempt only if it is listed. There the brokers and the plugin go by client-id, which anyone can claim.
    """

    def __init__(self, settings: Settings, broker: Mapping[str, str]) -> None:
        """``broker`` holds node.id and inter.broker.principals, as the shim gives them."""
        own_user = settings.kafka.get("sasl.username")
        brokers = [name for name in broker.get("inter.broker.principals", "").split("\n") if name]
        self._anonymous_brokers = ANONYMOUS in brokers
        self._principals: dict[str, Reason] = {}
        if own_user is not None:
            self._principals[own_user.get_secret_value()] = Reason.PLUGIN
        self._principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self._principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self._node = node_id(broker)
        self._client_ids = {own_client_id(self._node), str(self._node)}

    @property
    def principals(self) -> frozenset[str]:
        """The exempt principal names."""
        return frozenset(self._principals)

    @property
    def anonymous_client_ids(self) -> frozenset[str]:
        """The client-ids that are exempt where nobody authenticates; empty if brokers do."""
        return frozenset(self._client_ids) if self._anonymous_brokers else frozenset()

    def know(self, cluster: Cluster) -> bool:
        """Take in the cluster's broker ids; whether that exempts a client-id that wasn't."""
        known = len(self._client_ids)
        self._client_ids |= {str(broker) for broker in cluster.brokers}
        return len(self._client_ids) > known

    def __contains__(self, client: Client) -> bool:
        return self.reason(client) is not None

    def reason(self, client: Client) -> Reason | None:
        """Why a client is exempt, None if it isn't."""
        listed = self._principals.get(client.principal)
        if listed is not None or client.principal != ANONYMOUS or not self._anonymous_brokers:
            return listed
        if client.client_id == own_client_id(self._node):
            return Reason.PLUGIN
        inside = client.client_id in self._client_ids or _INSIDE.fullmatch(client.client_id) is not None
        return Reason.BROKER if inside else None


def node_id(broker: Mapping[str, str]) -> int:
    """This node's id; -1 if the broker doesn't say."""
    return int(broker.get("node.id") or broker.get("broker.id") or -1)


def own_client_id(node: int) -> str:
    """The client-id of the plugin's own Kafka client on a node."""
    return f"quotahost-{node}"
