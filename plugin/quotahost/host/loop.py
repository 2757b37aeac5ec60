"""The host: inbox to suppliers to table; factor source to policy to table; tasks on their periods."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from quotahost.api.context import LoadedPlugin
from quotahost.discovery import build as discovery
from quotahost.discovery.entry_points import PluginError
from quotahost.disks.monitor import DiskMonitor
from quotahost.host.broker import HostBroker
from quotahost.host.exemptions import Exemptions, node_id
from quotahost.host.exporter import exporter
from quotahost.host.factor import FactorLoop, MissingFenceWarning
from quotahost.host.guard import Guard
from quotahost.host.messages import Batch, Event, client_quota, cluster, properties
from quotahost.host.plugins import Builder, PluginSet, adopt, close
from quotahost.host.resolver import ChangedAnswers, Resolver, asks, failures
from quotahost.host.scheduler import Scheduler
from quotahost.host.shim import Shim
from quotahost.model import ClientQuotaChange, Cluster, QuotaEntity, QuotaType
from quotahost.settings.broker import Settings, live_properties, read_properties
from quotahost.settings.declaration import SettingsError
from quotahost.settings.strimzi.translation import Note, Translation

log = logging.getLogger("quotahost.host")

TAKE: Final = 0.1  # seconds: how soon answers_changed from a plugin's own thread is seen
TICK: Final = 1.0  # seconds between calls of a supplier's tick()
RETRY: Final = 5.0  # seconds between questions for clients whose supplier failed


class Host:
    """One life of the Python host, on the shim's host thread."""

    def __init__(self, shim: Shim, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._clock = shim, clock
        self._guard = Guard(shim)
        self._changes = ChangedAnswers()
        self._tasks = Scheduler(self._guard, shim.detach)
        self._factor = FactorLoop(shim, self._guard, clock)
        self._fence = MissingFenceWarning(shim, clock)
        self._client_quotas: dict[tuple[QuotaType, QuotaEntity], ClientQuotaChange] = {}
        self._cluster: Cluster | None = None
        self._retry_at: float | None = None
        self._tick_at = clock()
        self._broker = shim.broker()
        self._noted: set[Note] = set()

    def run(self) -> None:
        """Start the plugins, tell the shim, and serve until it closes."""
        try:
            settings, translation = read_properties(self._shim.properties())
            self._note(translation)
            self._shim.starting(settings.start_timeout.total_seconds())
            self._host_broker = HostBroker(self._shim, settings)
            self._disks = DiskMonitor(
                self._host_broker,
                self._shim,
                node_id(self._broker),
                lambda: self._host_broker.settings,
                self._clock,
            )
            self._builder = Builder(self._host_broker, self._shim, self._changes.add, self._disks.started)
            new = self._builder.build(settings)
            self._exporter = exporter(settings, self._shim.gauges, self._shim.detach)
        except (SettingsError, PluginError) as problem:
            self._shim.refuse(str(problem))
            return
        self._install(settings, new, None)
        gc.collect()
        gc.freeze()  # what was imported stays: no full collection needs to look at it again
        self._shim.ready(live_properties(settings, discovery.models(settings)))
        log.info("quotahost serves with suppliers %s", ", ".join(name for name, _ in new.suppliers()))
        try:
            self._serve()
        finally:
            self._close()

    # ---- the loop ----

    def _serve(self) -> None:
        while not self._shim.closing():
            batch = self._shim.take(TAKE)
            for event in batch.events:
                self._event(event)
            self._tick()
            self._ask_again()
            self._resolve(batch)
            self._factor.step(self._plugins, self._settings)
            self._fence.step(self._plugins.factor_source() is not None, self._settings)

    def _resolve(self, batch: Batch) -> None:
        if not batch.clients:
            return
        answers = self._resolver.answers(batch.clients)
        self._shim.publish(batch, answers)
        if failures(answers) and self._retry_at is None:
            self._retry_at = self._clock() + RETRY

    def _tick(self) -> None:
        now = self._clock()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK
        for name, supplier in self._plugins.suppliers():
            if callable(tick := getattr(supplier, "tick", None)):
                self._guard.call(name, "tick()", "its answers stay as they were", tick)

    def _ask_again(self) -> None:
        for principal, client_id in self._changes.take():
            self._resolve(self._shim.known(principal, client_id))
        if self._retry_at is not None and self._clock() >= self._retry_at:
            self._retry_at = None
            self._resolve(self._shim.unresolved())
            if self._retry_at is None:
                for name, _ in self._plugins.suppliers():
                    self._guard.heal(name, "quota()")

    # ---- events ----

    def _event(self, event: Event) -> None:
        handlers: dict[str, Callable[[tuple[str, ...]], None]] = {
            "client-quota": self._on_client_quota,
            "cluster": self._on_cluster,
            "validate": self._on_validate,
            "reconfigure": self._on_reconfigure,
        }
        if handler := handlers.get(event.kind):  # "closing" only wakes the loop
            handler(event.fields)

    def _on_client_quota(self, fields: tuple[str, ...]) -> None:
        change = client_quota(fields)
        key = (change.quota_type, change.entity)
        if change.rate is None:
            self._client_quotas.pop(key, None)
        else:
            self._client_quotas[key] = change
        self._tell(list(self._plugins), [change], None)

    def _on_cluster(self, fields: tuple[str, ...]) -> None:
        self._cluster = cluster(fields)
        if self._exemptions.know(self._cluster):
            self._exempt()
            self._changes.add()
        self._tell(list(self._plugins), [], self._cluster)

    def _tell(
        self, plugins: list[LoadedPlugin], changes: list[ClientQuotaChange], now: Cluster | None
    ) -> None:
        for plugin in plugins:
            for change in changes:
                self._hand(plugin, "client_quota_changed", change)
            if now is not None:
                self._hand(plugin, "cluster_changed", now)

    def _hand(self, plugin: LoadedPlugin, listener: str, news: object) -> None:
        listen = getattr(plugin.plugin, listener, None)
        if callable(listen):
            self._guard.call(
                plugin.context.name, f"{listener}()", "it misses a change", partial(listen, news)
            )

    # ---- settings ----

    def _on_validate(self, fields: tuple[str, ...]) -> None:
        ticket, given = properties(fields)
        problem = None
        try:
            settings = Settings.from_properties(given)
            for role, name in discovery.configured(settings):
                discovery.plugin_settings(role, name, settings)
        except (SettingsError, PluginError) as error:
            problem = str(error)
        self._shim.verdict(ticket, problem)

    def _on_reconfigure(self, fields: tuple[str, ...]) -> None:
        _, given = properties(fields)
        try:
            settings, translation = read_properties(given)
            new = self._builder.build(settings, self._plugins)
        except (SettingsError, PluginError) as error:
            log.error("the new properties are refused and the old ones stay: %s", error)
            return
        self._install(settings, new, self._plugins)
        self._note(translation)
        log.info("reconfigured")

    def _note(self, translation: Translation) -> None:
        """Say what Strimzi's own properties mean here, each sentence once."""
        for note in translation.notes:
            if note not in self._noted:
                self._noted.add(note)
                log.log(logging.WARNING if note.warns else logging.INFO, "%s", note.text)

    def _install(self, settings: Settings, new: PluginSet, old: PluginSet | None) -> None:
        adopt(new, settings, self._guard)
        fresh = new.without(old)
        for plugin in fresh:
            self._shim.plugin(plugin.context.name)
        self._tell(fresh, list(self._client_quotas.values()), self._cluster)
        self._exemptions = Exemptions(settings, self._broker)
        if self._cluster:
            self._exemptions.know(self._cluster)
        self._exempt()
        self._settings, self._plugins = settings, new
        self._host_broker.settings = settings
        self._factor.forget()
        self._resolver = Resolver(
            asks(new.suppliers()), self._exemptions, self._guard, settings.supplier_combine
        )
        self._shim.configure(settings)
        self._tasks.set(new.tasks())
        if old:
            close(old.without(new), self._guard)
        self._changes.add()

    def _exempt(self) -> None:
        exempt = self._exemptions
        self._shim.exempt(sorted(exempt.principals), sorted(exempt.client_ids), exempt.brokers_anonymous)

    def _close(self) -> None:
        self._tasks.close()
        close(list(self._plugins), self._guard)
        self._disks.close()
        if self._exporter:
            self._exporter.close()
