"""The id of the cluster that this broker's log directories belong to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import javaproperties

_FILE: Final = (
    "meta.properties"  # Kafka's PropertiesUtils and MetaProperties, in each formatted log directory
)
_KEY: Final = "cluster.id"
_MAX: Final = 64 * 1024  # bytes


def cluster_id(directories: Iterable[str]) -> str:
    """``cluster.id`` of ``meta.properties`` in the first directory that tells it; "" if none does.

    A directory that can't be read is passed over. One on a disk that hangs holds the caller: call it where that
    is allowed for.
    """
    return next((found for found in map(_told, directories) if found), "")


def _told(directory: str) -> str:
    try:
        with Path(directory, _FILE).open("rb") as file:
            text = file.read(_MAX).decode("latin-1")
        return javaproperties.loads(text).get(_KEY, "").strip()
    except (OSError, ValueError):  # offline; a NUL in its name; no properties
        return ""
