"""Brokers that log in to each other by OAUTHBEARER, as Kafka documents it for OpenID Connect: so do the plugins.

The tokens name the brokers' principal, which so stands in no property: it is not exempt, and yet each PAUSE ends.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config
from harness.kafka.node import KafkaNode
from harness.kafka.properties import write_properties
from harness.kafka.settings import QUICK_START
from harness.plugin import FENCE, PREFIX
from harness.system.ports import free_port
from harness.system.tokens import ALLOWED, AUDIENCE, TokenEndpoint
from harness.system.waiting import eventually
from quotahost.cli.console import Level
from quotahost.cli.doctor.settings import check_weaknesses
from quotahost.cli.property_files import read_broker_file
from quotahost.settings.broker import read_properties
from tests.broker.support.commands import quotahost, top
from tests.broker.support.node import callback_node, listener_properties
from tests.broker.support.numbers import end_offset
from tests.broker.support.seen import OPEN, PAUSE, gauge, state
from tests.broker.support.volumes import SNAPSHOTS

SETTINGS: Final = {
    "factor.source": "snapshots",
    "tasks": "publish-volumes,publish-usage",
    "fence.authorizer": "none",
    "snapshots.period": "500ms",
    "static.storage.hard.min-free-bytes": "1",
}
SECRETS: Final = {"broker": "hush-of-the-broker", "alice": "hush-of-alice"}
EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"
KAFKAS: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"


def login(endpoint: TokenEndpoint, client: str, secret: str) -> dict[str, str]:
    """That of a Java client."""
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
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, endpoint: TokenEndpoint, port: int) -> Iterator[KafkaNode]:
    allowed = f"-D{ALLOWED}={endpoint.url},{endpoint.keys}"
    made = callback_node(tmp_path_factory.mktemp("node"), SETTINGS, jvm_options=[*QUICK_START, allowed])
    own = login(endpoint, "broker", SECRETS["broker"]) | {
        "sasl.server.callback.handler.class": f"{KAFKAS}ValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": endpoint.keys,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connections.max.reauth.ms": "3000",
    }
    made.properties |= FENCE | listener_properties(made, "TOKENS", "SASL_PLAINTEXT", port, port)
    made.properties |= {f"listener.name.tokens.oauthbearer.{name}": value for name, value in own.items()} | {
        "inter.broker.listener.name": "TOKENS", "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    }  # fmt: skip
    with made:
        yield made


def renewed(node: KafkaNode) -> float:
    """How many logins were renewed on their connection (KIP-368)."""
    found = Jmx(node).query("kafka.server:type=socket-server-metrics,listener=TOKENS,networkProcessor=*")
    return sum(float(bean["successful-reauthentication-total"]) for bean in found.values())


def test_plugins_publish_by_the_brokers_own_login_also_in_a_pause(node: KafkaNode) -> None:
    eventually(lambda: state(node) == OPEN)
    alter_broker_config(node, {PREFIX + "static.storage.hard.min-free-bytes": "1000T"})
    eventually(lambda: state(node) == PAUSE)
    errors, end, before = gauge(node, "Publication", "Errors"), end_offset(node, SNAPSHOTS), renewed(node)
    # The end is read through the fence's own broker: what is turned back is no record.
    eventually(lambda: end_offset(node, SNAPSHOTS) > end + 10 and renewed(node) > before + 3)
    assert gauge(node, "Publication", "Errors") == errors
    alter_broker_config(node, {PREFIX + "static.storage.hard.min-free-bytes": None})
    eventually(lambda: state(node) == OPEN)
    log = node.log_text()
    assert "principal of brokers at listener TOKENS can't be found" in log
    assert not [secret for secret in SECRETS.values() if secret in log]


def test_doctor_says_beforehand_where_no_token_can_come_from(node: KafkaNode, tmp_path: Path) -> None:
    def told(properties: dict[str, str]) -> dict[Level, str]:
        write_properties(tmp_path / "server.properties", properties)
        file = read_broker_file(tmp_path / "server.properties")
        found = list(check_weaknesses(read_properties(file.properties)[0], file))
        return {level: "; ".join(each.text for each in found if each.level is level) for level in Level}

    given = node.server_properties()
    nobody = "the principal of brokers at listener TOKENS stands in no property: they may be throttled"
    assert nobody in told(given)[Level.WEAK]
    assert nobody not in told(given | {EXCLUDED: "User:broker"})[Level.WEAK]
    assert told(given)[Level.WRONG] == ""
    without = {name: value for name, value in given.items() if "token.endpoint.url" not in name}
    takes = "can't log in as this broker does: sasl.mechanism=OAUTHBEARER takes sasl.oauthbearer.token.endpoint.url"
    assert takes in told(without)[Level.WRONG]
    own = {"kafka.bootstrap.servers": "b:1", "kafka.security.protocol": "SSL"}
    assert told(without | {PREFIX + name: value for name, value in own.items()})[Level.WRONG] == ""


def test_commands_take_the_file_of_javas_client(
    node: KafkaNode, endpoint: TokenEndpoint, port: int, tmp_path: Path
) -> None:
    file, address = tmp_path / "alice.properties", f"127.0.0.1:{port}"
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
