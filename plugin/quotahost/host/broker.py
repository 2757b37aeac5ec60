"""``quotahost.api.Broker`` by way of the shim, as plugins in a broker have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotahost.host.exemptions import node_id, own_client_id
from quotahost.host.shim import Shim
from quotahost.model import ClientUsage, LogDir
from quotahost.settings.broker import Settings


class HostBroker:
    """Asks the shim; ``settings`` are those in force, replaced when they change."""

    def __init__(self, shim: Shim, settings: Settings) -> None:
        """``settings`` bring ``kafka.*`` and ``static.kafka.admin.*``."""
        self._shim, self.settings = shim, settings
        self._properties = shim.broker()

    def properties(self) -> Mapping[str, str]:
        """See Broker."""
        return self._properties

    def client_config(self) -> dict[str, str]:
        """See Broker; an address of ``kafka.*`` replaces the broker's own, and its security, as a whole."""
        own = {name: value.get_secret_value() for name, value in self.settings.kafka.items()}
        config = own if "bootstrap.servers" in own else {**self._client(), **own}
        return {"client.id": own_client_id(node_id(self._properties)), **config}

    def _client(self) -> dict[str, str]:
        """As ``static.kafka.admin.*`` says, in librdkafka's names, or else as this broker itself."""
        admin = {name: value.get_secret_value() for name, value in self.settings.kafka_admin.items()}
        if not admin:
            return self._shim.client_config()
        made = self._shim.librdkafka(admin)
        made.pop("client.id", None)  # by our own the plugins' client is known where nobody authenticates
        if "bootstrap.servers" not in made:
            made["bootstrap.servers"] = self._shim.client_config()["bootstrap.servers"]
        return made

    def registered(self) -> dict[int, bool]:
        """See Broker."""
        return self._shim.registered()

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """See Broker."""
        return self._shim.log_dirs(brokers)

    def offline_log_dirs(self) -> tuple[str, ...]:
        """See Broker."""
        return self._shim.offline_log_dirs()

    def usage(self, most: int) -> list[ClientUsage]:
        """See Broker."""
        return self._shim.usage(most)

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """See Broker."""
        self._shim.gauge(type, name, attribute, value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """See Broker."""
        self._shim.count(type, name, attribute, by)

    def forget(self, type: str, name: str) -> None:
        """See Broker."""
        self._shim.forget(type, name)

    def thread_ends(self) -> None:
        """See Broker."""
        self._shim.detach()
