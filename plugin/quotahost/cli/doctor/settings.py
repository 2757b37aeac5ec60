"""The broker's properties as quotahost understands them, and whether the plugins accept theirs."""

from __future__ import annotations

from contextlib import suppress

from pydantic import BaseModel

from quotahost.cli.broker_file import CLASS, BrokerFile
from quotahost.cli.console import Level, Section
from quotahost.discovery.build import configured, load, plugin_settings
from quotahost.discovery.entry_points import PluginError, settings_model
from quotahost.settings.broker import Settings, describe, read_properties
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.strimzi.translation import Translation


def check_settings(broker: BrokerFile, with_plugins: bool) -> tuple[Section, Settings | None]:
    """Parse the properties, and load the configured plugins if this is their environment."""
    section = Section("Settings", columns=("property", "value", "from"))
    _check_class(section, broker)
    for name in broker.unresolved:
        section.add(Level.NOTE, f"{name} is not checked: a config provider of the broker resolves it")
    try:
        settings, translation = read_properties(broker.properties)
    except SettingsError as error:
        _tell(section, error)
        return section, None
    section.add(
        Level.GOOD, f"{broker.path} is understood; changes made live by kafka-configs.sh are not seen here"
    )
    for note in translation.notes:
        section.add(Level.WEAK if note.warns else Level.NOTE, note.text)
    if with_plugins:
        _check_plugins(section, settings)
    section.rows += _rows(settings, with_plugins, translation)
    return section, settings


def _check_class(section: Section, broker: BrokerFile) -> None:
    name = f"{PREFIX}class"
    if name in broker.unresolved or broker.get(name) == CLASS:
        return
    found = broker.get(name)
    what = f"{name} is {found}" if found else f"{name} is not set"
    section.add(Level.WRONG, f"{what}: this broker does not load quotahost", f"{name}={CLASS}")


def _check_plugins(section: Section, settings: Settings) -> None:
    for role, name in configured(settings):
        try:
            plugin_settings(role, name, settings)
        except SettingsError as error:
            _tell(section, error)
        except PluginError as error:
            section.add(Level.WRONG, str(error))


def _tell(section: Section, error: SettingsError) -> None:
    for problem in error.problems:
        section.add(Level.WRONG, str(problem))


def _rows(settings: Settings, with_models: bool, told: Translation) -> list[tuple[str, str, str]]:
    rows = describe(settings, _loadable_models(settings) if with_models else None)
    return [(row.property, row.value, told.origins.get(row.property, row.where)) for row in rows]


def _loadable_models(settings: Settings) -> dict[str, type[BaseModel] | None]:
    """They say which properties are secrets; a plugin that is broken has been told of already."""
    found = {}
    for role, name in configured(settings):
        with suppress(PluginError, TypeError):
            found[name] = settings_model(load(role, name))
    return found
