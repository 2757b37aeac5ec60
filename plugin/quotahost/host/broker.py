"""``quotahost.api.Broker`` for the plugins of a broker: most questions go to the shim as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping

from quotahost.host.exemptions import node_id, own_client_id
from quotahost.host.looks import explained, look, usage
from quotahost.host.shim import Shim
from quotahost.model import Client, ClientUsage, Look
from quotahost.settings.broker import Settings


class HostBroker:
    """Asks the shim; ``settings`` are those in force, which the host replaces when they change."""

    def __init__(self, shim: Shim, settings: Settings) -> None:
        """``settings`` bring ``kafka.*`` and ``static.kafka.admin.*``."""
        self._shim, self.settings = shim, settings
        self._properties = shim.broker()
        self.registered, self.log_dirs = shim.registered, shim.log_dirs
        self.offline_log_dirs, self.thread_ends = shim.offline_log_dirs, shim.detach

    def properties(self) -> Mapping[str, str]:
        """Read once, at the start: none of them changes while the broker runs."""
        return self._properties

    def usage(self, most: int) -> list[ClientUsage]:
        """See Broker."""
        return usage(self._shim.ask, most)

    def look(self, most: int) -> Look:
        """See Broker."""
        return look(self._shim.ask, most)

    def explain(self, client: Client) -> list[str]:
        """See Broker: one line of JSON."""
        return [json.dumps(explained(self._shim.ask, client))]

    def client_config(self) -> dict[str, str]:
        """See Broker. If ``kafka.*`` gives an address, nothing of the broker's own connection is used with it."""
        own = {name: value.get_secret_value() for name, value in self.settings.kafka.items()}
        config = own if "bootstrap.servers" in own else {**self._client(), **own}
        return {"client.id": own_client_id(node_id(self._properties)), **config}

    def _client(self) -> dict[str, str]:
        """``static.kafka.admin.*`` in librdkafka's names or, if there is none, as this broker itself connects."""
        admin = {name: value.get_secret_value() for name, value in self.settings.kafka_admin.items()}
        if not admin:
            return self._shim.client_config()
        made = self._shim.librdkafka(admin)
        # Where nobody authenticates, the fence knows the plugins' client by our client.id alone.
        made.pop("client.id", None)
        # These properties may bring credentials alone; the address is then this broker's own listener.
        if "bootstrap.servers" not in made:
            made["bootstrap.servers"] = self._shim.client_config()["bootstrap.servers"]
        return made
