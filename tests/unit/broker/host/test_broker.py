"""What plugins learn of this broker."""

import pytest

from quotahost.broker.host.broker import HostBroker
from tests.fakes.shim import FakeShim, node_of
from tests.unit.settings.properties import read

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
    with pytest.raises(TypeError):
        broker.properties()["node.id"] = "4"  # type: ignore[index]


def test_principals_follow_what_kafka_applies_and_are_derived_once(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim(node=node_of(1, "old"))
    broker = HostBroker(shim, read({}))
    assert broker.principals == ["old"]
    shim.node = {**node_of(1), "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    for _ in range(2):
        broker.refresh(read({}))
    assert broker.principals == []
    assert len(caplog.records) == 1
