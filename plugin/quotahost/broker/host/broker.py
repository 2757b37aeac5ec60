"""What plugins and the host learn of this broker and of its cluster.

``HostBroker`` is ``quotahost.api.Broker`` for plugins: most questions go to the shim as they are. It also derives how
the plugins' own Kafka client connects: as this broker itself, unless properties ``kafka.*`` say otherwise.

``ClusterQuery`` asks the cluster for what Kafka doesn't tell by itself:

- *Which brokers are alive.* Kafka's updateClusterMetadata is deprecated since 4.4 and goes with 5.0 (KAFKA-19566), and
  up to 4.2.1 and 4.3.1 it isn't called while a broker that has replicas is down (KAFKA-20746). The exemptions of
  brokers, the supplier ``cluster-quota`` and other suppliers' ``cluster_changed()`` go by it. So if it has not been
  called soon after the start, the cluster is asked instead, every ten seconds.
- *Which names are stored.* Kafka calls a callback when a property changes that the callback lists
  (DynamicBrokerConfig.needsReconfiguration), and a misspelt name is none of these. So where nothing else is stored
  nobody would hear of it, and the broker is asked once.
"""

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from quotahost.background import LoggedOnce, Periodic
from quotahost.broker.host.broker_status import Largest, explained, look, usage
from quotahost.broker.host.exemptions import broker_principals, node_id, own_client_id
from quotahost.broker.host.protocol import Shim
from quotahost.kafka.listeners import Listeners, translate
from quotahost.model import Client, Cluster
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.sections import revealed

log = logging.getLogger("quotahost.host")

#: The broker's own properties that plugins get.
_PLUGINS_GET: Final[tuple[str, ...]] = (
    "node.id", "broker.id", "process.roles", "log.dirs", "log.dir", "quota.window.num", "quota.window.size.seconds",
    "controller.quota.window.num", "controller.quota.window.size.seconds", "remote.log.storage.system.enable",
)  # fmt: skip


class HostBroker:
    """Asks the shim."""

    settings: Settings  # those in force
    principals: list[str]  # of the cluster's brokers (``exemptions.broker_principals``)

    def __init__(self, shim: Shim, settings: Settings) -> None:
        self._shim = shim
        self._given: dict[str, str] | None = None
        self.refresh(settings)
        self.registered, self.log_dirs = shim.registered, shim.log_dirs
        self.offline_log_dirs, self.replicas, self.load = shim.offline_log_dirs, shim.replicas, shim.load
        self.usage, self.look = partial(usage, shim.ask), partial(look, shim.ask)
        self.largest: Largest = lambda name: ()  # until the node turns out to have disks (``BudgetSizes.largest``)

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
        self._shim.connect(revealed(self.settings.kafka_admin) if alone else Listeners(given).client())

    def changed(self) -> bool:
        """Whether the broker's own properties have changed since the last ``refresh``: its keystores, that is."""
        return self._shim.broker() != self._given

    def properties(self) -> Mapping[str, str]:
        """Those of the broker's own properties that are no secrets; none of them changes while the broker runs."""
        return self._properties

    def explain(self, client: Client) -> list[str]:
        """See Broker: one line of JSON."""
        return [json.dumps(explained(self._shim.ask, client, self.largest))]

    def client_config(self) -> dict[str, str]:
        """See Broker. If ``kafka.*`` gives an address, nothing of the broker's own connection is used with it."""
        config = revealed(self.settings.kafka)
        if "bootstrap.servers" not in config:
            own, admin = Listeners(self._shim.broker()).client(), revealed(self.settings.kafka_admin)
            # Strimzi's names may bring credentials alone; the address is then this broker's own listener.
            address = {"bootstrap.servers": own["bootstrap.servers"]} if own else {}
            config = translate(address | (admin or own), self._shim.keystores) | config
        # Where nobody authenticates, the fence knows the plugins' client by our client.id alone.
        return config | {"client.id": own_client_id(node_id(self._properties))}


# ---- questions to the cluster ----------------------------------------------------------------------------------

EVERY: Final = 10.0  # seconds
#: Where Kafka keeps what was set while it ran (ConfigEntry.ConfigSource).
_STORED: Final = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")


class ClusterQuery:
    """Asks on a thread of its own, since an answer may take ten seconds; the host thread fetches what it hears."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._broker: int | None = None  # until it has said what is stored
        self._stored: tuple[str, ...] = ()  # names of properties, which are not handed on yet
        self._answer: Cluster | None = None  # the newest
        self._kafka_tells = False
        self._known: Cluster | None = None  # handed on last
        self._no_answer = LoggedOnce(log, logging.INFO)
        self._waited = False  # since the start

    # ---- the host thread ----

    def start(self, broker: int | None) -> Periodic:
        """A thread that asks, in a moment: this broker's own listener isn't open yet, and Kafka may tell.

        ``broker`` is None for a controller alone, which doesn't say what is stored.
        """
        self._broker = broker
        return Periodic("cluster", self._turn, lambda: EVERY)

    def kafka_tells(self) -> None:
        """Kafka itself has told which brokers are alive: from now on nobody else is asked, and no answer counts."""
        self._kafka_tells = True

    def hand_on(self, cluster: Callable[[Cluster], None], stored: Callable[[tuple[str, ...]], None]) -> None:
        """Hand on what the cluster has answered since the last call: its brokers, and names of stored properties."""
        if names := self._stored:  # the thread sets it once
            self._stored = ()
            stored(names)
        # An answer that Kafka's own news has overtaken may be older than they are.
        if (answer := self._answer) and answer != self._known and not self._kafka_tells:
            self._known = answer
            cluster(answer)

    # ---- its own thread ----

    def _turn(self) -> None:
        if self._waited:
            self.look()
        self._waited = True

    def look(self) -> None:
        if self._broker is not None:
            self._ask_stored(str(self._broker))
        if not self._kafka_tells:
            self._ask_brokers()

    def _ask_stored(self, broker: str) -> None:
        try:
            rows = self._shim.configs("BROKER", [broker])
        # Any exception: it may come from Java, and the thread must outlive it.
        except Exception as problem:
            if "AuthorizationException" in str(problem):  # each further try would be a line of the authorizer's
                self._broker = None
            return
        self._broker = None
        names = (row.name for row in rows if row.name.startswith(PREFIX) and row.source in _STORED)
        self._stored = tuple(sorted(names))

    def _ask_brokers(self) -> None:
        try:
            cluster_id, brokers = self._shim.cluster()
        except Exception as problem:
            self._no_answer.report("Kafka doesn't tell which brokers are alive, and can't be asked: %s", problem)
            return
        self._no_answer.healed()
        self._answer = Cluster(cluster_id, frozenset(broker for broker, fenced in brokers.items() if not fenced))
