"""Tests a broker's listeners, JAAS configurations, and a Java client's configuration in librdkafka's names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from quotahost.kafka import listeners
from quotahost.kafka.listeners import Listeners, options, translate

SECRET = "hunter2"


def client(**properties: str) -> dict[str, str]:
    return Listeners({name.replace("_", "."): value for name, value in properties.items()}).client()


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        *(({"process_roles": "broker,controller", "listeners": f"PLAINTEXT://{host}:9092,C://:1"}, "localhost:9092")
          for host in ("", "0.0.0.0", "[::]", "::")),  # all addresses of the machine
        ({"listeners": "A://:1,B://:2", "advertised_listeners": "A://a:1, b://[::1]:2",
          "inter_broker_listener_name": "B", "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT"}, "[::1]:2"),
        ({"listeners": "PLAINTEXT://fd00::2:9092"}, "[fd00::2]:9092"),
        ({"process_roles": "controller", "listeners": "C://:9093", "controller_listener_names": "C"}, ""),
        ({"listeners": "A://:1"}, ""),
    ],
)  # fmt: skip
def test_a_broker_is_reached_at_its_advertised_inter_broker_listener(properties: dict[str, str], address: str) -> None:
    expected = {"bootstrap.servers": address, "security.protocol": "PLAINTEXT"} if address else {}
    assert client(**properties) == expected


def test_it_has_the_credentials_of_the_mechanism_and_the_stores_of_the_listener() -> None:
    properties = {
        "listeners": "INTERNAL://h:1", "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "internal:SASL_SSL", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.jaas.config": "general", "listener.name.internal.scram-sha-512.sasl.jaas.config": SECRET,
        "listener.name.other.scram-sha-512.sasl.jaas.config": "other", "ssl.keystore.location": "general",
        "ssl.keystore.type": "JKS", "listener.name.internal.ssl.keystore.location": "own",
        "ssl.endpoint.identification.algorithm": "", "log.dirs": "/data",
    }  # fmt: skip
    assert Listeners(properties).client() == {
        "bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512", "sasl.jaas.config": SECRET,
        "ssl.keystore.location": "own", "ssl.keystore.type": "JKS", "ssl.endpoint.identification.algorithm": "",
    }  # fmt: skip
    assert SECRET not in repr(Listeners(properties))


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "


@pytest.mark.parametrize(
    ("text", "username", "password"),
    [
        ('username="al" password="p";', "al", "p"),
        ("password=p username=al;", "al", "p"),
        ('"username"="al" "password"="p";', "al", "p"),
        (r'username="a\"l" password="it\'s \\";', 'a"l', "it's \\"),
        ('user_a="b" "password"="\\"username\\"=c" "username"="al";', "al", '"username"=c'),
        (r'password="username=\"mallory\"" username="al";', "al", 'username="mallory"'),
        ('password="x; username=mallory" username="al";', "al", "x; username=mallory"),
        ('username="" password="p";', "", "p"),
        ('username="first" username="al" password="p";', "al", "p"),
        ('username = "al"\n password\t= p;', "al", "p"),
        ("username=al password=p==;", "al", "p=="),
        ("username='al' password='it is \"p\"';", "al", 'it is "p"'),
    ],
)
def test_user_and_password_are_found(text: str, username: str, password: str) -> None:
    found = options(PLAIN + text)
    assert (found["username"], found["password"]) == (username, password)


SERVERS = {"bootstrap.servers": "a:1,b:2"}


def keystores(ssl: Mapping[str, str]) -> dict[str, str]:
    assert all(name.startswith("ssl.") for name in ssl)
    if "ssl.truststore.location" in ssl:
        raise ConnectionError("NoSuchFileException: absent")
    return {"ssl.ca.pem": "CA", "ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN", "principal": "CN=x"}


def test_keystores_become_pem_and_what_librdkafka_does_not_know_goes() -> None:
    java = {"security.protocol": "SSL", "ssl.keystore.location": "k", "ssl.client.auth": "required", "retries": "3"}
    java["ssl.cipher.suites"] = "TLS_AES_256_GCM_SHA384"  # OpenSSL has other names; the listener decides anyway
    pem = {"ssl.ca.pem": "CA", "ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN"}
    for protocol in ("SSL", "ssl"):  # Kafka's clients ignore the case
        java["security.protocol"] = protocol
        assert translate(SERVERS | java, keystores) == {**SERVERS, "security.protocol": protocol, **pem}
    with pytest.raises(ConnectionError, match="absent"):
        translate({"security.protocol": "SASL_SSL", "ssl.truststore.location": "absent"}, keystores)
    hosts = "ssl.endpoint.identification.algorithm"
    for given, here in (("", "none"), ("https", "https")):  # librdkafka's word for no check of host names is none
        assert translate({"security.protocol": "SSL", hosts: given}, keystores)[hosts] == here


@pytest.mark.parametrize(
    "login",
    [
        {"sasl.jaas.config": 'o.OAuthBearerLoginModule required clientId="c" clientSecret="hunter2" scope="s";'},
        {
            "sasl.oauthbearer.client.credentials.client.id": "c",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.scope": "s",
            "sasl.jaas.config": 'o.OAuthBearerLoginModule required clientId="older";',
        },
        # librdkafka's own names stay.
        {"sasl.oauthbearer.client.id": "c", "sasl.oauthbearer.client.secret": SECRET, "sasl.oauthbearer.scope": "s"},
    ],
)
def test_a_token_comes_from_the_endpoint_of_kafkas_own_login(
    login: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "_AUTHORITIES", authorities := tmp_path / "ca.crt")
    bearer = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    endpoint = {"sasl.oauthbearer.token.endpoint.url": "https://h/t"}
    assert login | translate(bearer | endpoint | login, lambda ssl: {}) == bearer | endpoint | {
        **login, "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": SECRET, "sasl.oauthbearer.scope": "s",
    }  # fmt: skip
    authorities.touch()
    made = translate(bearer | endpoint | login, lambda ssl: {})
    assert made["https.ca.location"] == str(authorities)
    own = {"https.ca.location": "/own"}
    assert translate(bearer | endpoint | login | own, lambda ssl: {}).keys() == made.keys() - own.keys()
    # If there is no endpoint, librdkafka can't get a token.
    assert translate(bearer | login, lambda ssl: {}).keys() <= {*bearer, "sasl.oauthbearer.scope"}
