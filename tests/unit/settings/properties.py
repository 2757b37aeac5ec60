"""Settings of short names, for the tests of this package."""

import pytest

from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError, declared

NAMES = [p.name for p in declared(Settings) if not p.is_family]


def read(**properties: str) -> Settings:
    """Settings of short names, written with ``_`` for ``.``."""
    return Settings.from_properties({PREFIX + name.replace("_", "."): text for name, text in properties.items()})


def refused(properties: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as error:
        Settings.from_properties({PREFIX + name: text for name, text in properties.items()})
    return str(error.value)
