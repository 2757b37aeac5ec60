"""How a node is set up, and the server.properties that follow from it."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.java.jars import DEFAULT_VERSION
from harness.kafka.properties import plain_jaas
from harness.system.ports import free_port

INTERNAL: Final = "INTERNAL"  # PLAINTEXT: between brokers, and for clients without a user
CLIENTS: Final = "CLIENTS"  # SASL_PLAINTEXT with PLAIN: for clients with a user
CONTROLLER: Final = "CONTROLLER"  # PLAINTEXT
QUICK_START: Final = ("-XX:TieredStopAtLevel=1",)  # no second compiler

_REPORTERS: Final = "org.apache.kafka.common.metrics.JmxReporter,harness.QuotaProbe"


def new_cluster_id() -> str:
    """A random id as ``kafka-storage.sh random-uuid`` makes them."""
    while (name := urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass  # it would look like an option to the tools
    return name


@dataclass(eq=False)
class NodeSettings:
    """What can be chosen about a node; the ports are free ones of loopback, kept over restarts.

    Attributes:
        directory: for its data, server.properties and log; made if missing.
        version: Kafka's.
        properties: put over the harness's own in server.properties, at each start.
        classpath: jars, directories of jars or directories of classes, behind Kafka's own.
        users: passwords by name. If given, clients can connect as one of them with SASL/PLAIN;
            without a user they are ANONYMOUS, on the listener that brokers use among themselves.
        inter_broker_user: one of users, for the traffic between brokers; None: ANONYMOUS.
        probe: loads the reporter that ``harness.kafka.quotas`` reads.
        log_dirs: how many directories the data is kept in.
        heap: the largest heap, as for ``java -Xmx``.
        jvm_options: further options of ``java``; those of QUICK_START save half of the start's work, and are
            left out where speed is measured.
        class_archive: starts from an archive of Kafka's classes, 1.5 s quicker; False where start-up
            or memory is measured. Versions other than the default one start too rarely to make one.
        env: put over this process's environment.
        node_id: Kafka's ``node.id``.
        roles: Kafka's ``process.roles``.
        cluster_id: shared by the nodes of a cluster.
        voters: ``controller.quorum.voters``; empty for this node alone.
        brokers: how many brokers the cluster has, for the replication of internal topics.
    """

    directory: Path
    version: str = field(default=DEFAULT_VERSION, kw_only=True)
    properties: dict[str, str] = field(default_factory=dict, kw_only=True)
    classpath: Sequence[Path] = field(default=(), kw_only=True)
    users: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    inter_broker_user: str | None = field(default=None, kw_only=True)
    probe: bool = field(default=False, kw_only=True)
    log_dirs: int = field(default=1, kw_only=True)
    heap: str = field(default="512m", kw_only=True)
    jvm_options: Sequence[str] = field(default=QUICK_START, kw_only=True)
    class_archive: bool = field(default=True, kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    node_id: int = field(default=1, kw_only=True)
    roles: str = field(default="broker,controller", kw_only=True)
    cluster_id: str = field(default_factory=new_cluster_id, kw_only=True)
    voters: str = field(default="", kw_only=True)
    brokers: int = field(default=1, kw_only=True)
    ports: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Chooses the ports."""
        names = [INTERNAL] * self.is_broker + [CLIENTS] * bool(self.is_broker and self.users)
        names += [CONTROLLER] * ("controller" in self.roles)
        self.ports = {name: free_port() for name in names}

    @property
    def is_broker(self) -> bool:
        """Whether clients can connect to it."""
        return "broker" in self.roles

    @property
    def data_dirs(self) -> list[Path]:
        """Kafka's ``log.dirs``."""
        return [self.directory / f"data-{n}" for n in range(1, self.log_dirs + 1)]

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` of the listener without users."""
        return f"127.0.0.1:{self.ports[INTERNAL]}"

    @property
    def voter(self) -> str:
        """This controller as one of ``controller.quorum.voters``."""
        return f"{self.node_id}@127.0.0.1:{self.ports[CONTROLLER]}"

    def client_config(self, user: str | None = None, client_id: str | None = None) -> dict[str, Any]:
        """The librdkafka configuration of a client: as one of the users, or as ANONYMOUS."""
        config: dict[str, Any] = {"bootstrap.servers": self.bootstrap}
        if client_id is not None:
            config["client.id"] = client_id
        if user is not None:
            config |= {
                "bootstrap.servers": f"127.0.0.1:{self.ports[CLIENTS]}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": self.users[user],
            }
        return config

    def server_properties(self) -> dict[str, str]:
        """All that stands in server.properties."""
        properties = self.placement() | self._replication()
        if CLIENTS in self.ports:
            properties |= self._sasl()
        if self.probe:
            properties["metric.reporters"] = _REPORTERS
        return properties | self.properties

    def placement(self) -> dict[str, str]:
        """Who it is, where it listens, and where its data is: enough to format the storage."""
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
        """Internal topics as wide as the cluster allows, and quick to make."""
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
        jaas = plain_jaas(self.users, self.inter_broker_user)
        return {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{CLIENTS.lower()}.plain.sasl.jaas.config": jaas,
        }
