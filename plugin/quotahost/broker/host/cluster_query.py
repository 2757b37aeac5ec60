"""``ClusterQuery`` asks the cluster what Kafka doesn't report: live brokers, and the stored names of our properties.

- *Which brokers are alive.* Kafka's updateClusterMetadata is deprecated since 4.4 and will be removed in 5.0
  (KAFKA-19566). Up to 4.2.1 and 4.3.1 Kafka doesn't call it while a broker that has replicas is down (KAFKA-20746). The
  exemptions of brokers, the supplier ``cluster-quota`` and other suppliers' ``cluster_changed()`` need it. So if Kafka
  hasn't called it soon after the start, this class asks the cluster every ten seconds.
- *Which names are stored.* Kafka calls the callback only if a property changes that the callback lists
  (DynamicBrokerConfig.needsReconfiguration), and the callback doesn't list a misspelt name. If only such names are
  stored, the host would never see them. So this class asks the broker once.
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
#: The sources of properties that were set while the broker ran (ConfigEntry.ConfigSource).
_STORED: Final = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")


class ClusterQuery:
    """Asks on its own thread, because an answer may take ten seconds; the host thread fetches the answers."""

    def __init__(self, shim: Shim, broker: int | None) -> None:
        """``broker`` is this broker's id, or None for a controller that is no broker: it can't tell what is stored."""
        self._shim = shim
        self._broker = broker  # None once the broker has answered, or refused, which properties are stored
        self._stored: tuple[str, ...] = ()  # stored names that hand_on() has not passed on yet
        self._answer: Cluster | None = None  # the latest answer, if hand_on() has not passed it on yet
        self._kafka_tells = False
        self._no_answer = LoggedOnce(log, logging.INFO)
        self._waited = False  # whether one period has passed since the start

    # ---- the host thread ----

    def start(self) -> Periodic:
        """Start the thread. It waits one period first, for the broker's listener to open, and for Kafka to report."""
        return Periodic("cluster", self._turn, lambda: EVERY)

    def kafka_tells(self) -> None:
        """Kafka itself has told which brokers are alive: stop asking the cluster, and ignore an answer that comes."""
        self._kafka_tells = True

    def hand_on(self, cluster: Callable[[Cluster], None], stored: Callable[[tuple[str, ...]], None]) -> None:
        """Call ``cluster`` and ``stored`` with the answers since the last call: live brokers, and stored names."""
        if names := self._stored:  # the thread sets it once
            self._stored = ()
            stored(names)
        # If Kafka itself has told its brokers meanwhile, the answer may be older.
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
        # Any exception, because it may come from Java, and the thread must not end.
        except Exception as problem:
            if "AuthorizationException" not in str(problem):  # don't retry: each try would be an authorizer's log line
                return
        self._broker = None
        self._stored = tuple(sorted(r.name for r in rows if r.name.startswith(PREFIX) and r.source in _STORED))

    def _ask_brokers(self) -> None:
        with self._no_answer.caught("Kafka has not reported the live brokers, and asking it failed: %s", str):
            cluster_id, brokers = self._shim.cluster()
            self._answer = Cluster(cluster_id, frozenset(broker for broker, fenced in brokers.items() if not fenced))
