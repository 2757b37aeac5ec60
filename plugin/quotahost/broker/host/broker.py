"""``HostBroker`` answers plugins' questions about this broker, and configures their Kafka client (``kafka.*``)."""

import json
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from quotahost.broker.disks.file_stores import log_dirs
from quotahost.broker.host.broker_status import Largest, explained, look, usage
from quotahost.broker.host.exemptions import broker_principals, node_id, own_client_id
from quotahost.broker.host.protocol import Shim
from quotahost.kafka.listeners import Keystores, Listeners, translate
from quotahost.model import Client
from quotahost.settings.broker import Settings
from quotahost.settings.sections import revealed

#: The names of the broker's own properties that plugins may read.
_PLUGINS_GET: Final[tuple[str, ...]] = (
    "node.id", "broker.id", "process.roles", "log.dirs", "log.dir", "quota.window.num", "quota.window.size.seconds",
    "controller.quota.window.num", "controller.quota.window.size.seconds", "remote.log.storage.system.enable",
)  # fmt: skip


class HostBroker:
    """Implements ``quotahost.api.Broker`` for plugins. The shim answers most questions."""

    settings: Settings  # the settings in force
    principals: list[str]  # the principals of the cluster's brokers (``exemptions.broker_principals``)

    def __init__(self, shim: Shim, settings: Settings) -> None:
        self._shim = shim
        self._given: dict[str, str] | None = None
        self.refresh(settings)
        self.registered, self.log_dirs = (lambda: shim.cluster()[1]), shim.log_dirs
        self.replicas, self.load = shim.replicas, shim.load
        self.usage, self.look = partial(usage, shim.ask), partial(look, shim.ask)
        self.largest: Largest = lambda name: ()  # replaced by ``BudgetSizes.largest`` if the node has disks

    def refresh(self, settings: Settings) -> None:
        """Take over settings, and how brokers connect now: Kafka may have applied new keystores or credentials."""
        self.settings = settings
        given = self._shim.broker()
        if given != self._given:
            self._given = given
            self._properties = MappingProxyType({name: given[name] for name in _PLUGINS_GET if name in given})
            self.principals = broker_principals(given, self._shim.keystores)
        # Only the operator (``static.kafka.admin.*``) can tell a controller that is no broker where the brokers are.
        alone = Listeners(given).controller_alone
        self._shim.connect(revealed(self.settings.kafka_admin) if alone else Listeners(given).client())

    def changed(self) -> bool:
        """Whether the broker's own properties have changed since the last ``refresh``. Only the keystores can."""
        return self._shim.broker() != self._given

    def properties(self) -> Mapping[str, str]:
        """The broker's own properties that plugins may read. They contain no secrets and don't change at run time."""
        return self._properties

    def offline_log_dirs(self) -> tuple[str, ...]:
        return self._shim.offline_log_dirs(log_dirs(self._properties))

    def explain(self, client: Client) -> list[str]:
        return [json.dumps(explained(self._shim.ask, client, self.largest))]

    def client_config(self) -> dict[str, str]:
        config = client_config(self.settings, self._shim.broker(), self._shim.keystores)
        # If clients don't authenticate, the fence recognizes the plugins' client only by its client.id.
        return config | {"client.id": own_client_id(node_id(self._properties))}


def client_config(settings: Settings, broker: Mapping[str, str], keystores: Keystores) -> dict[str, str]:
    """The librdkafka configuration with which the plugins of a broker with these properties connect.

    If ``kafka.*`` has an address, nothing of the broker's own connection is used.
    """
    config = revealed(settings.kafka)
    if "bootstrap.servers" in config:
        return config
    own, admin = Listeners(broker).client(), revealed(settings.kafka_admin)
    # Strimzi's names may have credentials only; the address is then this broker's own listener.
    address = {"bootstrap.servers": own["bootstrap.servers"]} if own else {}
    return translate(address | (admin or own), keystores) | config
