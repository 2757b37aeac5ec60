"""``Exemptions`` knows which clients are exempt and why: listed principals, brokers among themselves, quotahost's own
clients; and the topics to which the fence lets everybody write.

The loop sends the names to Java (``org.quotahost.fence.Exemptions``). Java gives exempt clients no quota and doesn't
ask the host about them; the fence lets them write while it is closed.

``broker_principals`` derives the principals that brokers have at each other's listeners from this broker's own
configuration, because brokers share their credentials. If it can't derive one, a log line names the property in which
to list it. ANONYMOUS brokers are exempt by client-id, which any client can claim. So this applies only if brokers don't
authenticate to each other, or if only nodes can be ANONYMOUS, as at the listeners of controllers.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from quotahost.broker.host.messages import Reason
from quotahost.kafka.listeners import Keystores, Listeners, options
from quotahost.records.topics import TIERING
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.sections import revealed

log = logging.getLogger("quotahost.principals")

ANONYMOUS: Final = "ANONYMOUS"
OWN: Final = "quotahost-"  # the prefix of the client-id of the plugins' own client, before the node id

# Patterns of the client-ids of Kafka's own clients inside a broker, and of quotahost's clients on any broker and in the
# pipeline: # stands for digits, * at the end for any rest. Java's fence/Exemptions reads this text.
# Kafka creates them in BrokerBlockingSender (fetchers), TransactionMarkerChannelManager, KafkaRaftManager, NetworkUtils
# (the three with "-client-") and TopicBasedRemoteLogMetadataManagerConfig (tiered storage). test_shapes finds a new one
# of Kafka's. NodeToControllerChannelManager, which sends heartbeats and forwards requests, uses the plain node id:
# ``Exemptions.client_ids`` has these.
INTERNAL_CLIENT_IDS: Final = "|".join(
    [
        "broker-#-*",
        "raft-client-#",
        *(f"{name}-client-#" for name in ("AddPartitionsManager", "Persister", "NetworkPartitionMetadataClient")),
        *(f"__remote_log_metadata_client_#_{what}" for what in ("producer", "consumer", "admin")),
        "quotahost-#",
        "quotahost-pipeline",
        "quotahost-top",
        "quotahost-quotas",
    ]
)
_BUILDER: Final = "principal.builder.class"
_KAFKAS_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class Exemptions:
    """Knows which clients are exempt, and why. All ANONYMOUS clients are exempt only if that principal is listed."""

    internal_client_ids: str  # the patterns of client-ids by which ANONYMOUS clients are exempt; "" for none
    client_ids: set[str]  # further client-ids by which ANONYMOUS clients are exempt
    principals: dict[str, Reason]  # the exempt principals by name, and the reason
    spared_topics: list[str]  # the topics to which the fence lets everybody write

    def __init__(self, settings: Settings, broker: Mapping[str, str], brokers: Collection[str] = ()) -> None:
        """``broker``: the broker's own properties, with node.id; ``brokers``: the result of ``broker_principals``."""
        # If brokers authenticate, client-ids must not exempt: any client could claim a broker's and go unthrottled.
        self.internal_client_ids = INTERNAL_CLIENT_IDS if ANONYMOUS in brokers else ""
        # The last reason wins: an operator's list takes precedence over what quotahost finds out.
        # The plugins' own client has Strimzi's names, too, unless ``kafka.*`` has an address.
        kafka, admin = revealed(settings.kafka), revealed(settings.kafka_admin)
        own = kafka if "bootstrap.servers" in kafka else admin | kafka
        user = own.get("sasl.username", options(own.get("sasl.jaas.config", "")).get("username"))
        self.principals = {} if user is None else {user: Reason.PLUGIN}
        self.principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self.principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self.spared_topics = _spared_topics(settings, broker)
        self.client_ids = set()
        # In a PAUSE this broker's own snapshots must pass the fence even before Kafka has reported the cluster.
        self.know({node_id(broker)})

    def know(self, nodes: Collection[int]) -> bool:
        """Add the ids of the cluster's brokers, and return whether client-ids became exempt by this."""
        before = len(self.client_ids)
        if self.internal_client_ids:
            self.client_ids |= {own_client_id(node) for node in nodes} | {str(node) for node in nodes}
        return len(self.client_ids) > before


def _spared_topics(settings: Settings, broker: Mapping[str, str]) -> list[str]:
    """The topics to which the fence must let everybody write, because it may not recognize the clients that need them.

    Tiered storage's client may log in as any principal (``rlmm.config.*``). If a PAUSE turned it back, nothing would be
    offloaded, and a disk that only offloading can free would stay full. The plugins' own client may be ANONYMOUS while
    brokers authenticate, or have a name of a certificate, token or principal builder that the host can't read. If its
    snapshots were turned back, no PAUSE would end. ACLs must protect these topics in any case: a client that may write
    to them can delete offloaded data, or forge snapshots.
    """
    topics = [TIERING] if broker.get("remote.log.storage.system.enable", "").lower() == "true" else []
    return [*topics, *settings.record_topics]


def node_id(broker: Mapping[str, str]) -> int:
    return int(broker.get("node.id") or broker.get("broker.id") or -1)


def own_client_id(node: int) -> str:
    return f"{OWN}{node}"


def broker_principals(properties: Mapping[str, str], keystores: Keystores) -> list[str]:
    """The names of brokers' principals, without "User:", each once. The call may block on a keystore's file."""
    listeners = Listeners(properties)
    names: dict[str, None] = {}
    # Only the listeners to which brokers connect.
    for listener in [*([] if listeners.controller_alone else [listeners.inter_broker]), *listeners.controllers]:
        try:
            name, why = principal_at(listeners, listener, keystores), ""
        except Exception as error:
            # Don't log the message, which may contain a secret. Its first word is the class of Java's exception.
            name, why = None, f": {str(error).partition(':')[0]}" if isinstance(error, ConnectionError) else ""
        if name is None:
            log.warning(
                "The principal of brokers at listener %s can't be found in the configuration%s. If it isn't ANONYMOUS, "
                "name it in %sstatic.excluded.principal.name.list, or brokers may be throttled", listener, why, PREFIX
            )  # fmt: skip
            # Most principal builders make unauthenticated peers ANONYMOUS; with another builder this exempts nobody.
            name = ANONYMOUS if listeners.authentication(listener) == "none" else None
        if name is not None and (name != ANONYMOUS or _decides(listeners, listener)):
            names[name] = None
    return list(names)


def principal_at(listeners: Listeners, listener: str, keystores: Keystores) -> str | None:
    """The name of the nodes' principal at one of their listeners; None if it can't be found out."""
    # Another principal builder may make any name, e.g. from the address, even if the client authenticates.
    if listeners.own(listener, _BUILDER).get(_BUILDER, _KAFKAS_BUILDER) != _KAFKAS_BUILDER:
        return None
    if listeners.authentication(listener) == "none":
        return ANONYMOUS
    if listeners.protocol(listener) != "SSL":
        return listeners.login_name(listener)
    ssl = listeners.own(listener, "ssl.")
    # Only the keystore has the name, so leave out the truststore, which may not be readable.
    keystore = keystores({name: value for name, value in ssl.items() if not name.startswith("ssl.truststore.")})
    return keystore.get("principal")


def _decides(listeners: Listeners, listener: str) -> bool:
    """Whether ANONYMOUS at this listener exempts client-ids. It does between brokers, on a node that is a controller
    only, and if no client can be ANONYMOUS on this node.
    """
    return listeners.controller_alone or listener == listeners.inter_broker or not listeners.unauthenticated()
