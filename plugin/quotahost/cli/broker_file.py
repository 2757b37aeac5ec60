"""A broker's ``server.properties``, read as Kafka reads it (``java.util.Properties``, ISO 8859-1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.settings.declaration import PREFIX

CLASS: Final = "org.quotahost.PythonQuotaCallback"
_REFERENCE: Final = re.compile(r"\$\{[^}:]+:[^}]*\}")  # ${provider:path:key}, KIP-297


@dataclass(frozen=True, slots=True)
class BrokerFile:
    """A broker's properties.

    Attributes:
        path: the file.
        properties: all of them, but for those in ``unresolved``.
        unresolved: names under our prefix whose values a config provider of the broker resolves.
    """

    path: Path
    properties: dict[str, str]
    unresolved: tuple[str, ...]

    def get(self, name: str, default: str = "") -> str:
        """A property's trimmed value."""
        return self.properties.get(name, default).strip()


def read_broker_file(path: Path) -> BrokerFile:
    """Read a properties file.

    Raises:
        OSError: it can't be read.
        ValueError: it holds a malformed unicode escape.
    """
    with path.open("rb") as stream:
        everything = javaproperties.load(stream)
    has_providers = bool(everything.get("config.providers", "").strip())
    unresolved = {
        name
        for name, text in everything.items()
        if has_providers and name.startswith(PREFIX) and _REFERENCE.search(text)
    }
    known = {name: text for name, text in everything.items() if name not in unresolved}
    return BrokerFile(path, known, tuple(sorted(unresolved)))
