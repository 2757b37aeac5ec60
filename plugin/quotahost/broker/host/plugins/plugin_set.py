"""The configured plugins of a broker by their roles, and how a live change replaces them.

At a live change a plugin stays if its own properties are the same, or if it has a method ``reconfigure``. The others
are built anew (``builder``), and the old ones closed once all new ones are in place. From here the suppliers go to
``resolver``, the tasks to ``scheduler``, the factor source and the policy to ``factor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from quotahost.api import DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.guard import Guard
from quotahost.settings.broker import Settings

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
        # By identity, because a plugin's class may define an equality of its own.
        known = {id(each.plugin) for each in others}
        return [each for each in self._plugins if id(each.plugin) not in known]


def _own(plugin: LoadedPlugin, settings: Settings) -> dict[str, str]:
    """The text of the plugin's ``plugin.NAME.*`` in these settings."""
    return settings.plugin.get(plugin.context.name, {})


def can_stay(plugin: LoadedPlugin, settings: Settings) -> bool:
    """Whether the plugin can go on under these settings: as it is, or by its ``reconfigure``."""
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


def close(plugins: Iterable[LoadedPlugin], guard: Guard, *, tasks: bool = False) -> None:
    """Close what can be closed. Tasks only if they never ran: the scheduler closes the others on their own threads."""
    for each in plugins:
        if (tasks or each.role != Role.TASK) and callable(getattr(each.plugin, "close", None)):
            guard.call(each.context.name, "close()", "it is dropped all the same", each.plugin.close)
