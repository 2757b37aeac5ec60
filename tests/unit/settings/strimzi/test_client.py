"""``static.kafka.admin.*`` is the plugins' own Kafka client, and its user is exempt."""

import pytest

from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.messages import Reason
from quotahost.model import Client
from tests.fakes.shim import FakeShim
from tests.unit.settings.strimzi.files import ADMIN, BOOTSTRAP, notes, read


def client_config(properties: dict[str, str]) -> dict[str, str]:
    return HostBroker(FakeShim(), read(properties)).client_config()


def test_their_client_is_translated_and_is_the_plugins_client() -> None:
    config = client_config({**BOOTSTRAP, f"{ADMIN}security.protocol": "SSL", f"{ADMIN}client.id": "theirs"})
    assert config == {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SSL",
        "ssl.ca.pem": "CA of 0",
        "client.id": "quotahost-1",
    }


def test_without_their_client_s_address_it_is_this_broker_s() -> None:
    assert client_config({f"{ADMIN}security.protocol": "SSL"})["bootstrap.servers"] == "127.0.0.1:1"


def test_our_own_client_wins_over_theirs_as_a_whole_or_setting_by_setting() -> None:
    theirs = {**BOOTSTRAP, f"{ADMIN}security.protocol": "SSL"}
    ours = client_config({**theirs, "kafka.bootstrap.servers": "other:1"})
    assert ours == {"bootstrap.servers": "other:1", "client.id": "quotahost-1"}
    assert any("is not used" in note for note in notes({**theirs, "kafka.bootstrap.servers": "other:1"}))
    assert client_config({**theirs, "kafka.security.protocol": "PLAINTEXT"})["security.protocol"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("jaas", "user"),
    [
        ('a.B required username="me" password="p";', "me"),
        ("a.B required password=p username=me;", "me"),
        ('a.B required "password"="p" "username"="me";', "me"),
        (r'a.B required username="m\"e" password="p";', 'm"e'),
    ],
)
def test_the_user_of_their_client_is_exempt_where_it_is_the_plugins_client(jaas: str, user: str) -> None:
    file = {**BOOTSTRAP, f"{ADMIN}sasl.jaas.config": jaas}
    assert Exemptions(read(file), {"node.id": "1"}).reason(Client(user, "x")) is Reason.PLUGIN
    unused = read({**file, "kafka.bootstrap.servers": "other:1"})
    assert Exemptions(unused, {"node.id": "1"}).reason(Client(user, "x")) is None
