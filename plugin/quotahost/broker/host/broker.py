"""``quotahost.api.Broker`` for the plugins of a broker: most questions go to the shim as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from quotahost.broker.host.exemptions import broker_principals, node_id, own_client_id
from quotahost.broker.host.looks import explained, look, usage
from quotahost.broker.host.shim import Shim
from quotahost.kafka.listeners import Listeners, translate
from quotahost.model import Client, ClientUsage, Look
from quotahost.settings.broker import Settings

#: The broker's own properties that plugins get.
_PLUGINS_GET: Final[tuple[str, ...]] = (
    "node.id",
    "broker.id",
    "process.roles",
    "log.dirs",
    "log.dir",
    "quota.window.num",
    "quota.window.size.seconds",
    "controller.quota.window.num",
    "controller.quota.window.size.seconds",
    "remote.log.storage.system.enable",
)


class HostBroker:
    """Asks the shim.

    Attributes:
        settings: those in force.
        principals: of the cluster's brokers (``host.principals``).
    """

    def __init__(self, shim: Shim, settings: Settings) -> None:
        """``settings`` bring ``kafka.*`` and ``static.kafka.admin.*``."""
        self._shim = shim
        self._given: dict[str, str] | None = None
        self.refresh(settings)
        self.registered, self.log_dirs = shim.registered, shim.log_dirs
        self.offline_log_dirs, self.thread_ends = shim.offline_log_dirs, shim.detach

    def refresh(self, settings: Settings) -> None:
        """Take over settings, and how brokers connect now: Kafka may have applied other keystores or credentials."""
        self.settings = settings
        given = self._shim.broker()
        if given != self._given:
            self._given = given
            self._properties = {name: given[name] for name in _PLUGINS_GET if name in given}
            self.principals = broker_principals(given, self._shim.keystores)
        # Where a controller alone finds the brokers only its operator can say.
        alone = Listeners(given).controller_alone
        self._shim.connect(self._admin() if alone else Listeners(given).client())

    def properties(self) -> Mapping[str, str]:
        """Those of the broker's own properties that are no secrets; none of them changes while the broker runs."""
        return self._properties

    def _admin(self) -> dict[str, str]:
        return {name: value.get_secret_value() for name, value in self.settings.kafka_admin.items()}

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
        own, admin = Listeners(self._shim.broker()).client(), self._admin()
        if not admin:
            return translate(own, self._shim.keystores)
        made = translate(admin, self._shim.keystores)
        # Where nobody authenticates, the fence knows the plugins' client by our client.id alone.
        made.pop("client.id", None)
        # These properties may bring credentials alone; the address is then this broker's own listener.
        return {"bootstrap.servers": own["bootstrap.servers"], **made} if own else made
