"""Builds the plugins that the settings name: at the start, and those that a live change adds or replaces.

``discovery`` finds, imports and constructs one plugin; here each gets its context. The result is a
``plugins.PluginSet``, which the loop puts to work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from quotahost.api import Broker, Context, Disks, Metrics, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.discovery import build as discovery
from quotahost.broker.host.exemptions import node_id
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.plugins.plugin_set import PluginSet, Sections, can_stay, close
from quotahost.broker.host.roles import NodeRoles
from quotahost.settings.broker import Settings, live_properties


class Builder:
    """Builds the plugins that settings name, for one broker."""

    def __init__(
        self,
        broker: Broker,
        metrics: Metrics,
        answers_changed: Callable[..., None],
        open_disks: Callable[[], Disks],
        guard: Guard,
    ) -> None:
        """All but the guard are what every plugin's context has; the guard closes what was built in vain."""
        self._broker, self._metrics = broker, metrics
        self._answers_changed, self._open_disks = answers_changed, open_disks
        self._guard = guard
        self._node = node_id(broker.properties())
        self._roles = NodeRoles(broker.properties())

    def validate(self, settings: Settings) -> Sections:
        """Import every plugin that this node needs and validate its own properties.

        Raises:
            PluginError, SettingsError: one can't be loaded or configured.
        """
        return {
            (role, name): discovery.plugin_settings(role, name, settings)
            for role, name in discovery.configured(settings)
            if self._roles.needs(role, settings)
        }

    def live(self, settings: Settings, sections: Sections) -> list[str]:
        """The properties whose change takes effect without a restart, those of the plugins of ``sections`` included.

        Raises:
            PluginError: one of the plugins can't be loaded.
        """
        return live_properties(settings, discovery.models(sections))

    def build(self, settings: Settings, sections: Sections, old: PluginSet) -> PluginSet:
        """Build every plugin of ``sections``, or keep that of ``old`` if it can stay. Nothing of ``old`` is touched.

        Raises:
            PluginError: one can't be constructed. Those that were built before it are closed.
        """
        plugins: list[LoadedPlugin] = []
        try:
            self._build(plugins, settings, sections, old)
        except BaseException:
            # Nobody else would end the threads that these have started. Plugins of `old` stay as they are.
            close(reversed(PluginSet(plugins).without(old)), self._guard, tasks=True)
            raise
        return PluginSet(plugins)

    def _build(self, plugins: list[LoadedPlugin], settings: Settings, sections: Sections, old: PluginSet) -> None:
        for (role, name), section in sections.items():
            kept = old.find(role, name)
            if kept is None or not can_stay(kept, settings):
                kept = self._construct(role, name, settings, section)
            plugins.append(kept)

    def _construct(self, role: Role, name: str, settings: Settings, section: Any) -> LoadedPlugin:
        context = Context(
            name, section, settings, self._node, logging.getLogger(f"quotahost.plugin.{name}"),
            self._answers_changed, open_disks=self._open_disks, broker=self._broker, metrics=self._metrics,
        )  # fmt: skip
        return discovery.construct(role, discovery.load(role, name), context)
