"""``read_broker_file`` and ``read_client_config`` read properties files as Kafka does, as ``java.util.Properties``.

The encoding is ISO 8859-1, and blanks around a value don't count. A client's file has the names of librdkafka or of
Kafka's Java client. Messages about a client's file contain names only, because values may be secrets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.base.errors import Unusable
from quotahost.kafka.listeners import REFERENCE, translate
from quotahost.settings.declaration import PREFIX

CLASS: Final = "org.quotahost.PythonQuotaCallback"
#: The second class also shows quotahost's numbers among Kafka's own metrics (4.1 and newer).
CLASSES: Final = (CLASS, "org.quotahost.MonitoredPythonQuotaCallback")
CALLBACK: Final = f"{PREFIX}class"
AUTHORIZER: Final = "authorizer.class.name"
INNER: Final = f"{PREFIX}fence.authorizer"  # the authorizer that the fence asks
FENCES: Final = ("org.quotahost.QuotaFence", "org.quotahost.MonitoredQuotaFence")
#: Java's names with librdkafka's names, for stores that are PEM files, and below for PEM texts (KIP-651). In Java one
#: file holds key and certificate. librdkafka reads PKCS12 for keystores only, and Python's own TLS reads no PKCS12.
_STORES: Final = {
    "ssl.truststore": ("ssl.ca.location",),
    "ssl.keystore": ("ssl.certificate.location", "ssl.key.location"),
}
_TEXTS: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem", "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}  # fmt: skip
#: The beginnings of names that librdkafka refuses: the first one is translated, librdkafka decides the others itself.
_OF_JAVA_ALONE: Final = (
    "sasl.jaas.config", "ssl.enabled.protocols", "ssl.protocol", "ssl.provider", "ssl.keymanager.", "ssl.trustmanager.",
    "ssl.secure.random.", "security.providers", "default.api.timeout.ms", "send.buffer.bytes", "receive.buffer.bytes",
    "metric", "auto.include.jmx.reporter", "sasl.login.", "sasl.oauthbearer.client.credentials.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrokerFile:
    """A broker's properties file."""

    path: Path
    properties: dict[str, str]  # by full names, without unresolved names of quotahost
    unresolved: tuple[str, ...]  # names whose values a config provider resolves (KIP-297)

    def get(self, name: str, default: str = "") -> str:
        return self.properties.get(name, default)

    @property
    def has_fence(self) -> bool:
        return self.get(AUTHORIZER) in FENCES

    def classes(self) -> list[str]:
        """``PROPERTY=CLASS`` for each class that Kafka or the fence loads by its name at the start."""
        names = (CALLBACK, AUTHORIZER, *[INNER] * self.has_fence)
        given = {name: self.get(name) for name in names if name not in self.unresolved}
        return [f"{name}={text}" for name, text in given.items() if text.lower() not in ("", "none")]


def read_broker_file(path: Path) -> BrokerFile:
    """Read a broker's file. Raises Unusable if the file can't be read, or has a malformed unicode escape."""
    everything = _read(path, "name the broker's server.properties")
    # If there are no providers, Kafka uses ${...} as it is written, so it is a value to check.
    has_providers = bool(everything.get("config.providers"))
    unresolved = {name for name, text in everything.items() if has_providers and REFERENCE.search(text)}
    resolved = {n: text for n, text in everything.items() if n not in unresolved or not n.startswith(PREFIX)}
    return BrokerFile(path, resolved, tuple(sorted(unresolved)))


def read_client_config(path: Path | None) -> dict[str, str]:
    """Return a client's file in librdkafka's names; {} without a file. An Unusable shows no value of the file."""
    remedy = "name a file with librdkafka's names or those of Kafka's Java client"
    return {} if path is None else in_librdkafkas_names(_read(path, remedy))


def in_librdkafkas_names(given: dict[str, str]) -> dict[str, str]:
    """Translate properties to librdkafka's names; these stay. Raises Unusable if a keystore can't be read."""
    config = {n: value for n, value in given.items() if not n.startswith((*_STORES, *_OF_JAVA_ALONE))}
    return config | translate(given, _pem)


def _pem(ssl: Mapping[str, str]) -> dict[str, str]:
    """Return the stores in librdkafka's names. Raises Unusable if a store isn't PEM or can't be read."""
    config = {_TEXTS[name]: ssl[name] for name in _TEXTS if name in ssl}
    for store, names in _STORES.items():
        if f"{store}.location" not in ssl:
            continue
        if ssl.get(f"{store}.type", "JKS").upper() != "PEM":
            raise Unusable(
                f"{store}.location: quotahost reads PEM files only. Convert a truststore by `keytool -list -rfc "
                "-keystore FILE > FILE.pem`, a PKCS12 keystore by `openssl pkcs12 -in FILE -out FILE.pem`, and a JKS "
                f"keystore first to PKCS12 by `keytool -importkeystore`; then set {store}.type=PEM"
            )
        try:
            Path(location := ssl[f"{store}.location"]).open("rb").close()
        except OSError as error:  # librdkafka doesn't name the file
            raise Unusable(f"{store}.location={location} can't be read: {error.strerror}") from None
        config |= dict.fromkeys(names, location)
    return config


def _read(path: Path, remedy: str) -> dict[str, str]:
    try:
        # The stream is binary: javaproperties reads bytes as ISO 8859-1, while a text stream would follow the locale.
        with path.open("rb") as stream:
            return {name: text.strip() for name, text in javaproperties.load(stream).items()}
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError:  # the error repeats text after a malformed escape, which may be a secret
        problem = "it is not a properties file"
    raise Unusable(f"{path} can't be read: {problem}; {remedy}")
