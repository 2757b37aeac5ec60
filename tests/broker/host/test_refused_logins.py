"""A cluster that refuses the plugins' login: what their tries cost it, and how soon they are back."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, reassign
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.properties import plain_jaas
from harness.kafka.settings import CLIENTS, INTERNAL
from harness.plugin import JAR
from harness.system.certificates import PASSWORD, identity, truststore
from harness.system.ports import free_port
from harness.system.proxy import Proxy
from harness.system.waiting import eventually
from tests.broker.host.test_plugin_client import tls
from tests.broker.support.commands import explain_client
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.seen import gauge

pytestmark = pytest.mark.long

CLIENTS_OF: Final = ("publish-volumes", "publish-usage", "publish-usage-watch", "cluster-quota-quotas")
SETTINGS: Final = {
    "factor.source": "cluster-volumes",
    "supplier": "cluster-quota",
    "tasks": "publish-volumes,publish-usage",
    "fence.authorizer": "none",
    "startup.grace": "1s",
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.username": "quotahost",
    "kafka.sasl.password": "now",
}


def refused(node: KafkaNode) -> float:
    """How many logins the broker has refused since its start."""
    listeners = Jmx(node).query("kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*")
    return sum(float(bean["failed-authentication-total"]) for bean in listeners.values())


def seconds_for(node: KafkaNode, tries: int) -> float:
    """How long so many further logins take."""
    before, began = refused(node), time.monotonic()
    eventually(lambda: refused(node) >= before + tries)
    return time.monotonic() - began


def give(node: KafkaNode, password: str) -> None:
    """The user ``quotahost`` has this password from now on."""
    admin = AdminClient(node.client_config())
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("quotahost", scram, password.encode())
    admin.alter_user_scram_credentials([change])["quotahost"].result(10)


def test_a_wrong_password_costs_a_few_logins_a_minute_and_is_over_soon_after(tmp_path: Path) -> None:
    node = callback_node(tmp_path, users={"admin": "a", "quotahost": "before"}, mechanism="SCRAM-SHA-512")
    with Proxy(node.ports[CLIENTS]) as proxy:
        node.properties |= _properties(node, proxy)
        with node:
            why = "__quotahost_cluster_volumes is not read yet (not connected: it refuses the user, the password"
            eventually(lambda: why in explain_client(node, "ANONYMOUS", "app")[1])
            check_costs_little_and_is_over_soon(node)
            # Of a password with which all are connected.
            give(node, "another")
            check_costs_little_and_is_over_soon(node)
            # While the network fails, each client knows already that it reaches nobody.
            proxy.cut()
            eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 0)
            give(node, "a third one")
            before = refused(node)
            proxy.heal()
            check_costs_little_and_is_over_soon(node)
            assert refused(node) - before < 30, "a few for each client, once"


def check_costs_little_and_is_over_soon(node: KafkaNode) -> None:
    eventually(lambda: seconds_for(node, 3) > 20, what="six logins a minute, of a dozen clients")
    give(node, "now")
    right = time.monotonic()
    for name in CLIENTS_OF:
        eventually(lambda name=name: gauge(node, f"Connection,name={name}", "Connected") == 1, what=name)
    assert time.monotonic() - right < 20


def _properties(node: KafkaNode, proxy: Proxy) -> dict[str, str]:
    own = {"kafka.bootstrap.servers": f"127.0.0.1:{proxy.port}", "kafka.sasl.mechanism": "SCRAM-SHA-512"}
    listeners = f"{INTERNAL}://127.0.0.1:{node.ports[INTERNAL]},{CLIENTS}://127.0.0.1:{proxy.port}"
    # The broker asks each connection for its password again after so many ms.
    again = {"connections.max.reauth.ms": "3000", "advertised.listeners": listeners}
    return callback_properties(SETTINGS | own) | again


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_so_does_a_certificate_that_is_not_trusted(tmp_path: Path, protocol: str) -> None:
    broker, stranger = identity(tmp_path, "broker"), identity(tmp_path, "stranger")
    port = free_port()
    settings = {
        "factor.source": "cluster-volumes",  # one reader waits for its topic, and connects anew each time
        "tasks": "publish-volumes,publish-usage",
        "fence.authorizer": "none",
        "startup.grace": "1s",
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.security.protocol": "ssl",
        "kafka.ssl.ca.location": str(broker.certificate),
        "kafka.ssl.keystore.location": str(stranger.keystore),
        "kafka.ssl.keystore.password": PASSWORD,
    }
    node = callback_node(tmp_path / "node", settings)
    node.directory.mkdir()
    one, both = truststore(tmp_path, [broker]), truststore(node.directory, [broker, stranger])
    node.properties |= tls(node, broker, one, port) | {"listener.name.tls.ssl.enabled.protocols": protocol}
    # A name of Java's for a cipher of 1.3 alone.
    del node.properties["listener.name.tls.ssl.cipher.suites"]
    with node:
        eventually(lambda: seconds_for(node, 3) > 20, what="six logins a minute, of all clients")
        node.wait_for_log("not connected: TLS fails")
        trust(node, both)
        for name in ("publish-volumes", "publish-usage-watch"):
            eventually(lambda name=name: gauge(node, f"Connection,name={name}", "Connected") == 1, what=name)
        # Connections stay, and new ones alone are refused.
        trust(node, one)
        eventually(lambda: seconds_for(node, 3) > 20, what="six logins a minute again")
        assert gauge(node, "Connection,name=publish-volumes", "Connected") == 1, "it was not refused"


def trust(node: KafkaNode, trusted: Path) -> None:
    """The listener TLS takes the clients whose certificates are in this file."""
    alter_broker_config(node, {"listener.name.tls.ssl.truststore.location": str(trusted)}, broker=1)


def test_where_one_broker_of_two_has_another_password_each_client_tries_a_few_times_a_minute(tmp_path: Path) -> None:
    users = {"admin": "a", "quotahost": "now"}
    cluster = Cluster(tmp_path, brokers=2, classpath=[JAR], probe=True, users=users)
    right, wrong = cluster.brokers
    own = {
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.bootstrap.servers": cluster.client_config("admin")["bootstrap.servers"],
    }
    for node in cluster.brokers:
        node.properties = callback_properties(SETTINGS | own)
    jaas = "listener.name.clients.plain.sasl.jaas.config"
    wrong.properties[jaas] = plain_jaas(users | {"quotahost": "another"})
    with cluster:
        eventually(lambda: len(ours(cluster)) > 3, what="the topics are made by the broker that takes the login")
        for topic in ours(cluster):
            reassign(cluster, topic, [wrong.node_id, right.node_id])
        eventually(lambda: seconds_for(wrong, 60) > 15, what="of twenty clients")
        wrong.stop()
        wrong.properties[jaas] = plain_jaas(users)
        wrong.start()
        for node, name in product(cluster.brokers, CLIENTS_OF):
            eventually(lambda node=node, name=name: gauge(node, f"Connection,name={name}", "Connected") == 1, what=name)


def ours(cluster: Cluster) -> list[str]:
    topics = AdminClient(cluster.client_config("admin")).list_topics(timeout=10).topics
    return [name for name in topics if name.startswith("__quotahost")]
