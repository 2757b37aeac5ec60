"""What plugins learn of this broker, and how their Kafka client connects: as this broker itself, or by ``kafka.*``."""

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

#: The broker's own properties that plugins get.
_PLUGINS_GET: Final[tuple[str, ...]] = (
    "node.id", "broker.id", "process.roles", "log.dirs", "log.dir", "quota.window.num", "quota.window.size.seconds",
    "controller.quota.window.num", "controller.quota.window.size.seconds", "remote.log.storage.system.enable",
)  # fmt: skip


class HostBroker:
    """``quotahost.api.Broker`` for plugins: most questions go to the shim as they are."""

    settings: Settings  # those in force
    principals: list[str]  # of the cluster's brokers (``exemptions.broker_principals``)

    def __init__(self, shim: Shim, settings: Settings) -> None:
        self._shim = shim
        self._given: dict[str, str] | None = None
        self.refresh(settings)
        self.registered, self.log_dirs = shim.registered, shim.log_dirs
        self.replicas, self.load = shim.replicas, shim.load
        self.usage, self.look = partial(usage, shim.ask), partial(look, shim.ask)
        self.largest: Largest = lambda name: ()  # until the node turns out to have disks (``BudgetSizes.largest``)

    def refresh(self, settings: Settings) -> None:
        """Take over settings, and how brokers connect now: Kafka may have applied other keystores or credentials."""
        self.settings = settings
        given = self._shim.broker()
        if given != self._given:
            self._given = given
            # All plugins get this one.
            self._properties = MappingProxyType({name: given[name] for name in _PLUGINS_GET if name in given})
            self.principals = broker_principals(given, self._shim.keystores)
        # Where a controller alone finds the brokers only its operator can say.
        alone = Listeners(given).controller_alone
        self._shim.connect(revealed(self.settings.kafka_admin) if alone else Listeners(given).client())

    def changed(self) -> bool:
        """Whether the broker's own properties have changed since the last ``refresh``: its keystores, that is."""
        return self._shim.broker() != self._given

    def properties(self) -> Mapping[str, str]:
        """Those of the broker's own properties that are no secrets; none of them changes while the broker runs."""
        return self._properties

    def offline_log_dirs(self) -> tuple[str, ...]:
        return self._shim.offline_log_dirs(log_dirs(self._properties))

    def explain(self, client: Client) -> list[str]:
        return [json.dumps(explained(self._shim.ask, client, self.largest))]

    def client_config(self) -> dict[str, str]:
        config = client_config(self.settings, self._shim.broker(), self._shim.keystores)
        # Where nobody authenticates, the fence knows the plugins' client by our client.id alone.
        return config | {"client.id": own_client_id(node_id(self._properties))}


def client_config(settings: Settings, broker: Mapping[str, str], keystores: Keystores) -> dict[str, str]:
    """How plugins connect, of a broker with these properties, in librdkafka's names.

    If ``kafka.*`` gives an address, nothing of the broker's own connection is used with it.
    """
    config = revealed(settings.kafka)
    if "bootstrap.servers" in config:
        return config
    own, admin = Listeners(broker).client(), revealed(settings.kafka_admin)
    # Strimzi's names may bring credentials alone; the address is then this broker's own listener.
    address = {"bootstrap.servers": own["bootstrap.servers"]} if own else {}
    return translate(address | (admin or own), keystores) | config
