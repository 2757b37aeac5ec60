"""A Java client's configuration in librdkafka's names, for the clients of plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from quotahost.kafka import jaas

#: Reads the keystores that properties ``ssl.*`` name, into PEM texts by librdkafka's names, and ``principal``: the
#: name that Kafka makes of the certificate. ConnectionError if it can't.
Keystores: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]

IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
#: Properties that have the same name and meaning in both; librdkafka refuses the names that it doesn't know.
_SAME: Final = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "client.id",
    "request.timeout.ms",
    IDENTIFICATION,
    "ssl.cipher.suites",
)
_PEM: Final = ("ssl.ca.pem", "ssl.key.pem", "ssl.certificate.pem")


def translate(java: Mapping[str, str], keystores: Keystores) -> dict[str, str]:
    """Keystores of any type become PEM texts, and a JAAS configuration user and password. The result has secrets.

    Raises:
        ConnectionError: a keystore can't be read.
    """
    made = {name: java[name] for name in _SAME if name in java}
    protocol = java.get("security.protocol", "")
    if protocol.endswith("SSL"):
        made |= endpoint(made)
        found = keystores({name: value for name, value in java.items() if name.startswith("ssl.")})
        made |= {name: found[name] for name in _PEM if name in found}
    else:
        made = {name: value for name, value in made.items() if not name.startswith("ssl.")}
    return made | (login(java.get("sasl.jaas.config", "")) if protocol.startswith("SASL_") else {})


def login(text: str) -> dict[str, str]:
    """User and password of a ``sasl.jaas.config``, as far as it has them."""
    found = jaas.options(text)
    return {f"sasl.{name}": found[name] for name in ("username", "password") if name in found}


def endpoint(given: Mapping[str, str]) -> dict[str, str]:
    """For "no check of host names" Java has an empty text, librdkafka a word."""
    return {IDENTIFICATION: "none"} if given.get(IDENTIFICATION) == "" else {}
