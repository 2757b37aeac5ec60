"""A broker's listeners: who logs in there, and as whom this broker does; and Java's settings in librdkafka's names.

1. :class:`Listeners` reads protocols and logins of the broker's listeners, by Kafka's rules for prefixes and maps. Its
   ``client`` is the Java configuration with which this broker reaches itself, so plugins need no credentials.
2. :func:`options` is the one reader of a JAAS configuration (``sasl.jaas.config``). Kafka reads it with Java's
   ``StreamTokenizer`` (``JaasConfig``): names and values are words, or texts in double or single quotes with backslash
   escapes; here a backslash stands for nothing but the character behind it, and comments are not told from options.
3. :func:`translate` turns a Java client's configuration, the broker's or the operator's, into librdkafka's.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

_SASL: Final = "SASL_"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


class Listeners:
    """What a broker's properties say of its listeners. It shows none of them, since they contain secrets.

    Kafka ignores the case of a listener's name (ListenerName) but in ``controller.listener.names``, which has capitals.
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
        """Whether the node is a controller and no broker: then it has no listener of brokers."""
        roles = self._listed("process.roles")
        return "controller" in roles and "broker" not in roles

    @property
    def inter_broker(self) -> str:
        protocol = self.get("security.inter.broker.protocol", "PLAINTEXT")
        return self.get("inter.broker.listener.name", protocol).upper()

    @property
    def controllers(self) -> list[str]:
        """The names of the listeners of controllers, which no client connects to."""
        return self._listed("controller.listener.names")

    def protocol(self, listener: str) -> str:
        """A listener's security protocol; by Kafka's default map a listener bears the name of its protocol."""
        entries = [entry.partition(":") for entry in self._listed("listener.security.protocol.map")]
        protocols = {name.strip().upper(): protocol.strip() for name, _, protocol in entries}
        return protocols.get(listener.upper(), listener).upper()

    def own(self, listener: str, begin: str) -> dict[str, str]:
        """The properties whose names begin so; those with the listener's prefix stand above the broker's own."""
        of_listener = _stripped(self._properties, f"listener.name.{listener.lower()}.", begin)
        return _stripped(self._properties, "", begin) | of_listener

    def login(self, listener: str) -> dict[str, str]:
        """The properties ``sasl.*`` with which a node logs in there, its mechanism's own above its listener's."""
        of = "controller" if listener in self.controllers else "inter.broker"
        mechanism = self.get(f"sasl.mechanism.{of}.protocol", "GSSAPI")
        of_mechanism = f"{mechanism.lower()}."
        own = _stripped(self.own(listener, f"{of_mechanism}sasl."), of_mechanism, "sasl.")
        return {**self.own(listener, "sasl."), **own, "sasl.mechanism": mechanism}

    def login_name(self, listener: str) -> str | None:
        """The principal's name that this broker has there as a client; None if it can't be found out."""
        login = self.login(listener)
        mechanism, given = login["sasl.mechanism"], options(login.get("sasl.jaas.config", ""))
        if mechanism != "GSSAPI":
            return given.get("unsecuredLoginStringClaim_sub" if mechanism == "OAUTHBEARER" else "username")
        # By rules Kafka makes the name that a callback is told of a Kerberos principal (DefaultKafkaPrincipalBuilder);
        # the default one takes host and realm away.
        by_default = login.get("sasl.kerberos.principal.to.local.rules", "DEFAULT") == "DEFAULT"
        return re.split("[/@]", given["principal"])[0] if by_default and given.get("principal") else None

    def authentication(self, listener: str) -> str:
        """By SASL, or a certificate: ``required``, ``requested`` or ``none``, where all peers are ANONYMOUS.

        With ``requested`` those are who have no certificate (SslTransportLayer); nodes have one.
        """
        protocol = self.protocol(listener)
        if protocol != "SSL":
            return "required" if protocol.startswith(_SASL) else "none"
        return self.own(listener, "ssl.client.auth").get("ssl.client.auth", "").strip().lower() or "none"

    def unauthenticated(self) -> list[str]:
        """The listeners of clients at which somebody can be ANONYMOUS."""
        # By Kafka's default there is one without authentication.
        names = [entry.partition(":")[0].strip().upper() for entry in self._listed("listeners", "PLAINTEXT://:9092")]
        return [name for name in names if name not in self.controllers and self.authentication(name) != "required"]

    def client(self) -> dict[str, str]:
        """The Java configuration by which this broker reaches itself, with secrets; empty without such an address."""
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
                host = host.strip("[]")  # Kafka takes an IPv6 address without them, librdkafka doesn't
                # A broker that listens everywhere is reachable from itself as localhost.
                host = "localhost" if host in _EVERYWHERE else host
                return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return ""


def _stripped(properties: Mapping[str, str], prefix: str, begin: str) -> dict[str, str]:
    """The properties whose names begin so behind a prefix, without the prefix."""
    names = [name for name in properties if name.startswith(prefix + begin)]
    return {name.removeprefix(prefix): properties[name] for name in names}


# ---- JAAS: Kafka reads it with Java's StreamTokenizer (JaasConfig) ----

_QUOTED: Final = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
#: Read from the left, option by option, no text within a quoted value is mistaken for an option.
_OPTION: Final = re.compile(rf"""({_QUOTED}|[^\s;="']++)(?:\s*=\s*({_QUOTED}|[^\s;"']++))?""", re.DOTALL | re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def options(jaas: str) -> dict[str, str]:
    """All options by name; of one that is given twice the last holds, as in Kafka (JaasConfig)."""
    return {_plain(name): _plain(value) for name, value in _OPTION.findall(jaas) if value}


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] in "\"'" else text


# ---- librdkafka's names ----

#: Reads the stores that properties ``ssl.*`` name, into librdkafka's ``ssl.*``; and ``principal``, the name that Kafka
#: makes of the certificate, where the shim reads them. ConnectionError if it can't.
Keystores: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]

_HOSTS: Final = "ssl.endpoint.identification.algorithm"
#: Properties that have the same name and meaning in both; librdkafka refuses the names that it doesn't know.
_SAME: Final = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "client.id", "request.timeout.ms", _HOSTS,
)  # fmt: skip
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
#: librdkafka looks for public authorities where Red Hat has them, also by "probe", and elsewhere trusts no endpoint.
_HTTPS, _AUTHORITIES = "https.ca.location", Path("/etc/ssl/certs/ca-certificates.crt")
#: librdkafka's names of what clients give there for a token, with Kafka's, and JAAS's options as they were before 4.1.
_FOR_A_TOKEN: Final = {
    "sasl.oauthbearer.client.id": ("sasl.oauthbearer.client.credentials.client.id", "clientId"),
    "sasl.oauthbearer.client.secret": ("sasl.oauthbearer.client.credentials.client.secret", "clientSecret"),
    "sasl.oauthbearer.scope": ("sasl.oauthbearer.scope", "scope"),
}


def translate(java: Mapping[str, str], keystores: Keystores) -> dict[str, str]:
    """The same in librdkafka's names; it has secrets. Raises what ``keystores`` raises."""
    made = {name: java[name] for name in _SAME if name in java}
    if made.get(_HOSTS) == "":
        made[_HOSTS] = "none"  # librdkafka's word for "no check of host names"
    # In any case of letters, as Kafka's clients take it.
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


_PASSWORD: Final = "sasl.password", "a user and a password (sasl.jaas.config, or sasl.username and sasl.password)"
#: By mechanism, how the names begin of which librdkafka needs one, and the words for all of it.
_LOGINS: Final[Mapping[str, tuple[str | tuple[str, ...], str]]] = {
    "OAUTHBEARER": (("sasl.oauthbearer.method", "enable.sasl.oauth"), f"{_ENDPOINT}, and a client's id and secret"),
    "GSSAPI": ("sasl.kerberos.", "sasl.kerberos.*, and a librdkafka that was built for it"),
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), _PASSWORD),
}


def no_login(config: Mapping[str, object]) -> str:
    """What librdkafka misses to log in by SASL, in words; "" if it has that. It would wait in silence for a token."""
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI"))
    of_sasl = str(config.get("security.protocol", "")).upper().startswith(_SASL)
    # Of another word, maybe a password in the wrong line, librdkafka itself says that it is no mechanism.
    names, needs = _LOGINS.get(str(mechanism), ("", ""))
    lacks = of_sasl and not any(name.startswith(names) for name in config)
    return f"sasl.mechanism={mechanism} takes {needs}" if lacks else ""
