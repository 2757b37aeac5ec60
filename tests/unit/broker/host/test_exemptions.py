"""Who is exempt: brokers, by the principals of their configuration, listed principals, and quotahost's own clients."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from quotahost.broker.host.exemptions import INTERNAL_CLIENT_IDS, broker_principals
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import EXEMPT
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim, node_of

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


def run(shim: FakeShim, clock: Clock | None = None) -> FakeShim:
    Host(shim, clock or Clock()).run()
    return shim


def test_listed_principals_and_the_brokers_are_exempt() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.produce": "2M", "static.excluded.principal.name.list": "User:root"}, node)
    shim.arrive(("root", "x"), ("broker", "y"), ("ANONYMOUS", "4"), ("ANONYMOUS", "quotahost-4"))
    shim.arrive(("ANONYMOUS", "5"), ("ANONYMOUS", "app"), ("alice", "4"))
    run(shim)
    exempt = {c for c in shim.table if shim.code(*c) == EXEMPT}
    assert {c.client_id for c in exempt} == {"x", "y", "4", "quotahost-4"}
    assert shim.code("alice", "4") != EXEMPT


def test_a_broker_that_joins_is_exempt_from_then_on() -> None:
    shim = FakeShim({"static.produce": "2M"}, node_of(4, "ANONYMOUS"))
    shim.arrive(("ANONYMOUS", "5"))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.idle()
    run(shim)
    assert shim.code("ANONYMOUS", "5") == EXEMPT


def test_the_fence_hears_who_is_exempt_before_the_settings_and_again_as_brokers_join() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.excluded.principal.name.list": "User:root"}, node)
    shim.script.append(lambda: assert_exempted(shim, ["4", "quotahost-4"]))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.script.append(lambda: assert_exempted(shim, ["4", "5", "quotahost-4", "quotahost-5"]))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.reconfigure(**{"static.excluded.principal.name.list": "User:boss"})
    run(shim)
    assert shim.exempted[-1] == (["boss", "broker"], ["4", "5", "quotahost-4", "quotahost-5"], INTERNAL_CLIENT_IDS)
    assert len(shim.exempted) == 3


def assert_exempted(shim: FakeShim, client_ids: list[str]) -> None:
    assert shim.exempted[-1] == (["broker", "root"], client_ids, INTERNAL_CLIENT_IDS)


def test_where_brokers_are_anonymous_kafkas_own_clients_and_quotahosts_are_exempt_by_their_client_ids() -> None:
    exempt = [
        "4",
        "quotahost-4",
        "quotahost-7",
        "quotahost-pipeline",
        "quotahost-top",
        "quotahost-quotas",
        "broker-1-fetcher-0",
        "raft-client-3",
    ]
    exempt += ["broker-1-txn-marker-sender", "AddPartitionsManager-client-2", "Persister-client-2"]
    exempt += ["NetworkPartitionMetadataClient-client-2", "broker-1-" + 247 * "x"]
    exempt += [f"__remote_log_metadata_client_2_{what}" for what in ("producer", "consumer", "admin")]
    others = [
        "2",
        "",
        "broker-x-fetcher",
        "broker-1-",
        "broker-1-a b",
        "my-broker-1-a",
        "raft-client-",
        "raft-client-\u0663",
        "broker-1-" + 248 * "x",
        "Persister-client-x",
        "__remote_log_metadata_client_2_other",
    ]
    shim = FakeShim({"static.produce": "2M"}, node_of(4, "ANONYMOUS"))
    shim.arrive(*[("ANONYMOUS", client_id) for client_id in exempt + others])
    run(shim)
    assert [c.client_id for c in shim.table if shim.code(*c) == EXEMPT] == exempt


def test_client_ids_do_not_count_where_brokers_authenticate() -> None:
    shim = FakeShim({}, node_of(4, "broker"))
    shim.idle()
    run(shim)
    assert shim.exempted == [(["broker"], [], "")]


@pytest.mark.parametrize("kind", ["kafka", "static.kafka.admin"])
def test_where_brokers_authenticate_an_anonymous_client_of_the_plugins_writes_its_topics_and_claims_no_client_id(
    kind: str,
) -> None:
    shim = FakeShim({f"{kind}.bootstrap.servers": "localhost:9092"}, node_of(4, "b"))
    shim.arrive(("ANONYMOUS", "quotahost-4"), ("ANONYMOUS", "4"))
    run(shim)
    assert shim.exempted == [(["b"], [], "")]
    assert shim.code("ANONYMOUS", "quotahost-4") != EXEMPT
    assert shim.code("ANONYMOUS", "4") != EXEMPT
    assert shim.spared == ["__quotahost_snapshots", "__quotahost_usage", "__quotahost_looks"]


@pytest.mark.parametrize(
    ("given", "brokers"),
    [
        ({}, "b"),
        ({"kafka.bootstrap.servers": "h:1"}, "ANONYMOUS"),
        ({"kafka.bootstrap.servers": "h:1", "kafka.security.protocol": "SASL_SSL"}, "b"),
    ],
)
@pytest.mark.parametrize("tiering", [True, False])
def test_the_fence_spares_tiered_storages_metadata_where_it_is_in_use_and_no_topic_of_the_plugins_otherwise(
    given: dict[str, str], brokers: str, tiering: bool
) -> None:
    node = node_of(4, brokers)
    shim = FakeShim(given, node | ({"remote.log.storage.system.enable": "true"} if tiering else {}))
    shim.idle()
    run(shim)
    assert shim.spared == (["__remote_log_metadata"] if tiering else [])
