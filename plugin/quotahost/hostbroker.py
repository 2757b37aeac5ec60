"""``quotahost.broker.Broker`` by way of the shim, as plugins in a broker have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotahost.broker import LogDir
from quotahost.exemptions import node_id, own_client_id
from quotahost.settings import Settings
from quotahost.shim import Shim


class HostBroker:
    """Asks the shim; ``settings`` are those in force, replaced when they change."""

    def __init__(self, shim: Shim, settings: Settings) -> None:
        """``settings`` bring ``kafka.*``."""
        self._shim, self.settings = shim, settings
        self._properties = shim.broker()

    def properties(self) -> Mapping[str, str]:
        """See Broker."""
        return self._properties

    def client_config(self) -> dict[str, str]:
        """See Broker; ``kafka.*`` replace the broker's own address and security as a whole."""
        own = {name: value.get_secret_value() for name, value in self.settings.kafka.items()}
        config = own if "bootstrap.servers" in own else {**self._shim.client_config(), **own}
        return {"client.id": own_client_id(node_id(self._properties)), **config}

    def registered(self) -> dict[int, bool]:
        """See Broker."""
        return self._shim.registered()

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """See Broker."""
        return self._shim.log_dirs(brokers)

    def offline_log_dirs(self) -> tuple[str, ...]:
        """See Broker."""
        return self._shim.offline_log_dirs()

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
