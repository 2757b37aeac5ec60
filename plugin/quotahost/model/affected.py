"""Whom a factor is for: all clients, or only those who write to topics on the volumes that cause it. Private.

The host makes it of the volumes (``broker.host.volume_evaluation``), and the shim hands it on to Java's ``QuotaTable``,
which finds out who writes there. ``None`` in its place means all clients: with ``factor.scope=cluster``, and while
anything is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Topics of one volume, and of the cluster's record. Where there are more, nobody lists them: it is all topics then.
MAX_TOPICS: Final = 1000
#: Topics of all volumes together that a broker hands on to its request threads; beyond that it is all clients.
MAX_AFFECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Affected:
    """The topics whose writers the factor is for.

    Attributes:
        places: by affected topic where it has a replica on a volume above its soft limit, in words for an operator:
            "broker 3, volume /dev/sdb".
        held: the held topics, which have a replica on a volume at factor 0; requests to them are turned back.

    Raises:
        ValueError: a held topic has no place.
    """

    places: Mapping[str, str]
    held: frozenset[str]

    def __post_init__(self) -> None:
        if strangers := self.held - self.places.keys():
            raise ValueError(f"held topics without a place: {sorted(strangers)[:3]}")
