"""The four roles that a plugin can take, as Protocols, and the contract they live under.

Lifecycle, the same for every role:

 1. The entry point (groups ``quotahost.suppliers``, ``.factor_sources``, ``.policies``, ``.tasks``)
    is imported only if its name is configured, once, at broker start, on the host thread. A
    configured plugin that fails to import, construct or start stops the broker with one clear
    error. A plugin that is not configured is never imported and can break nothing.
 2. It is called with one argument, a :class:`Context`, and returns the plugin: a class whose
    ``__init__`` takes the context, or a factory function. No I/O that may block belongs here.
    ``context.settings`` is the validated pydantic model named by the ``Settings`` attribute of
    the entry point (class or function), filled from ``plugin.NAME.*``; None if it has none.
 3. Suppliers, the factor source and the policy are called on one thread, the host thread, one
    after the other: they need no locks. They must answer from memory: what waits belongs in a
    task or in a thread of the plugin's own. While one of them hangs, new clients share the newcomers'
    quota, and after ``validity`` the shim applies ``fallback.action``; requests never wait.
 4. Each task has a thread of its own; ``run`` is called at once, then every ``period``, never
    twice at a time.
 5. An exception is counted by plugin, logged (once for each kind until it heals) and ends in the
    stated fallback: a supplier's client keeps its last quota or stays a newcomer and is asked for
    again; a factor source's last factor holds for ``validity``, then ``fallback.action``; a task runs
    again at its next period. ``SystemExit`` and ``KeyboardInterrupt`` are treated the same.
 6. A wrong answer (a rate that is not finite and above 0, a factor outside 0..1, another type) is an
    exception of that plugin.
 7. ``close()``, where there is one, is called once, on the host thread (a task's on its own thread),
    within the 5 s that the broker's shutdown grants in all; nothing is called after it. A plugin ends the
    threads that it started.
 8. Live changes of a plugin's own ``plugin.NAME.*`` properties arrive in ``reconfigure(settings)``,
    validated, on the host thread; ``context.settings`` is the new one by then. A plugin without it is closed
    and built anew instead. Live changes of other properties are seen in ``context.host``. After either all
    known clients are asked for again.
 9. Any thread may log through ``context.log`` and call ``context.answers_changed``; neither waits.
10. A supplier's answer is kept until the supplier says by ``answers_changed`` that it would be another.
    One whose answers depend on the time has a method ``tick()``, called about once a second on the host
    thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from quotahost.broker import Broker, NoBroker
from quotahost.model import (
    Client,
    ClientQuotaChange,
    Cluster,
    ClusterVolumes,
    Factor,
    Quota,
    QuotaType,
    Volume,
)


def _nothing_changed(principal: str | None = None, client_id: str | None = None) -> None:
    """Default for a context made without a host."""


class Built(Protocol):
    """A plugin and the context that it was given."""

    @property
    def plugin(self) -> Any:
        """The plugin."""
        ...

    @property
    def context(self) -> Context:
        """Its context."""
        ...


def _no_source(name: str, broker: Broker) -> Built:
    """Default for a context made without a host."""
    raise LookupError(f"there is no factor source {name!r} here")


@dataclass(slots=True)
class Context:
    """What a plugin is given when it is built. Plugins only read it.

    Attributes:
        name: its entry point name.
        settings: its validated ``plugin.NAME.*``, or None if it declares no ``Settings``.
        host: the broker-wide ``quotahost.settings.Settings`` in force (typed Any to keep this module a
            leaf). Replaced when they change live: read it when it is needed, keep no part of it.
        node_id: ``node.id`` of this broker.
        log: a logger that ends in the broker's own log.
        broker: what a plugin may ask of the broker that it lives in, and show there.
        answers_changed: a supplier calls it, from any thread, when quotas that it gave are no
            longer what it would answer: for one principal, one client-id, both, or (no argument) all. The
            host asks again for those clients and publishes what differs.
        factor_source: builds the factor source of that entry point name, with its own ``plugin.NAME.*`` and
            that broker to ask and to show on. It runs on the calling thread, may take its time and raises what is
            wrong. For a factor source that leans on another (``factor.source.second``).
    """

    name: str
    settings: Any
    host: Any
    node_id: int
    log: logging.Logger
    answers_changed: Callable[..., None] = _nothing_changed
    broker: Broker = field(default_factory=NoBroker)
    factor_source: Callable[[str, Broker], Built] = _no_source

    def start_thread(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run it on a daemon thread of the plugin's own, which may ask the broker; an error ends it, logged."""

        def body() -> None:
            try:
                run()
            except BaseException:
                self.log.exception("thread %s of plugin %s ended", name, self.name)
            finally:
                self.broker.thread_ends()

        thread = threading.Thread(target=body, name=f"quotahost-{name}", daemon=True)
        thread.start()
        return thread


@runtime_checkable
class QuotaSupplier(Protocol):
    """Who gets what: a client's stable quota (proposal 035, QuotaSupplier)."""

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of this client, or None: the next supplier in the list is asked.

        Whether all are asked, and the smallest rate counts, is for ``supplier.combine`` to say.

        Called once for each quota type when a client is first seen, and again after
        ``answers_changed``. If no supplier has an answer the client is unlimited.
        """
        ...


@runtime_checkable
class ClientQuotaListener(Protocol):
    """A supplier that also wants Kafka's own client quotas, stored ones included."""

    def client_quota_changed(self, change: ClientQuotaChange) -> None:
        """A client quota was set or removed (kafka-configs.sh, Admin API). Stored ones come first."""
        ...


@runtime_checkable
class ClusterListener(Protocol):
    """A supplier that also wants to know the brokers of the cluster."""

    def cluster_changed(self, cluster: Cluster) -> None:
        """The set of alive brokers may have changed."""
        ...


@runtime_checkable
class Ticking(Protocol):
    """A supplier whose answers also change with the time."""

    def tick(self) -> None:
        """Call ``answers_changed`` if the time has changed an answer; about once a second, host thread."""
        ...


@runtime_checkable
class QuotaFactorSource(Protocol):
    """How much of the quotas is left right now (proposal 035, QuotaFactorSource)."""

    def read(self) -> ClusterVolumes | Factor | None:
        """Volumes (the policy makes the factor of them), or a Factor where there are no volumes.

        Called every ``factor.interval``. None: not known yet; the fallback holds after ``startup.grace``.
        """
        ...


@runtime_checkable
class QuotaPolicy(Protocol):
    """How full is too full (proposal 035, QuotaPolicy); the smallest factor of all volumes holds."""

    def quota_factor(self, volume: Volume) -> float:
        """The share of the quota left, 0.0 (hard limit breached) to 1.0 (below the soft limit).

        Asked for every volume when the source's volumes have changed; at every read if the policy has an
        attribute ``depends_on_time`` that is true.
        """
        ...


@runtime_checkable
class DataSourceTask(Protocol):
    """Periodic work, such as publishing this broker's volumes (proposal 035, DataSourceTask)."""

    period: timedelta

    def run(self) -> None:
        """Do the work once. May block; should end within the period."""
        ...
