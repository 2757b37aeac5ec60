"""The settings of a node, and the server.properties that follow from them.

``KafkaNode`` inherits these settings. They decide listeners, directories and replication, so a test only gives the
properties that it is about, which replace the ones made here.
"""

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.java.jars import DEFAULT_VERSION
from harness.kafka.properties import login_jaas, plain_jaas
from harness.system.ports import free_port

# The names of the listeners.
INTERNAL: Final = "INTERNAL"  # PLAINTEXT: between brokers, and for clients without a user
CLIENTS: Final = "CLIENTS"  # SASL_PLAINTEXT: for clients with a user
CONTROLLER: Final = "CONTROLLER"  # PLAINTEXT
# Without the JVM's second compiler a start costs half the work.
QUICK_START: Final = ("-XX:TieredStopAtLevel=1",)

_REPORTERS: Final = "org.apache.kafka.common.metrics.JmxReporter,harness.QuotaProbe"


def new_cluster_id() -> str:
    """Returns a random cluster id, as ``kafka-storage.sh random-uuid`` makes it."""
    while (name := urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass  # Kafka's tools would read it as an option
    return name


@dataclass(eq=False)
class NodeSettings:
    """The settings of a node. Its ports are free ports of loopback, which the node keeps over restarts."""

    directory: Path  # the place of its data, server.properties and log; made if missing
    version: str = field(default=DEFAULT_VERSION, kw_only=True)  # Kafka's version
    #: Broker properties that replace the harness's own, read at each start.
    properties: dict[str, str] = field(default_factory=dict, kw_only=True)
    #: Jars, directories of jars or directories of classes, after Kafka's own.
    classpath: Sequence[Path] = field(default=(), kw_only=True)
    #: Passwords by user. If given, clients can connect as one of these users with SASL. A client without a user is
    #: ANONYMOUS, on the listener that brokers use among themselves.
    users: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    #: The SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Formatting the storage stores SCRAM's users.
    mechanism: str = field(default="PLAIN", kw_only=True)
    #: The user for the traffic between brokers; None means ANONYMOUS.
    inter_broker_user: str | None = field(default=None, kw_only=True)
    #: Whether to load the metrics reporter that ``harness.kafka.quotas`` reads.
    probe: bool = field(default=False, kw_only=True)
    log_dirs: int = field(default=1, kw_only=True)  # the number of log directories
    heap: str = field(default="512m", kw_only=True)  # the largest heap, as for ``java -Xmx``
    #: Further options of ``java``. QUICK_START suits tests; benches of speed leave it out.
    jvm_options: Sequence[str] = field(default=QUICK_START, kw_only=True)
    #: Whether to start from an archive of Kafka's classes, which saves 1.5 s. Benches of start-up or memory turn it
    #: off. Only the default version has an archive: others start too rarely.
    class_archive: bool = field(default=True, kw_only=True)
    #: Variables that are added to this process's environment.
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    node_id: int = field(default=1, kw_only=True)  # Kafka's ``node.id``
    roles: str = field(default="broker,controller", kw_only=True)  # Kafka's ``process.roles``
    cluster_id: str = field(default_factory=new_cluster_id, kw_only=True)  # shared by the nodes of a cluster
    voters: str = field(default="", kw_only=True)  # ``controller.quorum.voters``; empty for this node alone
    #: The number of brokers in the cluster; the replication of internal topics follows from it.
    brokers: int = field(default=1, kw_only=True)
    ports: dict[str, int] = field(init=False)  # the port of each listener, by the listener's name

    def __post_init__(self) -> None:
        """Chooses the ports."""
        names = [INTERNAL] * self.is_broker + [CLIENTS] * bool(self.is_broker and self.users)
        names += [CONTROLLER] * ("controller" in self.roles)
        self.ports = {name: free_port() for name in names}

    @property
    def is_broker(self) -> bool:
        """Whether clients can connect to the node."""
        return "broker" in self.roles

    @property
    def data_dirs(self) -> list[Path]:
        """Kafka's ``log.dirs``."""
        return [self.directory / f"data-{n}" for n in range(1, self.log_dirs + 1)]

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` for clients without a user."""
        return f"127.0.0.1:{self.ports[INTERNAL]}"

    @property
    def voter(self) -> str:
        """This controller's entry in ``controller.quorum.voters``."""
        return f"{self.node_id}@127.0.0.1:{self.ports[CONTROLLER]}"

    def client_config(self, user: str | None = None, client_id: str | None = None) -> dict[str, Any]:
        """Returns the librdkafka properties of a client that connects as one of the users, or as ANONYMOUS."""
        config: dict[str, Any] = {"bootstrap.servers": self.bootstrap}
        if client_id is not None:
            config["client.id"] = client_id
        if user is not None:
            config |= {
                "bootstrap.servers": f"127.0.0.1:{self.ports[CLIENTS]}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": self.mechanism,
                "sasl.username": user,
                "sasl.password": self.users[user],
            }
        return config

    def server_properties(self) -> dict[str, str]:
        """Returns the whole content of server.properties."""
        properties = self.placement() | self._replication()
        if CLIENTS in self.ports:
            properties |= self._sasl()
        if self.probe:
            properties["metric.reporters"] = _REPORTERS
        return properties | self.properties

    def placement(self) -> dict[str, str]:
        """Returns the node's id and roles, its listeners and its directories: enough to format the storage."""
        inter_broker = CLIENTS if self.inter_broker_user else INTERNAL
        protocols = f"{INTERNAL}:PLAINTEXT,{CLIENTS}:SASL_PLAINTEXT,{CONTROLLER}:PLAINTEXT"
        return {
            "process.roles": self.roles,
            "node.id": str(self.node_id),
            "controller.quorum.voters": self.voters or self.voter,
            "controller.listener.names": CONTROLLER,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": protocols,
            "log.dirs": ",".join(map(str, self.data_dirs)),
            **({"inter.broker.listener.name": inter_broker} if self.is_broker else {}),
        }

    def _replication(self) -> dict[str, str]:
        """Returns settings of internal topics: as many replicas as the cluster allows, and few partitions for speed."""
        replicas = str(min(3, self.brokers))
        return {
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _sasl(self) -> dict[str, str]:
        own = self.inter_broker_user or next(iter(self.users))
        by_scram = login_jaas(self.mechanism, own, self.users[own])
        jaas = plain_jaas(self.users, self.inter_broker_user) if self.mechanism == "PLAIN" else by_scram
        return {
            "sasl.enabled.mechanisms": self.mechanism,
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            f"listener.name.{CLIENTS.lower()}.{self.mechanism.lower()}.sasl.jaas.config": jaas,
        }

    def scram_credentials(self) -> list[str]:
        """Returns the options with which ``kafka-storage.sh format`` stores the users, if they have SCRAM."""
        if self.mechanism == "PLAIN":
            return []
        users = (f"{self.mechanism}=[name={name},password={password}]" for name, password in self.users.items())
        return [part for user in users for part in ("--add-scram", user)]
