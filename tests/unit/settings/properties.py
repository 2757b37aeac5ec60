"""Makes settings from properties' short names, for the tests of this package."""

from collections.abc import Mapping

import pytest

from quotahost.settings.broker import Settings, describe
from quotahost.settings.declaration import PREFIX, SettingsError, declared

#: Names of Strimzi's plugin.
BYTES = "static.storage.per.volume.limit.min.available.bytes"
RATIO = "static.storage.per.volume.limit.min.available.ratio"
INTERVAL = "static.storage.check-interval"
FALLBACK = "static.throttle.factor.fallback"
VALIDITY = "static.throttle.factor.validity.duration"
ADMIN = "static.kafka.admin."

NAMES = [p.name for p in declared(Settings) if not p.is_family]


def full(given: Mapping[str, str]) -> dict[str, str]:
    return {PREFIX + name: text for name, text in given.items()}


def read(given: Mapping[str, str] | None = None, **properties: str) -> Settings:
    """Settings from short names; names that are keywords have ``_`` for ``.``."""
    named = {name.replace("_", "."): text for name, text in properties.items()}
    return Settings.from_properties(full({**(given or {}), **named}))


def refused(given: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as error:
        read(given)
    return str(error.value)


def shown(settings: Settings) -> dict[str, str]:
    """The values as doctor shows them, by short names."""
    return {row.property.removeprefix(PREFIX): row.value for row in describe(settings)}
