"""Strimzi's names, and what becomes of a broker's file that has them."""

import pytest

from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.strimzi import translate

BYTES = "static.storage.per.volume.limit.min.available.bytes"


RATIO = "static.storage.per.volume.limit.min.available.ratio"


INTERVAL = "static.storage.check-interval"


FALLBACK = "static.throttle.factor.fallback"


VALIDITY = "static.throttle.factor.validity.duration"


ADMIN = "static.kafka.admin."


BOOTSTRAP = {f"{ADMIN}bootstrap.servers": "localhost:9092"}


SECRET = "S3CR3T-hunter2"


def full(properties: dict[str, str]) -> dict[str, str]:
    return {PREFIX + name: text for name, text in properties.items()}


def read(properties: dict[str, str]) -> Settings:
    return Settings.from_properties(full(properties))


def refused(properties: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as error:
        read(properties)
    return str(error.value)


def notes(properties: dict[str, str]) -> list[str]:
    return [note.text for note in translate(full(properties)).notes]


def warnings(properties: dict[str, str]) -> list[str]:
    return [note.text for note in translate(full(properties)).notes if note.warns]
