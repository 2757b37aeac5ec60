"""A broker's ``server.properties``, read as Kafka reads it (``java.util.Properties``, ISO 8859-1).

``doctor`` checks it. Values that a config provider of the broker supplies (KIP-297, such as secrets from a vault)
are known to the broker alone and are set aside here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX

CLASS: Final = "org.quotahost.PythonQuotaCallback"
#: The second also shows quotahost's numbers among Kafka's own metrics (4.1 and newer).
CLASSES: Final = (CLASS, "org.quotahost.MonitoredPythonQuotaCallback")
_REFERENCE: Final = re.compile(r"\$\{[^}:]+:[^}]*\}")  # ${provider:path:key}, KIP-297


@dataclass(frozen=True, slots=True)
class BrokerFile:
    """A broker's properties.

    Attributes:
        path: the file.
        properties: full names and values of all but those in ``unresolved``.
        unresolved: names under our prefix whose values a config provider of the broker resolves.
    """

    path: Path
    properties: dict[str, str]
    unresolved: tuple[str, ...]

    def get(self, name: str, default: str = "") -> str:
        """A property's trimmed value."""
        return self.properties.get(name, default).strip()

    def listed(self, name: str, default: str = "") -> list[str]:
        """The trimmed parts of a property that Kafka reads as a list, divided by commas."""
        return [part.strip() for part in self.get(name, default).split(",") if part.strip()]


def read_broker_file(path: Path) -> BrokerFile:
    """Read a properties file.

    Raises:
        QuotahostError: it can't be read, or one of its unicode escapes is malformed.
    """
    try:
        # As bytes: of these javaproperties reads ISO 8859-1, where a text stream would follow the locale.
        with path.open("rb") as stream:
            everything = javaproperties.load(stream)
    except (OSError, ValueError) as error:
        raise QuotahostError(f"{path} can't be read: {error}; name the broker's server.properties") from None
    # Without providers Kafka takes ${...} as it is written, so it is a value to check.
    has_providers = bool(everything.get("config.providers", "").strip())
    unresolved = [
        name
        for name, text in everything.items()
        if has_providers and name.startswith(PREFIX) and _REFERENCE.search(text)
    ]
    known = {name: text for name, text in everything.items() if name not in unresolved}
    return BrokerFile(path, known, tuple(sorted(unresolved)))
