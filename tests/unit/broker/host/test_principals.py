"""The principals of brokers by each way of authentication, and at which listeners they count."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from quotahost.broker.host.exemptions import broker_principals

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required "
EXCLUDED = "client.quota.callback.static.excluded.principal.name.list"
SUBJECT = "CN=broker-1,OU=kafka,O=quotahost"
INTERNAL = "listener.name.internal.scram-sha-512.sasl.jaas.config"
CONTROLLER = "listener.name.controller.plain.sasl.jaas.config"
PROPERTIES = {
    "process.roles": "broker,controller",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "controller.listener.names": "CONTROLLER",
    "sasl.mechanism.controller.protocol": "PLAIN",
    INTERNAL: SCRAM + 'username="broker" password="hunter2";',
    CONTROLLER: PLAIN + 'username="controller" password="hunter2";',
}


def keystores(ssl: Mapping[str, str]) -> dict[str, str]:
    """Answers the properties that it was asked for, and for each rule a name."""
    assert not any("truststore" in name for name in ssl), "one that can't be read is of no concern"
    if ssl.get("ssl.keystore.location") == "/no/such":
        raise ConnectionError("NoSuchFileException: hunter2")
    if "ssl.keystore.location" not in ssl:
        return {}
    return {"principal": "mapped" if "ssl.principal.mapping.rules" in ssl else SUBJECT}


def names(changes: Mapping[str, str | None] = {}, start: Mapping[str, str] = PROPERTIES) -> list[str]:
    given = {name: value for name, value in {**start, **changes}.items() if value is not None}
    return broker_principals(given, keystores)


def test_without_authentication_brokers_are_anonymous() -> None:
    assert names(start={}) == ["ANONYMOUS"]
    kraft = {
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    assert names(start=kraft) == ["ANONYMOUS"]


def test_the_users_at_the_inter_broker_listener_and_at_the_controllers_are_named_each_once() -> None:
    assert names({"listener.name.clients.plain.sasl.jaas.config": PLAIN + 'username="x";'}) == ["broker", "controller"]
    assert names({CONTROLLER: PLAIN + 'username="broker" password="hunter2";'}) == ["broker"]


def test_a_listener_whose_name_is_part_of_the_controllers_has_its_own_mechanism() -> None:
    changes = {
        "listener.security.protocol.map": "CONTROL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "CONTROL",
        "listener.name.control.scram-sha-512.sasl.jaas.config": SCRAM + 'username="broker" password="hunter2";',
    }
    assert names(changes) == ["broker", "controller"]


def test_a_kerberos_principal_is_shortened() -> None:
    jaas = 'Krb5LoginModule required principal="kafka/host.example@REALM" useKeyTab=true;'
    assert names(start={"security.inter.broker.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": jaas}) == ["kafka"]


def test_an_oauth_bearers_name_is_only_known_if_it_is_unsecured() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    own = "listener.name.internal.oauthbearer.sasl.jaas.config"
    oauth = {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}
    assert names({**oauth, own: module + 'unsecuredLoginStringClaim_sub="broker";'}) == ["broker", "controller"]
    assert names({**oauth, own: module + 'clientId="c" clientSecret="hunter2";'}) == ["controller"]


# ---- certificates ----------------------------------------------------------------------------------------------------

SSL = {"security.inter.broker.protocol": "SSL", "ssl.client.auth": "required", "ssl.keystore.location": "/k"}


def test_a_certificate_gives_its_mapped_subject() -> None:
    assert names({"ssl.truststore.location": "/no/such"}, SSL) == [SUBJECT]
    assert names({"ssl.principal.mapping.rules": "RULE:x"}, SSL) == ["mapped"]
    assert names({"ssl.client.auth": "requested"}, SSL) == [SUBJECT]


def test_the_listeners_own_keystore_and_rules_come_first() -> None:
    own = {
        "ssl.keystore.location": "/no/such",
        "listener.name.internal.ssl.keystore.location": "/k",
        "listener.name.internal.ssl.principal.mapping.rules": "RULE:x",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "INTERNAL:SSL",
    }
    assert names(own, SSL) == ["mapped"]


@pytest.mark.parametrize("auth", ["none", "", None])
def test_if_the_listener_wants_no_certificate_brokers_are_anonymous(auth: str | None) -> None:
    """By Kafka's default no client shows a certificate (SslTransportLayer)."""
    assert names({"ssl.client.auth": auth}, SSL) == ["ANONYMOUS"]


# ---- who counts as ANONYMOUS -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("clients", ["CLIENTS:PLAINTEXT", "CLIENTS:SSL"])
def test_controllers_without_authentication_make_nobody_a_broker_where_clients_have_none_either(clients: str) -> None:
    """Or any client at CLIENTS could claim a broker's client-id."""
    changes = {
        "listener.security.protocol.map": f"{clients},INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": "CLIENTS://:1,INTERNAL://:2,CONTROLLER://:3",
    }
    assert names(changes) == ["broker"]


def test_where_only_nodes_can_be_anonymous_they_are() -> None:
    changes = {
        "listener.security.protocol.map": "CLIENTS:SSL,INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.clients.ssl.client.auth": "required",
        "listeners": "CLIENTS://:1,INTERNAL://:2,CONTROLLER://:3",
    }
    assert names(changes) == ["broker", "ANONYMOUS"]


def test_on_a_node_that_is_only_a_controller_the_controllers_listener_decides() -> None:
    """It has no listener of brokers, whose default is no authentication."""
    alone = {"process.roles": "controller", "inter.broker.listener.name": None}
    assert names({**alone, "listener.security.protocol.map": "CONTROLLER:PLAINTEXT"}) == ["ANONYMOUS"]
    assert names({**alone, "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT"}) == ["controller"]


# ---- what can't be found out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jaas", "found"),
    [(f'{SCRAM}password="hunter2";', []), (f'{SCRAM}username="x" password="hunter2', ["x"]), ("hunter2", []), ("", [])],
)
def test_a_principal_that_cannot_be_found_is_logged_with_the_remedy_and_without_the_secret(
    jaas: str, found: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert names({INTERNAL: jaas}) == [*found, "controller"]
    assert "hunter2" not in caplog.text
    assert [record.levelno for record in caplog.records] == ([] if found else [logging.WARNING])
    assert found or (EXCLUDED in caplog.text and "INTERNAL" in caplog.text)


def test_the_log_names_why_a_keystore_cannot_be_read_without_its_particulars(caplog: pytest.LogCaptureFixture) -> None:
    assert names({"ssl.keystore.location": "/no/such"}, SSL) == []
    assert "NoSuchFileException" in caplog.text
    assert EXCLUDED in caplog.text
    assert "hunter2" not in caplog.text
    assert names({"ssl.keystore.location": None}, SSL) == []


def test_nonsense_never_stops_the_broker_here() -> None:
    nonsense = {
        "inter.broker.listener.name": "NO:SUCH,LISTENER",
        "listener.security.protocol.map": ",:,A,B:C:D",
        "controller.listener.names": " , ",
    }
    assert names(nonsense) is not None
