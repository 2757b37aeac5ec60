"""A cluster that refuses the plugins' login: what their tries cost it, and how soon they are back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.seen import gauge

pytestmark = [pytest.mark.broker, pytest.mark.long]

CLIENTS_OF: Final = ("publish-volumes", "publish-usage", "publish-usage-watch", "cluster-quota-quotas")


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
    admin = AdminClient(node.client_config("admin") | {"log_level": 0})
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("quotahost", scram, password.encode())
    admin.alter_user_scram_credentials([change])["quotahost"].result(10)


def test_a_wrong_password_costs_a_few_logins_a_minute_and_is_over_soon_after(tmp_path: Path) -> None:
    users = {"admin": "a", "quotahost": "before"}
    node = callback_node(tmp_path, users=users, mechanism="SCRAM-SHA-512")
    settings = {
        "factor.source": "cluster-volumes",
        "supplier": "cluster-quota",
        "tasks": "publish-volumes,publish-usage",
        "fence.authorizer": "none",
        "startup.grace": "1s",
        "kafka.bootstrap.servers": f"127.0.0.1:{node.ports[CLIENTS]}",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.username": "quotahost",
        "kafka.sasl.password": "now",
    }
    # The broker asks each connection for its password again after so many ms.
    node.properties |= callback_properties(settings) | {"connections.max.reauth.ms": "3000"}
    with node:
        for change in ("", "another"):
            if change:  # of a password with which all are connected
                give(node, change)
            eventually(lambda: seconds_for(node, 3) > 20, what="six logins a minute, of a dozen clients")
            give(node, "now")
            right = time.monotonic()
            for name in CLIENTS_OF:
                eventually(lambda name=name: gauge(node, f"Connection,name={name}", "Connected") == 1, what=name)
            assert time.monotonic() - right < 20
