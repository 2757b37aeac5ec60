"""A Java client's configuration, and what librdkafka gets of it."""

from collections.abc import Mapping

import pytest

from quotahost.kafka.listeners import translate

SERVERS = {"bootstrap.servers": "a:1,b:2"}


def keystores(ssl: Mapping[str, str]) -> dict[str, str]:
    assert all(name.startswith("ssl.") for name in ssl)
    if "ssl.truststore.location" in ssl:
        raise ConnectionError("NoSuchFileException: absent")
    return {"ssl.ca.pem": "CA", "ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN", "principal": "CN=x"}


def test_an_address_alone_stays_as_it_is() -> None:
    assert translate(SERVERS, keystores) == SERVERS


def test_keystores_become_pem_and_what_librdkafka_does_not_know_goes() -> None:
    java = {"security.protocol": "SSL", "ssl.keystore.location": "k", "ssl.client.auth": "required", "retries": "3"}
    pem = {"ssl.ca.pem": "CA", "ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN"}
    assert translate(SERVERS | java, keystores) == {**SERVERS, "security.protocol": "SSL", **pem}


@pytest.mark.parametrize(("java", "here"), [("", "none"), ("https", "https")])
def test_no_check_of_host_names_is_a_word(java: str, here: str) -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert translate({"security.protocol": "SSL", name: java}, keystores)[name] == here
    assert name not in translate({"security.protocol": "PLAINTEXT", name: java}, keystores)


def test_jaas_becomes_user_and_password_where_sasl_is_spoken() -> None:
    java = {**SERVERS, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    jaas = {"sasl.jaas.config": 'a.b.ScramLoginModule required "username"="me" password="it\'s";'}
    assert translate(java | jaas, keystores) == {**java, "sasl.username": "me", "sasl.password": "it's"}
    assert translate(SERVERS | jaas, keystores) == SERVERS


def test_a_keystore_that_cannot_be_read_is_the_callers_error() -> None:
    with pytest.raises(ConnectionError, match="absent"):
        translate({"security.protocol": "SASL_SSL", "ssl.truststore.location": "absent"}, keystores)
