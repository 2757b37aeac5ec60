"""Asks the cluster what Kafka doesn't tell the host: which brokers are alive, and which of our properties are stored.

- *Which brokers are alive.* Kafka's updateClusterMetadata is deprecated since 4.4 and goes with 5.0 (KAFKA-19566), and
  up to 4.2.1 and 4.3.1 it isn't called while a broker that has replicas is down (KAFKA-20746). The exemptions of
  brokers, the supplier ``cluster-quota`` and other suppliers' ``cluster_changed()`` go by it. So if it has not been
  called soon after the start, the cluster is asked instead, every ten seconds.
- *Which names are stored.* Kafka calls a callback when a property changes that the callback lists
  (DynamicBrokerConfig.needsReconfiguration), and a misspelt name is none of these. So where nothing else is stored
  nobody would hear of it, and the broker is asked once.
"""

import logging
from collections.abc import Callable
from typing import Final

from quotahost.base.background import LoggedOnce, Periodic
from quotahost.broker.host.messages import ConfigRow
from quotahost.broker.host.protocol import Shim
from quotahost.model import Cluster
from quotahost.settings.declaration import PREFIX

log = logging.getLogger("quotahost.host")

EVERY: Final = 10.0  # seconds
#: Where Kafka keeps what was set while it ran (ConfigEntry.ConfigSource).
_STORED: Final = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")


class ClusterQuery:
    """Asks on a thread of its own, since an answer may take ten seconds; the host thread fetches what it hears."""

    def __init__(self, shim: Shim, broker: int | None) -> None:
        """``broker`` is None for a controller alone, which doesn't say what is stored."""
        self._shim = shim
        self._broker = broker  # until it has said what is stored
        self._stored: tuple[str, ...] = ()  # names of properties, which are not handed on yet
        self._answer: Cluster | None = None  # the newest, which is not handed on yet
        self._kafka_tells = False
        self._no_answer = LoggedOnce(log, logging.INFO)
        self._waited = False  # since the start

    # ---- the host thread ----

    def start(self) -> Periodic:
        """A thread that asks, in a moment: this broker's own listener isn't open yet, and Kafka may tell."""
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
        answer, self._answer = self._answer, None
        if answer and not self._kafka_tells:
            cluster(answer)

    # ---- its own thread ----

    def _turn(self) -> None:
        if self._waited:
            self.look()
        self._waited = True

    def look(self) -> None:
        if self._broker is not None:
            self._ask_stored()
        if not self._kafka_tells:
            self._ask_brokers()

    def _ask_stored(self) -> None:
        rows: list[ConfigRow] = []
        try:
            rows = self._shim.configs("BROKER", [str(self._broker)])
        # Any exception: it may come from Java, and the thread must outlive it.
        except Exception as problem:
            if "AuthorizationException" not in str(problem):  # each further try would be a line of the authorizer's
                return
        self._broker = None
        self._stored = tuple(sorted(r.name for r in rows if r.name.startswith(PREFIX) and r.source in _STORED))

    def _ask_brokers(self) -> None:
        try:
            cluster_id, brokers = self._shim.cluster()
        except Exception as problem:
            self._no_answer.report("Kafka doesn't tell which brokers are alive, and can't be asked: %s", problem)
            return
        self._no_answer.healed()
        self._answer = Cluster(cluster_id, frozenset(broker for broker, fenced in brokers.items() if not fenced))
