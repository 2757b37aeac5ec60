"""Checks the broker's properties as quotahost reads them, and that the configured plugins accept theirs.

The section's table lists every property as understood, with full units and without secrets. The settings go on to
``weaknesses``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pydantic import BaseModel

from quotahost.broker.discovery.build import configured, load, plugin_settings
from quotahost.broker.discovery.entry_points import PluginError, settings_model
from quotahost.cli.broker_file import CLASS, CLASSES, BrokerFile
from quotahost.cli.console import Finding, Level, Section, good, note, wrong
from quotahost.settings.broker import Settings, read_properties
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.display import describe

_COLUMNS = ("property", "value", "from")
_CLASS = f"{PREFIX}class"


def check_settings(broker: BrokerFile, with_plugins: bool) -> tuple[Section, Settings | None]:
    """Read the properties; the settings are None if they are wrong.

    Args:
        broker: the broker's properties.
        with_plugins: whether the broker's plugins are installed here, so that they can check theirs.
    """
    findings = list(_before_reading(broker))
    try:
        settings, translation = read_properties(broker.properties)
    except SettingsError as error:
        return Section("Settings", [*findings, *_problems(error)]), None
    findings.append(good(f"{broker.path} is understood; changes made live by kafka-configs.sh are not seen here"))
    findings += [Finding(Level.WEAK if n.warns else Level.NOTE, n.text) for n in translation.notes]
    if with_plugins:
        findings += _plugins(settings)
    rows = [
        (row.property, row.value, translation.origins.get(row.property, row.where))
        for row in describe(settings, _models(settings) if with_plugins else None)
    ]
    return Section("Settings", findings, _COLUMNS, rows), settings


def _before_reading(broker: BrokerFile) -> Iterator[Finding]:
    found = broker.get(_CLASS)
    # A class that a config provider supplies can't be read here, so nothing is said of it.
    if found not in CLASSES and _CLASS not in broker.unresolved:
        text = f"{_CLASS} is {found}" if found else f"{_CLASS} is not set"
        yield wrong(f"{text}: this broker does not load quotahost", f"{_CLASS}={CLASS}")
    for name in broker.unresolved:
        yield note(f"{name} is not checked: a config provider of the broker resolves it")


def _problems(error: SettingsError) -> Iterator[Finding]:
    return (wrong(str(problem)) for problem in error.problems)


def _plugins(settings: Settings) -> Iterator[Finding]:
    for role, name in configured(settings):
        try:
            plugin_settings(role, name, settings)
        except SettingsError as error:
            yield from _problems(error)
        except PluginError as error:
            yield wrong(str(error))


def _models(settings: Settings) -> dict[str, type[BaseModel] | None]:
    """The models of the plugins' own settings, which tell secrets from other properties."""
    found = {}
    for role, name in configured(settings):
        with suppress(PluginError, TypeError):  # _plugins has reported it
            found[name] = settings_model(load(role, name))
    return found
