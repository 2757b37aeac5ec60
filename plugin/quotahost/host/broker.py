"""``quotahost.api.Broker`` for the plugins of a broker: most questions go to the shim as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quotahost.host.exemptions import node_id, own_client_id
from quotahost.host.looks import look_of, volumes_of
from quotahost.host.messages import plain
from quotahost.host.shim import Shim
from quotahost.model import Client, Look
from quotahost.settings.broker import Settings

_MARKS: Final = 10


class HostBroker:
    """Asks the shim; ``settings`` are those in force, which the host replaces when they change."""

    def __init__(self, shim: Shim, settings: Settings) -> None:
        """``settings`` bring ``kafka.*`` and ``static.kafka.admin.*``."""
        self._shim, self.settings = shim, settings
        self._properties = shim.broker()
        self.registered, self.log_dirs = shim.registered, shim.log_dirs
        self.offline_log_dirs, self.usage = shim.offline_log_dirs, shim.usage
        self.explain, self.thread_ends = shim.explain, shim.detach

    def properties(self) -> Mapping[str, str]:
        """Read once, at the start: none of them changes while the broker runs."""
        return self._properties

    def look(self, most: int) -> Look:
        """See Broker."""
        # The state is the same for all clients, so it may be asked for any.
        lines = self._shim.explain(Client("", ""))
        rows = [[plain(field) for field in line.split("\t")] for line in lines]
        # One more tells whether there are more.
        uses = self._shim.uses(most + 1) if most else []
        return look_of(rows, uses, volumes_of(self._shim.gauges()), self._shim.marks(_MARKS)).first(most)

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
