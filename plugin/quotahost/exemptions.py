"""Who is never throttled: listed principals, the brokers among themselves, and the plugin's own client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quotahost.model import Client, Cluster
from quotahost.settings import Settings

ANONYMOUS: Final = "ANONYMOUS"

# Client-ids by which Kafka's own clients inside a broker connect to others (ReplicaFetcherThread,
# KafkaRaftManager); heartbeats and forwarded requests use the plain node id (NodeToControllerChannelManager).
_INSIDE: Final = re.compile(r"broker-\d+-\S+|raft-client-\d+")
_JAAS_USER: Final = re.compile(r'\busername\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')


class Exemptions:
    """Whether a client is exempt; ``client in exemptions``.

    Where nobody authenticates all are ANONYMOUS, brokers and the plugin too: this name as a whole is
    exempt only if it is listed. There the brokers and the plugin go by client-id, which anyone can claim.
    """

    def __init__(self, settings: Settings, broker: Mapping[str, str]) -> None:
        """``broker`` holds node.id and inter.broker.principals, as the shim gives them."""
        brokers = [name for name in broker.get("inter.broker.principals", "").split("\n") if name]
        self._anonymous_brokers = ANONYMOUS in brokers
        self._principals = {*settings.excluded_principals, *(b for b in brokers if b != ANONYMOUS)}
        self._principals |= _own_users(settings)
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
        if client.principal in self._principals:
            return True
        if client.principal != ANONYMOUS or not self._anonymous_brokers:
            return False
        return client.client_id in self._client_ids or _INSIDE.fullmatch(client.client_id) is not None


def _own_users(settings: Settings) -> set[str]:
    """The SASL user of the plugins' own client, by ``kafka.*`` or, without an address there, Strimzi's names."""
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
    """This node's id; -1 if the broker doesn't say."""
    return int(broker.get("node.id") or broker.get("broker.id") or -1)


def own_client_id(node: int) -> str:
    """The client-id of the plugin's own Kafka client on a node."""
    return f"quotahost-{node}"
