"""The configured plugins, built: who is asked, in which order, and how a live change replaces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from quotahost.api import Broker, Context, DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier, Role
from quotahost.api.context import LoadedPlugin
from quotahost.discovery import build as discovery
from quotahost.discovery.entry_points import PluginError
from quotahost.host.exemptions import node_id
from quotahost.host.guard import Guard
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX


@dataclass(slots=True)
class Member:
    """One built plugin with its role, name, context and the text of its own properties."""

    role: Role
    name: str
    plugin: Any
    context: Context
    own: dict[str, str]


class Lineup:
    """All plugins of one Settings; made by :func:`build`, changed by :meth:`replaced`."""

    def __init__(self, members: list[Member]) -> None:
        """In the order of the settings."""
        self._members = members

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def suppliers(self) -> list[tuple[str, QuotaSupplier]]:
        """The suppliers by name, in the order in which they are asked."""
        return [(m.name, m.plugin) for m in self._members if m.role == Role.SUPPLIER]

    def factor_source(self) -> tuple[str, QuotaFactorSource] | None:
        """The factor source, if one is configured."""
        return next(((m.name, m.plugin) for m in self._members if m.role == Role.FACTOR_SOURCE), None)

    def policy(self) -> tuple[str, QuotaPolicy] | None:
        """The policy, if one is configured."""
        return next(((m.name, m.plugin) for m in self._members if m.role == Role.POLICY), None)

    def tasks(self) -> list[tuple[str, DataSourceTask]]:
        """The tasks by name."""
        return [(m.name, m.plugin) for m in self._members if m.role == Role.TASK]

    def find(self, role: Role, name: str) -> Member | None:
        """The member of this role and name."""
        return next((m for m in self._members if (m.role, m.name) == (role, name)), None)


def build(
    settings: Settings,
    broker: Broker,
    answers_changed: Callable[..., None],
    old: Lineup | None = None,
) -> Lineup:
    """Every configured plugin; those of ``old`` stay whose own properties are the same or can be changed.

    Nothing of ``old`` is touched before all new ones stand.

    Raises:
        PluginError, SettingsError: one can't be loaded, configured or constructed.
    """
    members = []
    for role, name in discovery.configured(settings):
        if role != Role.SUPPLIER and not has_disks(broker):
            continue
        if role == Role.FACTOR_SOURCE and name != settings.factor_source:
            _check_second(name, settings)
            continue
        kept = old.find(role, name) if old else None
        if kept is None or not _can_stay(kept, settings):
            kept = _new(role, name, settings, broker, answers_changed)
        else:
            discovery.plugin_settings(role, name, settings)  # refused before anything is touched
        members.append(kept)
    return Lineup(members)


def _check_second(name: str, settings: Settings) -> None:
    """It is built while it is needed; that it can be had is known at the start."""
    try:
        discovery.plugin_settings(Role.FACTOR_SOURCE, name, settings)
    except PluginError as error:
        named = f"{PREFIX}factor.source.second names it: {str(error).partition(': ')[2]}"
        raise PluginError(Role.FACTOR_SOURCE, name, named) from error


def has_disks(broker: Broker) -> bool:
    """Whether this node keeps records: a controller alone needs suppliers, and nothing about volumes."""
    roles = broker.properties().get("process.roles", "")
    return not roles or "broker" in roles.split(",")


def adopt(lineup: Lineup, settings: Settings, guard: Guard) -> None:
    """Give every member the settings in force; those whose own properties changed are reconfigured."""
    for member in lineup:
        member.context.settings = settings
        own = settings.plugin.get(member.name, {})
        if own == member.own:
            continue
        member.own = own
        member.context.section = discovery.plugin_settings(member.role, member.name, settings)
        change = partial(member.plugin.reconfigure, member.context.section)
        guard.call(member.name, "reconfigure()", "it goes on as it was", change)


def close(members: list[Member], guard: Guard) -> None:
    """Close what can be closed, tasks apart, which close on their own threads."""
    for member in members:
        if member.role != Role.TASK and callable(getattr(member.plugin, "close", None)):
            guard.call(member.name, "close()", "it is dropped all the same", member.plugin.close)


def gone(old: Lineup, new: Lineup) -> list[Member]:
    """Members of ``old`` that ``new`` doesn't have."""
    staying = {id(member.plugin) for member in new}
    return [member for member in old if id(member.plugin) not in staying]


def _can_stay(member: Member, settings: Settings) -> bool:
    unchanged = settings.plugin.get(member.name, {}) == member.own
    return unchanged or callable(getattr(member.plugin, "reconfigure", None))


def _new(
    role: Role, name: str, settings: Settings, broker: Broker, answers_changed: Callable[..., None]
) -> Member:
    node = node_id(broker.properties())
    built = discovery.build(role, name, settings, node, answers_changed, broker)

    def another(name: str, broker: Broker) -> LoadedPlugin:
        return discovery.build(Role.FACTOR_SOURCE, name, built.context.settings, node, broker=broker)

    built.context.factor_source = another
    return Member(role, name, built.plugin, built.context, settings.plugin.get(name, {}))
