"""Hands Kafka's own news to the plugins that listen: client quotas, and the brokers of the cluster.

The news come from the inbox as events. Everything that still applies is kept here, so that a plugin which a live change
builds later learns it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.guard import Guard
from quotahost.model import ClientQuotaChange, Cluster, QuotaEntity, QuotaType


class Notifier:
    """Keeps the client quotas and the cluster as Kafka last reported them."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._client_quotas: dict[tuple[QuotaType, QuotaEntity], ClientQuotaChange] = {}
        self.cluster: Cluster | None = None

    def client_quota_changed(self, plugins: Iterable[LoadedPlugin], change: ClientQuotaChange) -> None:
        """Kafka has set or, without a rate, removed a client quota."""
        key = (change.quota_type, change.entity)
        if change.rate is None:
            self._client_quotas.pop(key, None)
        else:
            self._client_quotas[key] = change
        for plugin in plugins:
            self._hand(plugin, "client_quota_changed", change)

    def cluster_changed(self, plugins: Iterable[LoadedPlugin], cluster: Cluster) -> None:
        """The brokers of the cluster may have changed."""
        self.cluster = cluster
        for plugin in plugins:
            self._hand(plugin, "cluster_changed", cluster)

    def introduce(self, plugins: Iterable[LoadedPlugin]) -> None:
        """Hand everything that applies to new plugins."""
        for plugin in plugins:
            for change in self._client_quotas.values():
                self._hand(plugin, "client_quota_changed", change)
            if self.cluster is not None:
                self._hand(plugin, "cluster_changed", self.cluster)

    def _hand(self, plugin: LoadedPlugin, listener: str, news: object) -> None:
        listen = getattr(plugin.plugin, listener, None)
        if callable(listen):
            self._guard.call(plugin.context.name, f"{listener}()", "it misses a change", partial(listen, news))
