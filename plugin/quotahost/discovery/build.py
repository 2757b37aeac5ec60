"""Finds plugins by their entry points and builds them; a broken plugin harms no other.

``plugin.NAME.*`` goes to every configured plugin named NAME: a factor source and a task of the same name see the same
properties, so they share one model, ``Section``. The host (``quotahost.host.builder``) and the testing kit use this
module.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from quotahost.api import Context, Role
from quotahost.api.context import LoadedPlugin
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


def construct(role: Role, entry: Any, context: Context[Any]) -> LoadedPlugin:
    """Make the plugin with its context, and check that it can take the role.

    Args:
        role: the role that it has to take.
        entry: the class or function of its entry point, from :func:`load`.
        context: names the plugin and brings its validated section, from :func:`plugin_settings`.

    Raises:
        PluginError: it can't be constructed, or lacks a method of its role.
    """
    with failing(role, context.name, "cannot be built", _secrets(context.name, context.settings, entry)):
        plugin = entry(context)
    with failing(role, context.name, "is not fit for its role"):
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
