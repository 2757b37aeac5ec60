"""Reads a broker's listeners (protocols, authentication, logins), and translates Java's settings to librdkafka's.

1. :class:`Listeners` reads protocols and logins of the broker's listeners, by Kafka's rules for prefixes and maps. Its
   ``client`` is the Java configuration by which this broker connects to itself, so plugins need no credentials.
2. :func:`options` reads each JAAS configuration (``sasl.jaas.config``). Kafka reads it with Java's
   ``StreamTokenizer`` (``JaasConfig``): names and values are words, or texts in double or single quotes with backslash
   escapes. Here a backslash stands only for the next character, and a comment is read as options.
3. :func:`translate` turns a Java client's configuration, the broker's or the operator's, into librdkafka's.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

_SASL: Final = "SASL_"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


class Listeners:
    """A broker's listeners, from its properties. The object never prints a property, since some are secrets.

    Kafka ignores the case of a listener's name (ListenerName), but ``controller.listener.names`` needs capitals.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def get(self, name: str, default: str = "") -> str:
        """A property's trimmed value; the default if it is missing or empty."""
        return self._properties.get(name, "").strip() or default

    def _listed(self, name: str, default: str = "") -> list[str]:
        return [part.strip() for part in self.get(name, default).split(",") if part.strip()]

    @property
    def controller_alone(self) -> bool:
        """Whether the node is a controller and no broker: then it has no broker listener."""
        roles = self._listed("process.roles")
        return "controller" in roles and "broker" not in roles

    @property
    def inter_broker(self) -> str:
        protocol = self.get("security.inter.broker.protocol", "PLAINTEXT")
        return self.get("inter.broker.listener.name", protocol).upper()

    @property
    def controllers(self) -> list[str]:
        """The names of the controllers' listeners; no client connects to these."""
        return self._listed("controller.listener.names")

    def protocol(self, listener: str) -> str:
        """A listener's security protocol; in Kafka's default map a listener has the name of its protocol."""
        entries = [entry.partition(":") for entry in self._listed("listener.security.protocol.map")]
        protocols = {name.strip().upper(): protocol.strip() for name, _, protocol in entries}
        return protocols.get(listener.upper(), listener).upper()

    def own(self, listener: str, begin: str) -> dict[str, str]:
        """The properties whose names start with ``begin``; those with the listener's prefix override the broker's."""
        of_listener = _stripped(self._properties, f"listener.name.{listener.lower()}.", begin)
        return _stripped(self._properties, "", begin) | of_listener

    def login(self, listener: str) -> dict[str, str]:
        """The properties ``sasl.*`` of a node's login at a listener; the mechanism's own override the listener's."""
        of = "controller" if listener in self.controllers else "inter.broker"
        mechanism = self.get(f"sasl.mechanism.{of}.protocol", "GSSAPI")
        of_mechanism = f"{mechanism.lower()}."
        own = _stripped(self.own(listener, f"{of_mechanism}sasl."), of_mechanism, "sasl.")
        return {**self.own(listener, "sasl."), **own, "sasl.mechanism": mechanism}

    def login_name(self, listener: str) -> str | None:
        """The principal name of this broker as a client of a listener; None if the name can't be found out."""
        login = self.login(listener)
        mechanism, given = login["sasl.mechanism"], options(login.get("sasl.jaas.config", ""))
        if mechanism != "GSSAPI":
            return given.get("unsecuredLoginStringClaim_sub" if mechanism == "OAUTHBEARER" else "username")
        # Kafka's rules map a Kerberos principal to the name that a callback receives (DefaultKafkaPrincipalBuilder).
        # The default rule removes host and realm.
        by_default = login.get("sasl.kerberos.principal.to.local.rules", "DEFAULT") == "DEFAULT"
        return re.split("[/@]", given["principal"])[0] if by_default and given.get("principal") else None

    def authentication(self, listener: str) -> str:
        """Whether authentication, by SASL or a certificate, is ``required``, ``requested`` or ``none``.

        With ``none`` all peers are ANONYMOUS; with ``requested``, peers without a certificate are (SslTransportLayer).
        Nodes have a certificate.
        """
        protocol = self.protocol(listener)
        if protocol != "SSL":
            return "required" if protocol.startswith(_SASL) else "none"
        return self.own(listener, "ssl.client.auth").get("ssl.client.auth", "").strip().lower() or "none"

    def unauthenticated(self) -> list[str]:
        """The client listeners at which a client can be ANONYMOUS."""
        # Kafka's default is one listener without authentication.
        names = [entry.partition(":")[0].strip().upper() for entry in self._listed("listeners", "PLAINTEXT://:9092")]
        return [name for name in names if name not in self.controllers and self.authentication(name) != "required"]

    def client(self) -> dict[str, str]:
        """The Java configuration by which this broker connects to itself, with secrets; empty if it has no address."""
        listener = self.inter_broker
        address = self._address("advertised.listeners") or self._address("listeners")
        if self.controller_alone or not address:
            return {}
        protocol = self.protocol(listener)
        config = {"bootstrap.servers": address, "security.protocol": protocol}
        if protocol.endswith("SSL"):
            config |= self.own(listener, "ssl.")
        if protocol.startswith(_SASL):
            config |= self.login(listener)
        return config

    def _address(self, name: str) -> str:
        for entry in self._listed(name):
            listener, _, address = entry.partition("://")
            if listener.upper() == self.inter_broker:
                host, _, port = address.rpartition(":")
                host = host.strip("[]")  # Kafka takes an IPv6 address without brackets, librdkafka doesn't
                # A broker that listens on all addresses reaches itself as localhost.
                host = "localhost" if host in _EVERYWHERE else host
                return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return ""


def _stripped(properties: Mapping[str, str], prefix: str, begin: str) -> dict[str, str]:
    """The properties whose names start with ``prefix`` and then ``begin``, by their names without the prefix."""
    names = [name for name in properties if name.startswith(prefix + begin)]
    return {name.removeprefix(prefix): properties[name] for name in names}


# ---- JAAS: Kafka reads it with Java's StreamTokenizer (JaasConfig) ----

_QUOTED: Final = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
#: Finds options one by one from the left, so it takes no text within a quoted value for an option.
_OPTION: Final = re.compile(rf"""({_QUOTED}|[^\s;="']++)(?:\s*=\s*({_QUOTED}|[^\s;"']++))?""", re.DOTALL | re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def options(jaas: str) -> dict[str, str]:
    """All options by name; if an option is given twice, the last one applies, as in Kafka (JaasConfig)."""
    return {_plain(name): _plain(value) for name, value in _OPTION.findall(jaas) if value}


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] in "\"'" else text


# ---- librdkafka's names ----

#: Reads the stores that the properties ``ssl.*`` name, and returns librdkafka's ``ssl.*``. If the shim reads them, it
#: also returns ``principal``, the name that Kafka makes of the certificate. Raises ConnectionError if it can't.
Keystores: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]

_HOSTS: Final = "ssl.endpoint.identification.algorithm"
#: The properties with the same name and meaning in both; librdkafka refuses names that it doesn't know.
_SAME: Final = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "client.id", "request.timeout.ms", _HOSTS,
)  # fmt: skip
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
#: librdkafka looks for the public CAs only where Red Hat has them, even with "probe". Elsewhere it trusts no endpoint.
_HTTPS, _AUTHORITIES = "https.ca.location", Path("/etc/ssl/certs/ca-certificates.crt")
#: librdkafka's names of the properties of a token request, with Kafka's names and the JAAS options used before 4.1.
_FOR_A_TOKEN: Final = {
    "sasl.oauthbearer.client.id": ("sasl.oauthbearer.client.credentials.client.id", "clientId"),
    "sasl.oauthbearer.client.secret": ("sasl.oauthbearer.client.credentials.client.secret", "clientSecret"),
    "sasl.oauthbearer.scope": ("sasl.oauthbearer.scope", "scope"),
}


def translate(java: Mapping[str, str], keystores: Keystores) -> dict[str, str]:
    """A Java client's configuration in librdkafka's names, with secrets. Raises what ``keystores`` raises."""
    made = {name: java[name] for name in _SAME if name in java}
    if made.get(_HOSTS) == "":
        made[_HOSTS] = "none"  # librdkafka's word for "no check of host names"
    # Kafka's clients take the protocol in any case of letters.
    if java.get("security.protocol", "").upper().endswith("SSL"):
        stores = keystores(_stripped(java, "", "ssl."))
        made |= {name: text for name, text in stores.items() if name != "principal"}
    login = options(java.get("sasl.jaas.config", ""))
    if made.get("sasl.mechanism") == "OAUTHBEARER" and java.get(_ENDPOINT, "").startswith("http"):
        made |= {_ENDPOINT: java[_ENDPOINT], "sasl.oauthbearer.method": "oidc"}
        given = {name: java.get(newer, login.get(older)) for name, (newer, older) in _FOR_A_TOKEN.items()}
        made |= {name: text for name, text in given.items() if text is not None}
        if _HTTPS not in java and _AUTHORITIES.exists():
            made[_HTTPS] = str(_AUTHORITIES)
    return made | {f"sasl.{name}": login[name] for name in ("username", "password") if name in login}


_PASSWORD: Final = "sasl.password", "a user and a password (sasl.username, sasl.password; in Java sasl.jaas.config)"
#: For each mechanism, the beginnings of names (librdkafka needs one such property), and the words for all it needs.
_LOGINS: Final[Mapping[str, tuple[str | tuple[str, ...], str]]] = {
    "OAUTHBEARER": (("sasl.oauthbearer.method", "enable.sasl.oauth"), f"{_ENDPOINT}, and a client's id and secret"),
    "GSSAPI": ("sasl.kerberos.", "sasl.kerberos.*, and a librdkafka that was built for it"),
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), _PASSWORD),
}


#: The start of ${provider:path:key} (KIP-297). Kafka passes it on as it is written if the provider has no such key.
REFERENCE: Final = re.compile(r"\$\{[^}:{]+:")


def no_login(config: Mapping[str, object]) -> str:
    """The settings that librdkafka lacks for SASL, in words; "" for none. It would silently wait for a token."""
    if raw := ", ".join(name for name, value in config.items() if REFERENCE.match(str(value))):
        return f"{raw} refers to a config provider, which has no such key, or isn't asked here"
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI"))
    of_sasl = str(config.get("security.protocol", "")).upper().startswith(_SASL)
    # librdkafka itself reports any other word, maybe a password in the wrong line, as an unknown mechanism.
    names, needs = _LOGINS.get(str(mechanism), ("", ""))
    lacks = of_sasl and not any(name.startswith(names) for name in config)
    return f"sasl.mechanism={mechanism} needs {needs}" if lacks else ""
