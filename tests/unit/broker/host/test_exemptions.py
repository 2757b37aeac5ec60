"""Tests who is exempt: brokers by the principals of their configuration, listed principals, quotahost's own clients."""

import logging
from collections.abc import Mapping

import pytest

from quotahost.broker.host.exemptions import INTERNAL_CLIENT_IDS, broker_principals
from tests.fakes.shim import FakeShim, node_of, serve

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
    """The principal of the keystore's certificate; another name if there are mapping rules."""
    assert not any("truststore" in name for name in ssl), "the truststore is left out: it may be unreadable"
    if ssl.get("ssl.keystore.location") == "/no/such":
        raise ConnectionError("NoSuchFileException: hunter2")
    if "ssl.keystore.location" not in ssl:
        return {}
    return {"principal": "mapped" if "ssl.principal.mapping.rules" in ssl else SUBJECT}


def names(changes: Mapping[str, str | None] = {}, start: Mapping[str, str] = PROPERTIES) -> list[str]:
    given = {name: value for name, value in {**start, **changes}.items() if value is not None}
    return broker_principals(given, keystores)


MAP = "listener.security.protocol.map"
#: The name of the first listener is the beginning of the second listener's name.
CONTROL = {
    MAP: "CONTROL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CONTROL",
    "listener.name.control.scram-sha-512.sasl.jaas.config": SCRAM + 'username="broker" password="hunter2";',
}
KERBEROS = 'Krb5LoginModule required principal="kafka/host.example@REALM" useKeyTab=true;'
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
OF_BEARER = "listener.name.internal.oauthbearer.sasl.jaas.config"
OAUTH = {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}
OPEN = {
    MAP: "CLIENTS:SSL,INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "CLIENTS://:1,INTERNAL://:2,CONTROLLER://:3",
}
#: A node that is only a controller has no inter-broker listener, whose default is no authentication.
ALONE_THERE = {"process.roles": "controller", "inter.broker.listener.name": None}

BUILDER = "principal.builder.class"
KAFKAS_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
SSL = {"security.inter.broker.protocol": "SSL", "ssl.client.auth": "required", "ssl.keystore.location": "/k"}
#: The listener's own keystore and rules take precedence.
OWN = {
    "ssl.keystore.location": "/no/such",
    "listener.name.internal.ssl.keystore.location": "/k",
    "listener.name.internal.ssl.principal.mapping.rules": "RULE:x",
    "inter.broker.listener.name": "INTERNAL",
    MAP: "INTERNAL:SSL",
}


@pytest.mark.parametrize(
    ("start", "changes", "found"),
    [
        ({}, {}, ["ANONYMOUS"]),
        ({"controller.listener.names": "CONTROLLER", MAP: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"}, {},
         ["ANONYMOUS"]),
        (PROPERTIES, {"listener.name.clients.plain.sasl.jaas.config": f'{PLAIN}username="x";'},
         ["broker", "controller"]),
        (PROPERTIES, {CONTROLLER: f'{PLAIN}username="broker" password="hunter2";'}, ["broker"]),
        (PROPERTIES, CONTROL, ["broker", "controller"]),
        (PROPERTIES, {BUILDER: KAFKAS_BUILDER}, ["broker", "controller"]),
        (PROPERTIES, {f"listener.name.internal.{BUILDER}": "org.acme.Builder"}, ["controller"]),
        ({"security.inter.broker.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": KERBEROS}, {}, ["kafka"]),
        # An operator's own rules may make any name.
        ({"security.inter.broker.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": KERBEROS},
         {"sasl.kerberos.principal.to.local.rules": "RULE:[2:broker]"}, []),
        ({"security.inter.broker.protocol": "SASL_PLAINTEXT"}, {"sasl.jaas.config": f'{PLAIN}username="x";'}, []),
        (PROPERTIES, OAUTH | {OF_BEARER: f'{BEARER}unsecuredLoginStringClaim_sub="broker";'}, ["broker", "controller"]),
        (PROPERTIES, OAUTH | {OF_BEARER: f'{BEARER}clientId="c" clientSecret="hunter2";'}, ["controller"]),
        # If clients can be ANONYMOUS, too, an ANONYMOUS controller exempts nobody: any client could claim a broker's
        # client-id.
        (PROPERTIES, OPEN | {MAP: "CLIENTS:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"}, ["broker"]),
        (PROPERTIES, OPEN, ["broker"]),
        (PROPERTIES, OPEN | {"listener.name.clients.ssl.client.auth": "required"}, ["broker", "ANONYMOUS"]),
        (PROPERTIES, ALONE_THERE | {MAP: "CONTROLLER:PLAINTEXT"}, ["ANONYMOUS"]),
        (PROPERTIES, ALONE_THERE | {MAP: "CONTROLLER:SASL_PLAINTEXT"}, ["controller"]),
        (SSL, {"ssl.truststore.location": "/no/such"}, [SUBJECT]),
        (SSL, {"ssl.principal.mapping.rules": "RULE:x"}, ["mapped"]),
        (SSL, {"ssl.client.auth": "requested"}, [SUBJECT]),
        (SSL, OWN, ["mapped"]),
        # Kafka's default asks clients for no certificate (SslTransportLayer).
        *((SSL, {"ssl.client.auth": auth}, ["ANONYMOUS"]) for auth in ("none", "", None)),
    ],
)  # fmt: skip
def test_brokers_are_the_users_at_the_inter_broker_listener_and_at_the_controllers_each_once(
    start: Mapping[str, str], changes: Mapping[str, str | None], found: list[str]
) -> None:
    assert names(changes, start) == found


@pytest.mark.parametrize(
    ("start", "changes", "found", "told"),
    [
        *((PROPERTIES, {INTERNAL: jaas}, ["controller"], "INTERNAL can't be found in the configuration. If")
          for jaas in (f'{SCRAM}password="hunter2";', "hunter2", "")),
        (PROPERTIES, {INTERNAL: f'{SCRAM}username="x" password="hunter2'}, ["x", "controller"], ""),
        (SSL, {"ssl.keystore.location": "/no/such"}, [], "in the configuration: NoSuchFileException. If"),
        (SSL, {"ssl.keystore.location": None}, [], "in the configuration. If"),
        # A principal builder may name peers by their addresses.
        ({}, {BUILDER: "org.acme.Builder"}, ["ANONYMOUS"], "PLAINTEXT can't be found in the configuration. If"),
    ],
)  # fmt: skip
def test_a_principal_that_cannot_be_found_is_logged_with_the_remedy_and_without_the_secret(
    start: Mapping[str, str], changes: Mapping[str, str | None], found: list[str], told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    assert names(changes, start) == found
    assert "hunter2" not in caplog.text
    assert [(record.levelno, told in record.getMessage(), EXCLUDED in record.getMessage())
            for record in caplog.records] == [(logging.WARNING, True, True)] * bool(told)  # fmt: skip


def test_the_fence_hears_who_is_exempt_before_the_settings_and_again_as_brokers_join() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.excluded.principal.name.list": "User:root"}, node)
    shim.arrive(("ANONYMOUS", "5"))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.idle()
    shim.post("cluster", "the-cluster", "4", "5")
    # Kafka may apply another keystore or listener together with this change.
    shim.script.append(lambda: setattr(shim, "node", node_of(4, "ANONYMOUS", "renewed")))
    shim.reconfigure(**{"static.excluded.principal.name.list": "User:boss"})
    old, new = ["broker", "broker", "root", "excluded"], ["renewed", "broker", "boss", "excluded"]
    one, both = ["4", "quotahost-4"], ["4", "5", "quotahost-4", "quotahost-5"]
    assert serve(shim).arguments("exempt") == [
        [names, client_ids, INTERNAL_CLIENT_IDS] for names, client_ids in ((old, one), (old, both), (new, both))
    ]


@pytest.mark.parametrize("tiering", [True, False])
def test_the_fence_spares_topics_whose_writers_it_may_not_know(tiering: bool) -> None:
    node = node_of(4, "b") | ({"remote.log.storage.system.enable": "true"} if tiering else {})
    shim = serve(FakeShim({}, node))
    ((spared,),) = shim.arguments("spare")
    assert {"__quotahost_snapshots", "__quotahost_watch", "__quotahost_quotas"} <= set(spared)
    assert ("__remote_log_metadata" in spared) == tiering
    assert shim.arguments("exempt") == [[["b", "broker"], [], ""]]
