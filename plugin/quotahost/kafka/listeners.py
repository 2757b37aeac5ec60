"""A broker's listeners as its properties describe them: their protocols, their own properties, who authenticates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quotahost.kafka import jaas

_SASL: Final = "SASL_"
_EVERYWHERE: Final = ("", "0.0.0.0", "[::]")


class Listeners:
    """What a broker's properties say of its listeners. It shows none of them, since they contain secrets."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """``properties`` are the broker's own."""
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
    def names(self) -> list[str]:
        """All listeners of this node, by Kafka's default one without authentication."""
        return [each.partition(":")[0].strip() for each in self._listed("listeners", "PLAINTEXT://:9092")]

    @property
    def inter_broker(self) -> str:
        """The name of the listener by which brokers reach each other."""
        return self.get("inter.broker.listener.name") or self.get("security.inter.broker.protocol", "PLAINTEXT")

    @property
    def controllers(self) -> list[str]:
        """The names of the listeners of controllers, which no client connects to."""
        return self._listed("controller.listener.names")

    def protocol(self, listener: str) -> str:
        """A listener's security protocol; by Kafka's default map a listener bears the name of its protocol."""
        entries = [entry.partition(":") for entry in self._listed("listener.security.protocol.map")]
        # In maps and in the names of properties Kafka ignores the case of a listener's name (ListenerName).
        protocols = {name.strip().upper(): protocol.strip() for name, _, protocol in entries}
        return protocols.get(listener.upper(), listener).upper()

    def mechanism(self, listener: str) -> str:
        """The SASL mechanism by which nodes log in at each other's listener of this name."""
        of = "controller" if listener in self.controllers else "inter.broker"
        return self.get(f"sasl.mechanism.{of}.protocol", "GSSAPI")

    def own(self, listener: str, begin: str) -> dict[str, str]:
        """The properties whose names begin so; those with the listener's prefix stand above the broker's own."""
        prefix = f"listener.name.{listener.lower()}."
        found = {name: value for name, value in self._properties.items() if name.startswith(begin)}
        for name, value in self._properties.items():
            if name.startswith(prefix + begin):
                found[name.removeprefix(prefix)] = value
        return found

    def login(self, listener: str) -> dict[str, str]:
        """The properties ``sasl.*`` with which a node logs in there, its mechanism's own above its listener's."""
        of_mechanism = f"{self.mechanism(listener).lower()}."
        own = self.own(listener, f"{of_mechanism}sasl.")
        return {
            **self.own(listener, "sasl."),
            **{name.removeprefix(of_mechanism): value for name, value in own.items()},
            "sasl.mechanism": self.mechanism(listener),
        }

    def login_name(self, listener: str) -> str | None:
        """The principal's name that this broker has there as a client; None if it can't be found out."""
        return jaas.login_name(self.login(listener).get("sasl.jaas.config", ""), self.mechanism(listener))

    def asks_for_certificates(self, listener: str) -> str:
        """``ssl.client.auth`` there: required, requested or none; by default none, and all peers are ANONYMOUS."""
        return self.own(listener, "ssl.client.auth").get("ssl.client.auth", "").strip().lower() or "none"

    def authenticates(self, listener: str) -> bool:
        """Whether nobody is ANONYMOUS there. With ``requested`` who has no certificate is (SslTransportLayer)."""
        protocol = self.protocol(listener)
        if protocol == "SSL":
            return self.asks_for_certificates(listener) == "required"
        return protocol.startswith(_SASL)

    def unauthenticated(self) -> list[str]:
        """The listeners of clients at which somebody can be ANONYMOUS."""
        return [name for name in self.names if name not in self.controllers and not self.authenticates(name)]

    def client(self) -> dict[str, str]:
        """The Java configuration of a client that reaches this broker as brokers reach each other; it has secrets.

        So plugins need no credentials of their own. It is empty where the inter-broker listener has no address, as on a
        controller alone.
        """
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
        for each in self._listed(name):
            listener, _, address = each.partition("://")
            if listener.upper() == self.inter_broker.upper():
                host, _, port = address.rpartition(":")
                # A broker that listens everywhere is reachable from itself as localhost.
                return f"{'localhost' if host in _EVERYWHERE else host}:{port}"
        return ""
