"""Reads how a Kafka client connects: a properties file in librdkafka's names, or in those of Kafka's Java client.

So ``quotahost doctor --client-config`` takes the very file that ``quotahost pipeline --kafka-config`` or kafka-acls.sh
takes. Messages contain names only: values may be secrets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import javaproperties

from quotahost.errors import QuotahostError
from quotahost.kafka.librdkafka import endpoint, login

_JAAS: Final = "sasl.jaas.config"
#: Java's names for files of PEM texts, and librdkafka's.
_PEM: Final = {
    "ssl.truststore.location": ("ssl.ca.location",),
    # One file holds both in Java.
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}
_TYPES: Final = {"ssl.truststore.location": "ssl.truststore.type", "ssl.keystore.location": "ssl.keystore.type"}


def read_client_config(path: Path) -> dict[str, str]:
    """Read a properties file in librdkafka's names.

    Raises:
        QuotahostError: it can't be read, or librdkafka can't do what it says. The message has nothing of its values.
    """
    try:
        with path.open("rb") as stream:
            return in_librdkafkas_names(dict(javaproperties.load(stream)))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no properties file"
        raise QuotahostError(
            f"{path} can't be read: {reason}; name a file in librdkafka's names or in those of Kafka's Java client"
        ) from None


def in_librdkafkas_names(given: dict[str, str]) -> dict[str, str]:
    """The same for librdkafka; what is in its names already stays.

    Raises:
        QuotahostError: a keystore has a format that librdkafka doesn't read.
    """
    made = {name: value for name, value in given.items() if not name.startswith(("ssl.truststore", "ssl.keystore"))}
    made |= login(made.pop(_JAAS, "")) | endpoint(made)
    for name in _PEM:
        if name in given:
            _need_pem(given, name)
            made |= dict.fromkeys(_PEM[name], given[name])
    return made


def _need_pem(given: dict[str, str], name: str) -> None:
    if given.get(_TYPES[name], "JKS").upper() != "PEM":
        raise QuotahostError(
            f"{name}: doctor reads PEM files only; export the certificates with keytool and openssl, and set "
            f"{_TYPES[name]}=PEM, or librdkafka's ssl.ca.location, ssl.certificate.location and ssl.key.location"
        )
