"""How a client of a broker connects to it as brokers connect to each other."""

import pytest

from quotahost.kafka.listeners import Listeners

SECRET = "hunter2"


def client(**properties: str) -> dict[str, str]:
    return Listeners({name.replace("_", "."): value for name, value in properties.items()}).client()


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_broker_that_listens_everywhere_is_reached_as_localhost(host: str) -> None:
    expected = {"bootstrap.servers": "localhost:9092", "security.protocol": "PLAINTEXT"}
    assert client(process_roles="broker,controller", listeners=f"PLAINTEXT://{host}:9092,C://:1") == expected


def test_the_advertised_address_of_the_inter_broker_listener_comes_first() -> None:
    made = client(
        listeners="A://:1,B://:2", advertised_listeners="A://a:1, b://[::1]:2", inter_broker_listener_name="B",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
    )  # fmt: skip
    assert made == {"bootstrap.servers": "[::1]:2", "security.protocol": "PLAINTEXT"}


def test_a_controller_alone_and_a_broker_without_an_address_have_none() -> None:
    assert (
        client(process_roles="controller", listeners="PLAINTEXT://:9093", controller_listener_names="PLAINTEXT") == {}
    )
    assert client(listeners="A://:1") == {}


def test_it_has_the_credentials_of_the_mechanism_and_the_stores_of_the_listener() -> None:
    properties = {
        "listeners": "INTERNAL://h:1",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "internal:SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.jaas.config": "general",
        "listener.name.internal.scram-sha-512.sasl.jaas.config": SECRET,
        "listener.name.other.scram-sha-512.sasl.jaas.config": "other",
        "ssl.keystore.location": "general",
        "ssl.keystore.type": "JKS",
        "listener.name.internal.ssl.keystore.location": "own",
        "ssl.endpoint.identification.algorithm": "",
        "log.dirs": "/data",
    }
    assert Listeners(properties).client() == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.jaas.config": SECRET,
        "ssl.keystore.location": "own",
        "ssl.keystore.type": "JKS",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert SECRET not in repr(Listeners(properties))
