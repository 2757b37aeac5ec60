"""The plugins' own Kafka client: its certificates, tokens and rights, refused logins, and a network that fails."""

import re
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.properties import write_properties
from harness.kafka.settings import QUICK_START
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.certificates import PASSWORD, Identity, identity, truststore
from harness.system.ports import free_port
from harness.system.proxy import Proxy
from harness.system.tokens import ALLOWED, AUDIENCE, TokenEndpoint
from harness.system.waiting import eventually
from quotahost.kafka import follower
from quotahost.testing.broker import FakeBroker
from tests.broker.support.commands import explain_client, quotahost, top
from tests.broker.support.node import STANDARD, callback_node, callback_properties, listener_properties
from tests.broker.support.numbers import begun, end_offset
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, gauge, state
from tests.broker.support.volumes import SNAPSHOTS
from tests.fakes.plugin_context import context

SETTINGS: Final = {
    "factor.source": "snapshots",
    "validity": "8s",
    "snapshots.period": "500ms",
    "static.storage.hard.min-free-bytes": "1",
}
#: The broker demands that each connection authenticates again after this many ms.
AGAIN: Final = {"connections.max.reauth.ms": "3000"}


def tls(node: KafkaNode, broker: Identity, trusted: Path, port: int) -> dict[str, str]:
    stores = {
        "ssl.keystore.location": str(broker.keystore), "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12", "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": PASSWORD, "ssl.truststore.type": "PKCS12", "ssl.client.auth": "required",
        "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",  # a name that only Java knows
    }  # fmt: skip
    own = {f"listener.name.tls.{name}": value for name, value in stores.items()}
    return listener_properties(node, "TLS", "SSL", port, port) | own


def own_login(node: KafkaNode, user: str) -> dict[str, str]:
    """Settings with which the plugins' client connects as this user."""
    return {f"kafka.{name}": text for name, text in node.client_config(user).items()}


def connected(node: KafkaNode, name: str = "publish-volumes") -> bool:
    return gauge(node, f"Connection,name={name}", "Connected") == 1


def of_sockets(node: KafkaNode, attribute: str, which: str) -> float:
    """The sum of an attribute over the MBeans of Kafka's listeners that ``which`` selects."""
    found = Jmx(node).query(f"kafka.server:type=socket-server-metrics,listener={which}")
    return sum(float(bean[attribute]) for bean in found.values())


def check_publishes_in_a_pause(node: KafkaNode, listener: str = "TLS") -> None:
    eventually(lambda: connected(node))
    eventually(lambda: state(node) == OPEN)
    alter_broker_config(node, {PREFIX + "static.storage.hard.min-free-bytes": "1000T"})
    eventually(lambda: state(node) == PAUSE)

    def flow() -> bool:
        """Whether snapshots follow each other without an error; a stall of the broker for 5 s also counts as one."""
        errors, end = gauge(node, "Publication", "Errors"), end_offset(node, SNAPSHOTS)
        eventually(lambda: end_offset(node, SNAPSHOTS) > end + 1)
        return gauge(node, "Publication", "Errors") == errors

    eventually(flow, what="snapshots flow while producers are stopped")
    # The listener demands a certificate or a token from each client.
    of_plugins = f"{listener},*,clientSoftwareName=confluent-kafka-python"
    eventually(lambda: connected(node) and of_sockets(node, "connections", of_plugins))
    assert PASSWORD not in node.log_text()
    assert "PRIVATE KEY" not in node.log_text()


@pytest.mark.proves("proposal-035.client", "proposal-035.own-updates")
def test_with_properties_of_its_own_it_connects_with_its_own_certificate(tmp_path: Path) -> None:
    broker, plugin, port = identity(tmp_path, "broker"), identity(tmp_path, "plugin"), free_port()
    own = {
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "kafka.security.protocol": "ssl",
        "kafka.ssl.ca.location": str(broker.certificate),
        "kafka.ssl.keystore.location": str(plugin.keystore),
        "kafka.ssl.keystore.password": PASSWORD,
        "static.excluded.principal.name.list": f"User:{plugin.name}",
    }
    node = callback_node(tmp_path / "node", SETTINGS | own)
    node.properties |= FENCE | tls(node, broker, truststore(tmp_path, [broker, plugin]), port)
    with node:
        check_publishes_in_a_pause(node)


@pytest.mark.proves("proposal-035.client", "proposal-035.own-updates")
@pytest.mark.parametrize("in_place", [False, True])
def test_by_default_it_connects_as_the_broker_also_with_renewed_certificates(tmp_path: Path, in_place: bool) -> None:
    old, new, both, used = (tmp_path / name for name in ("old", "new", "both", "used"))
    for directory in (old, new, both, used):
        directory.mkdir()
    broker, renewed = identity(old, "broker"), identity(new, "broker")
    keystore, trusted = used / "keystore.p12", used / "truststore.p12"
    shutil.copy(broker.keystore, keystore)
    shutil.copy(truststore(old, [broker]), trusted)
    node = callback_node(tmp_path, SETTINGS)
    port = free_port()

    def renew(kind: str, file: Path) -> None:
        """Sets the file's name; Kafka reads the file again even if the name is the same (KIP-226)."""
        file = Path(shutil.copy(file, used / f"{kind}.p12")) if in_place else file
        alter_broker_config(node, {f"listener.name.tls.ssl.{kind}.location": str(file)}, broker=1)

    def admits(client: Identity) -> bool:
        config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "ssl", "log_level": 0,
            "enable.ssl.certificate.verification": False,
            "ssl.keystore.location": str(client.keystore), "ssl.keystore.password": PASSWORD,
        }  # fmt: skip
        try:
            return bool(AdminClient(config).list_topics(timeout=5).topics)
        except KafkaException:
            return False

    with Proxy(port) as network:
        node.properties |= FENCE | tls(node, replace(broker, keystore=keystore), trusted, port)
        node.properties |= listener_properties(node, "TLS", "SSL", port, network.port)
        # Kafka's network threads adopt the files one after the other; a single thread adopts them in one step.
        node.properties |= {"inter.broker.listener.name": "TLS", "num.network.threads": "1"}
        with node:
            eventually(lambda: connected(node))
            renew("truststore", truststore(both, [broker, replace(renewed, name="renewed")]))
            eventually(lambda: admits(renewed))
            renew("keystore", renewed.keystore)
            certificate = ssl.PEM_cert_to_DER_cert(renewed.certificate.read_text())
            eventually(lambda: ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port))) == certificate)
            renew("truststore", truststore(new, [renewed]))
            eventually(lambda: not admits(broker))
            network.cut()
            eventually(lambda: not connected(node))
            network.heal()
            check_publishes_in_a_pause(node)
            alone = "can't list the registered brokers"
            eventually(lambda: node.log_text().rfind("the cluster answers again") >= node.log_text().rfind(alone))


def test_without_rights_readers_and_writers_try_again_seldom_as_the_authorizer_logs_each_try(tmp_path: Path) -> None:
    node = callback_node(tmp_path, users={"weak": "hush-hush"})
    weak = own_login(node, "weak") | {"startup.grace": "20s"}  # missing rights are logged only after this time
    fence = FENCE | {f"{PREFIX}fence.authorizer": STANDARD, "super.users": "User:ANONYMOUS"}
    node.properties |= callback_properties(SETTINGS | weak) | fence
    with node:
        tries = "Denied operation = DESCRIBE.*Group:LITERAL:quotahost-1"
        node.wait_for_log(tries)
        begin, start = time.monotonic(), node.log.end()
        eventually(lambda: len(re.findall(tries, node.log_text(start))) >= 4)
        assert time.monotonic() - begin > 8
        assert len(re.findall("Denied operation = DESCRIBE.*Topic:LITERAL", node.log_text(start))) < 30
        give = "kafka-acls.sh --add --allow-principal User:weak --operation"
        node.wait_for_log(f"not connected: User:weak may not Read topic {SNAPSHOTS}; {give} Read --topic {SNAPSHOTS}")
        node.wait_for_log(f"not connected: User:weak may not Write topic {SNAPSHOTS}; {give} Write --topic {SNAPSHOTS}")


# ---- tokens: brokers log in to each other by OAUTHBEARER, as for OpenID Connect, and so do the plugins ----

# The tokens name the brokers' principal, so no property has it: it is not exempt, and yet each PAUSE ends.
SECRETS: Final = {"broker": "hush-of-the-broker", "alice": "hush-of-alice"}
EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"
PORT: Final = free_port()
KAFKAS: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"


def login(endpoint: TokenEndpoint, client: str, secret: str) -> dict[str, str]:
    """The login properties of a Java client."""
    return {
        "sasl.jaas.config": f'{KAFKAS}LoginModule required clientId="{client}" clientSecret="{secret}";',
        "sasl.login.callback.handler.class": f"{KAFKAS}LoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
    }


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(tmp_path_factory.mktemp("tokens"), SECRETS) as made:
        yield made


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, endpoint: TokenEndpoint) -> Iterator[KafkaNode]:
    allowed = f"-D{ALLOWED}={endpoint.url},{endpoint.keys}"
    settings = SETTINGS | {"tasks": "publish-volumes,publish-usage"}
    made = callback_node(tmp_path_factory.mktemp("node"), settings, jvm_options=[*QUICK_START, allowed])
    own = (
        login(endpoint, "broker", SECRETS["broker"])
        | AGAIN
        | {
            "sasl.server.callback.handler.class": f"{KAFKAS}ValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": endpoint.keys,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
    )
    made.properties |= FENCE | listener_properties(made, "TOKENS", "SASL_PLAINTEXT", PORT, PORT)
    made.properties |= {f"listener.name.tokens.oauthbearer.{name}": value for name, value in own.items()} | {
        "inter.broker.listener.name": "TOKENS", "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    }  # fmt: skip
    with made:
        yield made


def test_plugins_publish_by_the_brokers_own_token_also_in_a_pause(node: KafkaNode) -> None:
    def renewed() -> float:
        """The number of connections that have authenticated again (KIP-368)."""
        return of_sockets(node, "successful-reauthentication-total", "TOKENS,networkProcessor=*")

    def renewed_without_error() -> bool:
        errors, before = gauge(node, "Publication", "Errors"), renewed()
        eventually(lambda: renewed() > before + 3)
        return gauge(node, "Publication", "Errors") == errors

    check_publishes_in_a_pause(node, "TOKENS")
    eventually(renewed_without_error, what="clients authenticate again without an error")
    alter_broker_config(node, {PREFIX + "static.storage.hard.min-free-bytes": None})
    eventually(lambda: state(node) == OPEN)
    log = node.log_text()
    assert "principal of brokers at listener TOKENS can't be found" in log
    assert not [secret for secret in SECRETS.values() if secret in log]


def test_doctor_says_beforehand_where_no_token_can_come_from(node: KafkaNode, tmp_path: Path) -> None:
    def told(properties: dict[str, str]) -> str:
        write_properties(tmp_path / "server.properties", properties)
        return " ".join(quotahost("doctor", tmp_path / "server.properties").output.split())

    given = node.server_properties()
    nobody = "the principal of brokers at listener TOKENS is in no property: brokers may be throttled"
    without = {name: value for name, value in given.items() if "token.endpoint.url" not in name}
    takes = "can't log in as this broker does: sasl.mechanism=OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"
    assert (nobody in told(given), takes in told(given)) == (True, False)
    assert nobody not in told(given | {EXCLUDED: "User:broker"})
    assert takes in told(without)
    own = {"kafka.bootstrap.servers": "b:1", "kafka.security.protocol": "SSL"}
    assert takes not in told(without | {PREFIX + name: value for name, value in own.items()})


@pytest.mark.usefixtures("node")
def test_commands_take_the_file_of_javas_client(endpoint: TokenEndpoint, tmp_path: Path) -> None:
    file, address = tmp_path / "alice.properties", f"127.0.0.1:{PORT}"
    bearer = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    write_properties(file, bearer | login(endpoint, "alice", SECRETS["alice"]))
    assert eventually(lambda: top("--bootstrap", address, "--command-config", file)["brokers"])
    done = quotahost("quotas", "export", "--bootstrap", address, "--client-config", file)
    assert "OAUTHBEARER can't be used here" in done.output
    write_properties(file, bearer | login(endpoint, "alice", "a-wrong-one"))
    done = quotahost("doctor", "--against", address, "--client-config", file)
    words = " ".join(done.output.split())
    assert "no token comes from sasl.oauthbearer.token.endpoint.url: it doesn't answer, or refuses" in words
    assert "a-wrong-one" not in words


# ---- refused logins; tests/unit/kafka/test_clients.py tests refused certificates ----


def give(node: KafkaNode, password: str, user: str = "quotahost") -> None:
    """Sets the user's password."""
    admin = AdminClient(node.client_config())
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, scram, password.encode())
    admin.alter_user_scram_credentials([change])[user].result(10)


def refused(node: KafkaNode) -> float:
    """The number of logins that the broker has refused since its start."""
    return of_sockets(node, "failed-authentication-total", "*,networkProcessor=*")


def check_costs_little_and_is_over_soon(node: KafkaNode) -> None:
    def three_take_long() -> bool:
        before, began = refused(node), time.monotonic()
        eventually(lambda: refused(node) >= before + 3)
        return time.monotonic() - began > 20

    eventually(three_take_long, what="a dozen clients together log in about six times a minute")
    give(node, "now")
    right = time.monotonic()
    for name in ("publish-volumes", "publish-usage", "publish-usage-watch", "cluster-quota-quotas"):
        eventually(lambda name=name: connected(node, name), what=f"{name} is connected")
    assert time.monotonic() - right < 20


@pytest.mark.long
def test_a_wrong_password_costs_a_few_logins_a_minute_and_is_over_soon_after(tmp_path: Path) -> None:
    node = callback_node(tmp_path, users={"admin": "a", "quotahost": "before"}, mechanism="SCRAM-SHA-512")
    settings = {
        "factor.source": "cluster-volumes",
        "supplier": "cluster-quota",
        "tasks": "publish-volumes,publish-usage",
        "startup.grace": "1s",
        **own_login(node, "quotahost"),
        "kafka.sasl.password": "now",
    }
    node.properties |= callback_properties(settings) | AGAIN
    with node:
        why = "__quotahost_cluster_volumes is not read yet (not connected: the broker refuses the user, the password"
        eventually(lambda: why in explain_client(node, ANYONE, "app")[1])
        check_costs_little_and_is_over_soon(node)
        # The password changes while all clients are connected with it.
        give(node, "another")
        check_costs_little_and_is_over_soon(node)


@pytest.mark.long
def test_brokers_whose_own_login_was_refused_for_a_while_publish_again_soon_after(tmp_path: Path) -> None:
    """A refused Admin client of Kafka's sends no requests until its metadata expires (AdminMetadataManager)."""
    settings = {"factor.source": "snapshots", "tasks": "publish-volumes", "startup.grace": "1s"}
    login = {"users": {"broker": "own"}, "mechanism": "SCRAM-SHA-512", "inter_broker_user": "broker"}
    with callback_node(tmp_path, settings, properties=AGAIN, **login) as node:
        eventually(lambda: connected(node))
        give(node, "another", "broker")
        asked, later = "AdminClient clientId=quotahost-1] Fatal error", "quotahost-1] Metadata update failed"
        eventually(lambda: later in node.log_text().partition(asked)[2])
        eventually(lambda: not connected(node))
        give(node, "own", "broker")
        eventually(lambda: connected(node), timeout=60)


# ---- a network that fails ----


@pytest.mark.proves("proposal-035.fallback", "proposal-035.metric-connection", "proposal-035.metric-errors")
@pytest.mark.proves("faults.network")
@pytest.mark.parametrize("fail", [Proxy.cut, Proxy.swallow])
def test_a_network_lost_beyond_validity_leads_to_the_fallback(tmp_path: Path, fail: Callable[[Proxy], None]) -> None:
    cluster = Cluster(tmp_path, brokers=2, classpath=[JAR], probe=True)
    one, two = cluster.brokers
    ports = free_port(), free_port()
    with Proxy(ports[0]) as first, Proxy(ports[1]) as second:
        # The plugins reach both brokers through proxies only.
        servers = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
        settings = SETTINGS | {"kafka.bootstrap.servers": servers, "startup.grace": "10s"}
        for node, port, proxy in zip((one, two), ports, (first, second), strict=True):
            own = listener_properties(node, "PROXIED", "PLAINTEXT", port, proxy.port)
            node.properties = callback_properties(settings) | FENCE | own
        with cluster:
            # For startup.grace a broker waits for others, so each must know the other, and the silence must be longer.
            eventually(lambda: all(Jmx(node).query("quotahost:type=Snapshot,*") for node in (one, two)))
            eventually(lambda: state(one) == state(two) == OPEN)
            for proxy in (first, second):
                fail(proxy)
            eventually(lambda: state(one) == state(two) == PAUSE, what="each broker is unknown to the other")
            eventually(lambda: gauge(one, "Brokers", "Stale") == 1)
            eventually(lambda: not connected(one))
            eventually(lambda: gauge(one, "Publication", "Errors") > 0)
            for proxy in (first, second):
                proxy.heal()
            eventually(lambda: state(one) == state(two) == OPEN)
            eventually(lambda: connected(one))


def test_the_marker_of_a_transaction_at_a_topics_end_makes_no_reader_read_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker is no record for a reader, but has an offset and a later timestamp than all records."""
    monkeypatch.setattr(follower, "_LOOK", 0.1)
    readings, looks = list[None](), list[None]()
    was_made_anew = follower.Follower._was_made_anew
    monkeypatch.setattr(follower.Follower, "_was_made_anew", lambda *given: looks.append(None) or was_made_anew(*given))
    with KafkaNode(tmp_path) as node:
        create_topic(node, "t")
        begun(node.client_config(), "t").commit_transaction(60)
        made = context(FakeBroker(client=node.client_config()))
        follower.Follower(made, "t", lambda *_: None, begins=lambda: readings.append(None))
        eventually(lambda: len(looks) > 3)
        made.closing.close()
    assert len(readings) == 1
