"""Who is exempt and why: listed principals, brokers among themselves (by this broker's own listeners), quotahost's own
clients; and the topics for whose writers the fence never closes.

The loop hands their names to Java (``org.quotahost.fence.Exemptions``), which gives them no quota without asking the
host, and whose fence lets them write while it is closed.

The principals that brokers have at each other's listeners are derived from this broker's own configuration, since the
brokers of a cluster share their credentials (``broker_principals``). Where one can't be found out, the log names the
property in which to list it. If ANONYMOUS is among them, client-ids exempt, which anybody can claim. So it is among
them only where brokers don't authenticate to each other, or where nobody but nodes can be ANONYMOUS: at the listeners
of controllers.
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
OWN: Final = "quotahost-"  # begins the client-id of the plugins' own client on any node

# Forms of the client-ids of Kafka's own clients inside a broker, and of quotahost's own on any broker and in the
# pipeline: # stands for digits, * at the end for the rest. Java's fence/Exemptions takes this text.
# Kafka's are made in BrokerBlockingSender (fetchers), TransactionMarkerChannelManager, KafkaRaftManager, NetworkUtils
# (the three with "-client-") and TopicBasedRemoteLogMetadataManagerConfig (tiered storage). A new one would be found by
# test_shapes. NodeToControllerChannelManager, which sends heartbeats and forwards requests, uses the
# plain node id: those are in ``Exemptions.client_ids``.
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
    """Knows who is exempt, and why. The principal ANONYMOUS as a whole is only if it is listed."""

    internal_client_ids: str  # the forms of the client-ids of Kafka's own clients and quotahost's; "" for none
    client_ids: set[str]  # by which ANONYMOUS clients are exempt besides these
    principals: dict[str, Reason]  # the exempt principals by name, and why
    spared_topics: list[str]  # that the fence lets everybody write to

    def __init__(self, settings: Settings, broker: Mapping[str, str], brokers: Collection[str] = ()) -> None:
        """``broker`` are the broker's own properties, with node.id; ``brokers`` what ``broker_principals`` returns."""
        # Where brokers authenticate, a client-id proves nothing: anybody could claim a broker's and go unthrottled.
        self.internal_client_ids = INTERNAL_CLIENT_IDS if ANONYMOUS in brokers else ""
        # The last reason wins: an operator's list stands above what quotahost finds out.
        own = _own_client(settings)
        user = own.get("sasl.username", options(own.get("sasl.jaas.config", "")).get("username"))
        self.principals = {} if user is None else {user: Reason.PLUGIN}
        self.principals |= dict.fromkeys((b for b in brokers if b != ANONYMOUS), Reason.BROKER)
        self.principals |= dict.fromkeys(settings.excluded_principals, Reason.EXCLUDED)
        self.spared_topics = _spared_topics(settings, broker)
        self.client_ids = set()
        # Under a PAUSE this broker's own snapshots must pass the fence before Kafka has reported the cluster.
        self.know({node_id(broker)})

    def know(self, nodes: Collection[int]) -> bool:
        """Learn the ids of the cluster's brokers; returns whether client-ids became exempt by that."""
        before = len(self.client_ids)
        if self.internal_client_ids:
            self.client_ids |= {own_client_id(node) for node in nodes} | {str(node) for node in nodes}
        return len(self.client_ids) > before


def _spared_topics(settings: Settings, broker: Mapping[str, str]) -> list[str]:
    """The topics whose writers the fence may not know, and which it must not close for them.

    Tiered storage's client may log in as anybody (``rlmm.config.*``), and if a PAUSE turned it back, nothing would be
    offloaded, and a disk that only offloading can free would stay full. The plugins' own client may be ANONYMOUS where
    brokers authenticate, or be named by a certificate, a token or a builder of principals that nobody here can read;
    without snapshots no PAUSE ends. Whoever may write to one of these topics can do worse than fill it: delete what is
    offloaded, or forge snapshots. So ACLs must protect them in any case.
    """
    topics = [TIERING] if broker.get("remote.log.storage.system.enable", "").lower() == "true" else []
    return [*topics, *settings.record_topics]


def _own_client(settings: Settings) -> dict[str, str]:
    """The properties of the plugins' own client: ``kafka.*``, and Strimzi's names unless ``kafka.*`` has an address."""
    kafka, admin = revealed(settings.kafka), revealed(settings.kafka_admin)
    return kafka if "bootstrap.servers" in kafka else admin | kafka


def node_id(broker: Mapping[str, str]) -> int:
    return int(broker.get("node.id") or broker.get("broker.id") or -1)


def own_client_id(node: int) -> str:
    return f"{OWN}{node}"


def broker_principals(properties: Mapping[str, str], keystores: Keystores) -> list[str]:
    """The names of brokers' principals, without "User:", each once. It may wait for a keystore's file."""
    listeners = Listeners(properties)
    names: dict[str, None] = {}
    # Those that brokers connect to.
    for listener in [*([] if listeners.controller_alone else [listeners.inter_broker]), *listeners.controllers]:
        try:
            name, why = principal_at(listeners, listener, keystores), ""
        except Exception as error:
            # Not the message, which may contain a secret: its first word is the class of Java's exception.
            name, why = None, f": {str(error).partition(':')[0]}" if isinstance(error, ConnectionError) else ""
        if name is None:
            log.warning(
                "The principal of brokers at listener %s can't be found in the configuration%s. If it isn't ANONYMOUS, "
                "name it in %sstatic.excluded.principal.name.list, or brokers may be throttled", listener, why, PREFIX
            )  # fmt: skip
            # Most builders leave peers without authentication as they are; where one doesn't, this exempts nobody.
            name = ANONYMOUS if listeners.authentication(listener) == "none" else None
        if name is not None and (name != ANONYMOUS or _decides(listeners, listener)):
            names[name] = None
    return list(names)


def principal_at(listeners: Listeners, listener: str, keystores: Keystores) -> str | None:
    """The name that nodes have at a listener of theirs; None if nobody here can find it out."""
    # Which names another builder makes nobody here knows, whoever authenticates: it may go by addresses.
    if listeners.own(listener, _BUILDER).get(_BUILDER, _KAFKAS_BUILDER) != _KAFKAS_BUILDER:
        return None
    if listeners.authentication(listener) == "none":
        return ANONYMOUS
    if listeners.protocol(listener) != "SSL":
        return listeners.login_name(listener)
    ssl = listeners.own(listener, "ssl.")
    # A truststore that can't be read is of no concern here.
    keystore = keystores({name: value for name, value in ssl.items() if not name.startswith("ssl.truststore.")})
    return keystore.get("principal")


def _decides(listeners: Listeners, listener: str) -> bool:
    """Whether a listener that lets everybody in as ANONYMOUS shows that nodes are: clients must not use others."""
    return listeners.controller_alone or listener == listeners.inter_broker or not listeners.unauthenticated()
