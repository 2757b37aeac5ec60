"""The configured plugins of a broker: how they are built, and how a live change replaces them.

At the start all are built. At a live change a plugin stays if its own properties are the same, or if it has a method
``reconfigure``; the others are built anew, and the old ones closed once all new ones are in place. From here the
suppliers go to ``resolver``, the tasks to ``scheduler``, the factor source and the policy to ``factor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from quotahost.api import (
    Broker,
    DataSourceTask,
    Disks,
    Metrics,
    QuotaFactorSource,
    QuotaPolicy,
    QuotaSupplier,
    Role,
)
from quotahost.api.context import LoadedPlugin
from quotahost.discovery import build as discovery
from quotahost.discovery.entry_points import PluginError
from quotahost.host.exemptions import node_id
from quotahost.host.guard import Guard
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

#: The validated ``plugin.NAME.*`` of each plugin; None for one that declares none.
Sections: TypeAlias = Mapping[tuple[Role, str], Any]


class PluginSet:
    """The plugins of one Settings, in the order of the settings."""

    def __init__(self, plugins: Sequence[LoadedPlugin]) -> None:
        self._plugins = plugins

    def __iter__(self) -> Iterator[LoadedPlugin]:
        return iter(self._plugins)

    def suppliers(self) -> list[tuple[str, QuotaSupplier]]:
        """The suppliers by name, in the order in which they are asked."""
        return self._of(Role.SUPPLIER)

    def factor_source(self) -> tuple[str, QuotaFactorSource] | None:
        """The factor source by name, if one is configured."""
        return next(iter(self._of(Role.FACTOR_SOURCE)), None)

    def policy(self) -> tuple[str, QuotaPolicy] | None:
        """The policy by name, if one is configured."""
        return next(iter(self._of(Role.POLICY)), None)

    def tasks(self) -> list[tuple[str, DataSourceTask]]:
        """The tasks by name."""
        return self._of(Role.TASK)

    def _of(self, role: Role) -> list[tuple[str, Any]]:
        return [(each.context.name, each.plugin) for each in self._plugins if each.role is role]

    def find(self, role: Role, name: str) -> LoadedPlugin | None:
        """The plugin of this role and name."""
        return next((p for p in self._plugins if (p.role, p.context.name) == (role, name)), None)

    def without(self, others: PluginSet) -> list[LoadedPlugin]:
        """The plugins that are not among the others."""
        known = {id(each.plugin) for each in others}
        return [each for each in self._plugins if id(each.plugin) not in known]


class Builder:
    """Builds the plugins that settings name, for one broker."""

    def __init__(
        self,
        broker: Broker,
        metrics: Metrics,
        answers_changed: Callable[..., None],
        open_disks: Callable[[], Disks],
    ) -> None:
        """The arguments are what every plugin's context has."""
        self._broker, self._metrics = broker, metrics
        self._answers_changed, self._open_disks = answers_changed, open_disks
        self._node = node_id(broker.properties())
        roles = broker.properties().get("process.roles", "")
        # A controller alone keeps no records: it needs suppliers, and nothing that is about volumes.
        self._has_disks = not roles or "broker" in roles.split(",")

    def validate(self, settings: Settings) -> Sections:
        """Import every plugin that this node needs and validate its own properties.

        The standby source is among them, so that a mistake is found now and not when it is needed.

        Raises:
            PluginError, SettingsError: one can't be loaded or configured.
        """
        return {
            (role, name): _section(role, name, settings)
            for role, name in discovery.configured(settings)
            if role is Role.SUPPLIER or self._has_disks
        }

    def build(self, settings: Settings, sections: Sections, old: PluginSet | None = None) -> PluginSet:
        """Build every plugin of ``sections``, or keep that of ``old`` if its own properties are the same or can change.

        Nothing of ``old`` is touched.

        Raises:
            PluginError: one can't be constructed.
        """
        plugins = []
        for (role, name), section in sections.items():
            if role is Role.FACTOR_SOURCE and name != settings.factor_source:
                continue  # the standby: its factor source builds it when it is needed
            kept = old.find(role, name) if old else None
            if kept is None or not _can_stay(kept, settings):
                kept = self._new(role, name, settings, section)
            plugins.append(kept)
        return PluginSet(plugins)

    def _new(self, role: Role, name: str, settings: Settings, section: Any) -> LoadedPlugin:
        node, broker, disks = self._node, self._broker, self._open_disks
        made = discovery.build(
            role, name, settings, node, broker, self._metrics, self._answers_changed, disks, section
        )

        def standby(name: str, metrics: Metrics) -> LoadedPlugin:
            now = made.context.settings
            return discovery.build(Role.FACTOR_SOURCE, name, now, node, broker, metrics, open_disks=disks)

        made.context.factor_source = standby
        return made


def _section(role: Role, name: str, settings: Settings) -> Any:
    try:
        return discovery.plugin_settings(role, name, settings)
    except PluginError as error:
        if role is not Role.FACTOR_SOURCE or name == settings.factor_source:
            raise
        named = f"{PREFIX}factor.source.second names it: {error.failed}"
        raise PluginError(role, name, named) from error


def _own(plugin: LoadedPlugin, settings: Settings) -> dict[str, str]:
    """The text of the plugin's ``plugin.NAME.*`` in these settings."""
    return settings.plugin.get(plugin.context.name, {})


def _can_stay(plugin: LoadedPlugin, settings: Settings) -> bool:
    unchanged = _own(plugin, settings) == _own(plugin, plugin.context.settings)
    return unchanged or callable(getattr(plugin.plugin, "reconfigure", None))


def adopt(plugins: PluginSet, settings: Settings, sections: Sections, guard: Guard) -> None:
    """Give every plugin the settings in force, and call ``reconfigure`` where its own properties changed."""
    for each in plugins:
        name, before = each.context.name, _own(each, each.context.settings)
        each.context.settings = settings
        if _own(each, settings) != before:
            each.context.section = sections[each.role, name]
            change = partial(each.plugin.reconfigure, each.context.section)
            guard.call(name, "reconfigure()", "it goes on as it was", change)


def close(plugins: Sequence[LoadedPlugin], guard: Guard) -> None:
    """Close what can be closed. Tasks are left out: the scheduler closes them on their own threads."""
    for each in plugins:
        if each.role != Role.TASK and callable(getattr(each.plugin, "close", None)):
            guard.call(each.context.name, "close()", "it is dropped all the same", each.plugin.close)
