"""Reads properties files as Kafka does: a broker's, and a client's in names of librdkafka or Kafka's Java client.

That is ``java.util.Properties``, ISO 8859-1. Messages about a client's file contain names only, since values may be
secrets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.base.errors import QuotahostError
from quotahost.kafka.listeners import translate
from quotahost.settings.declaration import PREFIX

CLASS: Final = "org.quotahost.PythonQuotaCallback"
#: The second also shows quotahost's numbers among Kafka's own metrics (4.1 and newer).
CLASSES: Final = (CLASS, "org.quotahost.MonitoredPythonQuotaCallback")
AUTHORIZER: Final = "authorizer.class.name"
FENCES: Final = ("org.quotahost.QuotaFence", "org.quotahost.MonitoredQuotaFence")
_REFERENCE: Final = re.compile(r"\$\{[^}:{]+:")  # how ${provider:path:key} begins (KIP-297)
#: Java's names for stores that are files of PEM texts, with librdkafka's; and for such texts themselves (KIP-651).
#: One file holds key and certificate in Java. Of PKCS12 librdkafka reads keystores alone, and Python's own TLS none.
_STORES: Final = {
    "ssl.truststore": ("ssl.ca.location",),
    "ssl.keystore": ("ssl.certificate.location", "ssl.key.location"),
}
_TEXTS: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem", "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}  # fmt: skip
#: As names begin that librdkafka refuses: the first is translated, the others are what it decides itself.
_OF_JAVA_ALONE: Final = (
    "sasl.jaas.config", "ssl.enabled.protocols", "ssl.protocol", "ssl.provider", "ssl.keymanager.", "ssl.trustmanager.",
    "ssl.secure.random.", "security.providers", "default.api.timeout.ms", "send.buffer.bytes", "receive.buffer.bytes",
    "metric", "auto.include.jmx.reporter", "sasl.login.", "sasl.oauthbearer.client.credentials.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrokerFile:
    """A broker's file."""

    path: Path
    properties: dict[str, str]  # by full names
    unresolved: tuple[str, ...]  # names whose values a config provider resolves (KIP-297); of ours it has no others

    def get(self, name: str, default: str = "") -> str:
        return self.properties.get(name, default).strip()

    @property
    def has_fence(self) -> bool:
        return self.get(AUTHORIZER) in FENCES


def read_broker_file(path: Path) -> BrokerFile:
    """Read a broker's file. Raises QuotahostError if it can't be read, or one of its unicode escapes is malformed."""
    everything = _read(path, "name the broker's server.properties")
    # Without providers Kafka takes ${...} as it is written, so it is a value to check.
    has_providers = bool(everything.get("config.providers", "").strip())
    unresolved = {name for name, text in everything.items() if has_providers and _REFERENCE.search(text)}
    known = {n: text for n, text in everything.items() if n not in unresolved or not n.startswith(PREFIX)}
    return BrokerFile(path, known, tuple(sorted(unresolved)))


def read_client_config(path: Path | None) -> dict[str, str]:
    """A client's file in librdkafka's names; empty without one. A QuotahostError of it has nothing of its values."""
    remedy = "name a file in librdkafka's names or in those of Kafka's Java client"
    return {} if path is None else in_librdkafkas_names(_read(path, remedy))


def in_librdkafkas_names(given: dict[str, str]) -> dict[str, str]:
    """The same for librdkafka; its own names stay. Raises QuotahostError if a keystore can't be read."""
    given = {name: value.strip() for name, value in given.items()}  # as Kafka
    config = {n: value for n, value in given.items() if not n.startswith((*_STORES, *_OF_JAVA_ALONE))}
    return config | translate(given, _pem)


def _pem(ssl: Mapping[str, str]) -> dict[str, str]:
    """The stores in librdkafka's names. Raises QuotahostError if one is of another type than PEM."""
    config = {_TEXTS[name]: ssl[name] for name in _TEXTS if name in ssl}
    for store, names in _STORES.items():
        if f"{store}.location" not in ssl:
            continue
        if ssl.get(f"{store}.type", "JKS").upper() != "PEM":
            raise QuotahostError(
                f"{store}.location: quotahost reads PEM files only. Make one of a truststore by `keytool -list -rfc "
                "-keystore FILE > FILE.pem`, of a PKCS12 keystore by `openssl pkcs12 -in FILE -out FILE.pem`, of a JKS "
                f"one first a PKCS12 one by `keytool -importkeystore`, and set {store}.type=PEM"
            )
        try:
            Path(location := ssl[f"{store}.location"]).open("rb").close()
        except OSError as error:  # librdkafka doesn't tell which file that was
            raise QuotahostError(f"{store}.location={location} can't be read: {error.strerror}") from None
        config |= dict.fromkeys(names, location)
    return config


def _read(path: Path, remedy: str) -> dict[str, str]:
    try:
        # As bytes: of these javaproperties reads ISO 8859-1, where a text stream would follow the locale.
        with path.open("rb") as stream:
            return dict(javaproperties.load(stream))
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError:  # its text repeats what stands behind a malformed escape, which may be a secret
        problem = "it is no properties file"
    raise QuotahostError(f"{path} can't be read: {problem}; {remedy}")
