"""Who is never throttled: listed principals, the brokers among themselves, and the plugin's own client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from quotahost.model import Client, Cluster
from quotahost.settings.broker import Settings

ANONYMOUS: Final = "ANONYMOUS"
OWN: Final = "quotahost-"  # begins the client-id of the plugins' own client on any node

# Client-ids by which Kafka's own clients inside a broker connect to others (ReplicaFetcherThread,
# KafkaRaftManager); heartbeats and forwarded requests use the plain node id
#   (NodeToControllerChannelManager). The last
# is that of the plugins' own clients, on any broker, and of the pipeline's.
_INSIDE: Final = re.compile(r"broker-\d+-\S+|raft-client-\d+|quotahost-(\d+|pipeline)")
_JAAS_USER: Final = re.compile(r'\busername\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')


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
        brokers = [name for name in broker.get("inter.broker.principals", "").split("\n") if name]
        self._anonymous_brokers = ANONYMOUS in brokers
        self._principals: dict[str, Reason] = dict.fromkeys(_own_users(settings), Reason.PLUGIN)
        self._principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self._principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self._anonymous_plugin = self._anonymous_brokers or _connects_anonymously(settings)
        self._nodes = {node_id(broker)}
        self._client_ids = self._work_out()

    @property
    def principals(self) -> frozenset[str]:
        """The exempt principal names."""
        return frozenset(self._principals)

    @property
    def client_ids(self) -> frozenset[str]:
        """The client-ids by which ANONYMOUS clients are exempt, besides those of Kafka's own clients."""
        return self._client_ids

    def _work_out(self) -> frozenset[str]:
        brokers = {str(node) for node in self._nodes} if self._anonymous_brokers else set()
        return frozenset(brokers | {own_client_id(n) for n in self._nodes if self._anonymous_plugin})

    @property
    def brokers_anonymous(self) -> bool:
        """Whether brokers don't authenticate to each other, so that client-ids count."""
        return self._anonymous_brokers

    def know(self, cluster: Cluster) -> bool:
        """Take in the cluster's broker ids; whether that exempts a client-id that wasn't."""
        known = len(self._nodes)
        self._nodes |= cluster.brokers
        self._client_ids = self._work_out()
        return len(self._nodes) > known and self._anonymous_plugin

    def __contains__(self, client: Client) -> bool:
        return self.reason(client) is not None

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
    """Whether ``kafka.*`` leads the plugins' own client to a listener that asks nobody who he is."""
    if "bootstrap.servers" not in settings.kafka:
        return False
    protocol = settings.kafka.get("security.protocol")
    return protocol is None or protocol.get_secret_value().lower() == "plaintext"


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
    return f"{OWN}{node}"
