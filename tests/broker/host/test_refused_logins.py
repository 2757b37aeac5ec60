"""A cluster that refuses the plugins' login: what their tries cost it, and how soon they are back.

``tests/unit/kafka/test_clients.py`` has the same of a certificate.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS, INTERNAL
from harness.system.proxy import Proxy
from harness.system.waiting import eventually
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


OWN: Final = {"factor.source": "snapshots", "tasks": "publish-volumes", "startup.grace": "1s"}


def refused(node: KafkaNode) -> float:
    """How many logins the broker has refused since its start."""
    listeners = Jmx(node).query("kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*")
    return sum(float(bean["failed-authentication-total"]) for bean in listeners.values())


def seconds_for(node: KafkaNode, tries: int) -> float:
    """How long so many further logins take."""
    before, began = refused(node), time.monotonic()
    eventually(lambda: refused(node) >= before + tries)
    return time.monotonic() - began


def give(node: KafkaNode, password: str, user: str = "quotahost") -> None:
    """The user has this password from now on."""
    admin = AdminClient(node.client_config())
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, scram, password.encode())
    admin.alter_user_scram_credentials([change])[user].result(10)


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


def test_brokers_whose_own_login_was_refused_for_a_while_publish_again_soon_after(tmp_path: Path) -> None:
    """An Admin client of Kafka's that was refused asks nobody until its metadata expires (AdminMetadataManager)."""
    users = {"broker": "own"}
    node = callback_node(tmp_path, OWN, users=users, mechanism="SCRAM-SHA-512", inter_broker_user="broker")
    node.properties |= {"connections.max.reauth.ms": "3000"}
    with node:
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 1)
        give(node, "another", "broker")
        fatal, later = (
            "AdminClient clientId=quotahost-1] Fatal error",
            "AdminClient clientId=quotahost-1] Metadata update failed",
        )
        eventually(lambda: later in node.log_text().partition(fatal)[2])
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 0)
        give(node, "own", "broker")
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 1, timeout=60)
