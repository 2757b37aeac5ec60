"""Asks the cluster for what Kafka doesn't tell by itself: which brokers are alive, and which names are stored.

Kafka's updateClusterMetadata is deprecated since 4.4 and goes with 5.0 (KAFKA-19566), and up to 4.2.1 and 4.3.1 it
isn't called while a broker that has replicas is down (KAFKA-20746). The exemptions of brokers, the supplier
``cluster-quota`` and other suppliers' ``cluster_changed()`` go by it. So if it has not been called soon after the
start, the cluster is asked instead, once a minute.

Kafka calls a callback when a property changes that the callback lists (DynamicBrokerConfig.needsReconfiguration), and a
misspelt name is none of these. So where nothing else is stored nobody would hear of it, and the broker is asked once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from quotahost.background import LoggedOnce, Periodic, start_daemon
from quotahost.broker.host.shim import Shim
from quotahost.model import Cluster
from quotahost.settings.declaration import PREFIX

log = logging.getLogger("quotahost.host")

FIRST: Final = 10.0  # seconds after the start
EVERY: Final = 60.0  # seconds
#: The right to ask may be missing: a broker that is told so five times will not hear otherwise.
TRIES: Final = 5
#: Where Kafka keeps what was set while it ran (ConfigEntry.ConfigSource).
_STORED: Final = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")


class ClusterLook:
    """Asks on a thread of its own, since an answer may take ten seconds; the host thread fetches what it hears."""

    def __init__(self, shim: Shim) -> None:
        """Ask nothing yet."""
        self._shim = shim
        self._broker: int | None = None
        self._lock = threading.Lock()
        self._kafka_tells = False
        self._tries = 0  # to hear what is stored
        self._no_answer = LoggedOnce(log, logging.INFO)
        self._failed = False  # the last question for the brokers
        self._known: Cluster | None = None  # handed on last
        self._cluster: Cluster | None = None  # not handed on yet
        self._stored: tuple[str, ...] = ()  # likewise
        self._thread: Periodic | None = None
        self._turns = 0

    # ---- the host thread ----

    def start(self, broker: int | None) -> None:
        """Begin to ask, after FIRST.

        Args:
            broker: this broker's id; None for a controller alone, whose own listener answers no such question.
        """
        self._broker, self._tries = broker, 0 if broker is None else TRIES
        self._thread = Periodic(
            "cluster",
            self._turn,
            lambda: FIRST if self._turns == 1 else EVERY,
            lambda name, run: start_daemon(name, run, self._shim.detach),
        )

    def close(self) -> None:
        """End the thread; one that waits for an answer is left to end by itself."""
        if self._thread:
            self._thread.close()

    def kafka_tells(self) -> None:
        """Kafka itself has told which brokers are alive: from now on nobody else is asked, and no answer counts."""
        with self._lock:
            self._kafka_tells, self._cluster = True, None

    def hand_on(self, cluster: Callable[[Cluster], None], stored: Callable[[tuple[str, ...]], None]) -> None:
        """Hand on what the cluster has answered since the last call: its brokers, and names of stored properties."""
        with self._lock:
            now, names = self._cluster, self._stored
            self._cluster, self._stored = None, ()
        if now:
            cluster(now)
        if names:
            stored(names)

    # ---- its own thread ----

    def _turn(self) -> None:
        if self._turns:  # the first is at the start itself
            self.look()
        self._turns += 1

    def look(self) -> None:
        """Ask once for all that is not known yet."""
        if self._tries:
            self._ask_stored(str(self._broker))
        if not self._kafka_tells:
            self._ask_brokers()

    def _ask_stored(self, broker: str) -> None:
        self._tries -= 1
        try:
            rows = self._shim.configs("BROKER", [broker])
        # Any exception: it may come from Java, and the thread must outlive it.
        except Exception as problem:
            if not self._tries:
                log.info("Kafka's stored properties can't be looked at for misspelt names: %s", problem)
            return
        self._tries = 0
        with self._lock:
            self._stored = tuple(sorted(row.name for row in rows if _is_ours(row.name, row.source)))

    def _ask_brokers(self) -> None:
        try:
            cluster_id, brokers = self._shim.cluster()
        except Exception as problem:
            # At a slow start this broker's own listener isn't open yet.
            if self._failed:
                self._no_answer.report("Kafka doesn't tell which brokers are alive, and can't be asked: %s", problem)
            self._failed = True
            return
        self._failed = False
        self._no_answer.healed()
        alive = Cluster(cluster_id, frozenset(broker for broker, fenced in brokers.items() if not fenced))
        with self._lock:
            # An answer that Kafka's own news has overtaken may be older than they are.
            if not self._kafka_tells and alive != self._known:
                self._known = self._cluster = alive


def _is_ours(name: str, source: str) -> bool:
    return name.startswith(PREFIX) and source in _STORED
