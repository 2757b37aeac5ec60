"""Builds plugins: imports the entry point, validates the plugin's own properties, calls it, checks the result.

The host builds the configured plugins with it, and the testing kit one plugin at a time; ``doctor`` only imports and
validates. The properties ``plugin.NAME.*`` belong to every configured plugin named NAME: a factor source and a task of
the same name see the same properties, so they share one ``Section`` model.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from quotahost.api import Context, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.discovery.entry_points import PluginError, failing, load, settings_model
from quotahost.settings.broker import Settings, configured_names
from quotahost.settings.sections import is_secret_property, read_section, secret_values

__all__ = ["PluginError", "check_period", "configured", "construct", "load", "models", "plugin_settings"]


def configured(settings: Settings) -> list[tuple[Role, str]]:
    """Role and name of every plugin that these settings name, in the order in which a host builds them."""
    names = configured_names(settings)
    return [(role, name) for role in Role for name in names[role.broker_property]]


def models(plugins: Iterable[tuple[Role, str]]) -> dict[str, type[BaseModel] | None]:
    """The settings model of every one of these plugins, by name, for ``live_properties``.

    Raises:
        PluginError: one of the plugins can't be loaded.
    """
    found = {}
    for role, name in plugins:
        with failing(role, name, "cannot be used"):
            found[name] = settings_model(load(role, name))
    return found


def plugin_settings(role: Role, name: str, settings: Settings, entry: Any = None) -> Any:
    """The plugin's own properties ``plugin.NAME.*``, validated; None if it declares none.

    ``entry`` is the class or function, where the caller has loaded it already.

    Raises:
        PluginError: the plugin can't be loaded, or its ``Section`` is no model.
        SettingsError: a property is unknown or wrong.
    """
    entry = load(role, name) if entry is None else entry
    with failing(role, name, "cannot check its settings", _secrets(name, settings, entry)):
        return read_section(name, settings.plugin.get(name, {}), settings_model(entry))


def construct(role: Role, entry: Any, context: Context[Any]) -> LoadedPlugin:
    """Build the plugin with its context, and check that it can take the role.

    Args:
        role: the role that the plugin takes.
        entry: the class or function of its entry point, which :func:`load` returned.
        context: what the plugin is given; its section is what :func:`plugin_settings` returned.

    Raises:
        PluginError: the plugin can't be built, or lacks a method of its role.
    """
    with failing(role, context.name, "cannot be built", _secrets(context.name, context.settings, entry)):
        plugin = entry(context)
    with failing(role, context.name, "is not fit for its role"):
        try:
            _check(role, plugin)  # now, since the first call may come hours later
        except TypeError:
            # Nobody else has it, and so nobody else could end the threads that it may have started.
            with suppress(Exception):
                plugin.close()
            raise
    return LoadedPlugin(role, plugin, context)


def _check(role: Role, plugin: Any) -> None:
    """Raise a TypeError if the plugin lacks a method of its role's Protocol, or is a task with a bad period."""
    # isinstance() with a Protocol would not tell which method is missing.
    methods = [name for name, value in vars(role.protocol).items() if name[0] != "_" and callable(value)]
    if lacking := [name for name in methods if not callable(getattr(plugin, name, None))]:
        what = f"{type(plugin).__name__} has no method {', '.join(lacking)}"
        raise TypeError(f"{what}; implement {role.protocol.__name__} of quotahost.api")
    if role is Role.TASK:
        check_period(getattr(plugin, "period", None))


def check_period(period: Any) -> timedelta:
    """The period of a task, if it is one.

    Raises:
        TypeError: it is no timedelta above 0.
    """
    if not isinstance(period, timedelta) or period <= timedelta():
        raise TypeError(f"its period is {period!r:.200}; make it a datetime.timedelta above 0")
    return period


def _secrets(name: str, settings: Settings, entry: Any) -> list[str]:
    """The values that no error may show: passwords of the Kafka client, and the plugin's own secrets.

    If the plugin's model can't be read, its whole section is taken for secret.
    """
    section = settings.plugin.get(name, {})
    # A plugin can read these by broker.client_config(), so its errors may contain them.
    clients = [*settings.kafka.items(), *settings.kafka_admin.items()]
    kafka = [value.get_secret_value() for key, value in clients if is_secret_property(key, None)]
    with suppress(Exception):
        return kafka + secret_values(section, settings_model(entry))
    return kafka + list(section.values())
