"""Finding plugins by their entry points and building them; a broken one harms no other.

``plugin.NAME.*`` goes to every configured plugin named NAME: a factor source and a task of the same
name see the same properties, so they share one ``Settings`` model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from quotahost.api import Broker, Context, Disks, Metrics, Role
from quotahost.api.context import LoadedPlugin, no_disks, nobody_asks
from quotahost.discovery.entry_points import (
    Found,
    PluginError,
    checked,
    entry_point,
    failing,
    origin,
    settings_model,
    survey,
)
from quotahost.settings.broker import Settings
from quotahost.settings.plugin_section import read_section
from quotahost.settings.reader import configured_names
from quotahost.settings.secrets import is_secret, secret_values

__all__ = [
    "Found",
    "PluginError",
    "build",
    "configured",
    "construct",
    "load",
    "models",
    "own_settings",
    "plugin_settings",
    "settings_model",
    "survey",
]


def configured(settings: Settings) -> list[tuple[Role, str]]:
    """Role and name of every plugin that these settings name, in the order in which a host builds them.

    The second factor source is among them, which is built only while it is needed.
    """
    names = configured_names(settings)
    return [(role, name) for role in Role for name in names[role.broker_property]]


def load(role: Role, name: str) -> Any:
    """Import the entry point of this role and name, and no other.

    Raises:
        PluginError: there is none, more than one distribution offers it, or it fails to import.
    """
    entry = entry_point(role, name)
    with failing(role, name, f"{origin(entry)} fails to import"):
        return entry.load()


def plugin_settings(role: Role, name: str, settings: Settings) -> Any:
    """The plugin's own settings from ``plugin.NAME.*``, validated; None if it declares none.

    Raises:
        PluginError: the plugin can't be loaded, or its ``Settings`` is no model.
        SettingsError: a property is unknown or wrong.
    """
    return own_settings(role, name, settings, load(role, name))


def build(
    role: Role,
    name: str,
    settings: Settings,
    node_id: int,
    broker: Broker,
    metrics: Metrics,
    answers_changed: Callable[..., None] = nobody_asks,
    open_disks: Callable[[], Disks] = no_disks,
    section: Any = None,
) -> LoadedPlugin:
    """Load the plugin, validate its own settings, construct it and check that it can take the role.

    ``section`` is what :func:`plugin_settings` returned, where the caller has validated the settings already.

    Raises:
        PluginError: it can't be loaded or constructed, or lacks a method of its role.
        SettingsError: one of ``plugin.NAME.*`` is unknown or wrong.
    """
    entry = load(role, name)
    return construct(
        role, name, entry, settings, node_id, broker, metrics, answers_changed, open_disks, section
    )


def construct(
    role: Role,
    name: str,
    entry: Any,
    settings: Settings,
    node_id: int,
    broker: Broker,
    metrics: Metrics,
    answers_changed: Callable[..., None] = nobody_asks,
    open_disks: Callable[[], Disks] = no_disks,
    section: Any = None,
) -> LoadedPlugin:
    """As :func:`build`, for an entry (class or function) that is loaded already.

    Raises:
        PluginError, SettingsError: see build.
    """
    own = own_settings(role, name, settings, entry) if section is None else section
    log = logging.getLogger(f"quotahost.plugin.{name}")
    with failing(role, name, "cannot be built", _secrets(name, settings, entry)):
        context = Context(
            name,
            own,
            settings,
            node_id,
            log,
            answers_changed,
            open_disks=open_disks,
            broker=broker,
            metrics=metrics,
        )
        plugin = entry(context)
    with failing(role, name, "is not fit for its role"):
        return LoadedPlugin(role, checked(role, plugin), context)


def models(settings: Settings) -> dict[str, type[BaseModel] | None]:
    """The settings model of every configured plugin, by name, for ``describe`` and ``live_properties``.

    Raises:
        PluginError: one of them can't be loaded.
    """
    found = {}
    for role, name in configured(settings):
        with failing(role, name, "cannot be used"):
            found[name] = settings_model(load(role, name))
    return found


def own_settings(role: Role, name: str, settings: Settings, entry: Any) -> Any:
    """As :func:`plugin_settings`, for an entry that is loaded already."""
    with failing(role, name, "cannot check its settings", _secrets(name, settings, entry)):
        return read_section(name, settings.plugin.get(name, {}), settings_model(entry))


def _secrets(name: str, settings: Settings, entry: Any) -> list[str]:
    """What must not be told: passwords of the Kafka client, and the plugin's own secrets.

    If the plugin's model can't be read, its whole section is taken for secret.
    """
    section = settings.plugin.get(name, {})
    clients = [*settings.kafka.items(), *settings.kafka_admin.items()]
    kafka = [value.get_secret_value() for key, value in clients if is_secret(key)]
    with suppress(Exception):
        return kafka + secret_values(section, settings_model(entry))
    return kafka + list(section.values())
