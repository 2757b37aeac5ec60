"""What plugins get of the broker's own properties, and as whom the cluster is asked and their client connects."""

from __future__ import annotations

import pytest

from quotahost.broker.host.broker import HostBroker
from tests.fakes.shim import FakeShim, node_of
from tests.unit.settings.test_strimzi import ADMIN, BOOTSTRAP, read

SECRET = "hunter2"


def test_plugins_get_no_secret_but_in_the_configuration_of_their_client() -> None:
    node = node_of(3, "broker")
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    broker = HostBroker(FakeShim(node=node | {name: f'{node[name]} password="{SECRET}";'}), read({}))
    assert broker.properties() == {"node.id": "3"}
    assert broker.client_config() == {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "broker",
        "sasl.password": SECRET,
        "client.id": "quotahost-3",
    }
    assert SECRET not in repr(broker)


def test_the_cluster_is_asked_as_brokers_reach_each_other_and_by_a_controller_alone_as_it_is_told() -> None:
    shim = FakeShim()
    HostBroker(shim, read(BOOTSTRAP))
    assert shim.client == {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "PLAINTEXT"}
    shim = FakeShim(node={"process.roles": "controller", "listeners": "C://:1", "controller.listener.names": "C"})
    HostBroker(shim, read({**BOOTSTRAP, f"{ADMIN}security.protocol": "SSL"}))
    assert shim.client == {"bootstrap.servers": "localhost:9092", "security.protocol": "SSL"}


def test_principals_follow_what_kafka_applies_and_are_derived_once(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim(node=node_of(1, "old"))
    broker = HostBroker(shim, read({}))
    assert broker.principals == ["old"]
    shim.node = {**node_of(1), "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    for _ in range(2):
        broker.refresh(read({}))
    assert broker.principals == []
    assert len(caplog.records) == 1
