"""Which topics have a replica in a log directory: the names of the directories in it say so.

A replica lies in ``TOPIC-PARTITION``; one that moves to another log directory in ``TOPIC-PARTITION.ID-future`` as well.
What is being deleted or was found stray (``-delete``, ``-stray``) no client can write to, nor the metadata's own topic
(Kafka's ``LocalLog``, ``UnifiedLog`` and ``LogManager``). These functions may block on a disk that hangs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from quotahost.model.volumes import MAX_TOPICS

#: Entries of a log directory that are read, at most: a broker holds some 10,000 partitions.
MAX_ENTRIES: Final = 100_000
LIST_EVERY: Final = 1.0  # seconds between listings of one volume
_REPLICA: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-[0-9]{1,10}(?:\.[0-9a-f]{32}-future)?")
_METADATA: Final = "__cluster_metadata"


def topics(directories: Iterable[str]) -> frozenset[str] | None:
    """The topics with a replica in these log directories; None if they are too many or can't be read."""
    found: set[str] = set()
    left = MAX_ENTRIES
    for directory in directories:
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    left -= 1
                    if match := _REPLICA.fullmatch(entry.name):
                        found.add(match[1])
                    if left < 0 or len(found) > MAX_TOPICS + 1:  # one more: the metadata's topic is taken out below
                        return None
        except OSError:
            return None
    found.discard(_METADATA)
    return frozenset(found) if len(found) <= MAX_TOPICS else None


class TopicsByVolume:
    """Lists the topics of volumes, each every LIST_EVERY at most."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._clock = clock
        self._listed: dict[str, tuple[float, tuple[str, ...], frozenset[str] | None]] = {}

    def of(self, wanted: Mapping[str, tuple[str, ...]]) -> dict[str, frozenset[str] | None]:
        """The topics of the wanted volumes, which are given with their log directories; the others are forgotten."""
        self._listed = {name: self._of(name, directories) for name, directories in wanted.items()}
        return {name: found for name, (_, _, found) in self._listed.items()}

    def _of(self, name: str, directories: tuple[str, ...]) -> tuple[float, tuple[str, ...], frozenset[str] | None]:
        now, before = self._clock(), self._listed.get(name)
        if before and before[1] == directories and now - before[0] < LIST_EVERY:
            return before
        return now, directories, topics(directories)
