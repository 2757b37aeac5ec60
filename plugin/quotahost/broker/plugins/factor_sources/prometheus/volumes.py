"""Turns the answers of two PromQL queries into volumes; whatever doesn't fit together is unknown.

A series that only one query has, or a value that is no number of bytes, may be a full disk. So each gets a sentence in
``ClusterVolumes.unknown``, for which ``fallback.action`` holds. ``source`` calls this module after both queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from quotahost.broker.plugins.factor_sources.prometheus.promql import Answer, shorten
from quotahost.model import ClusterVolumes, Volume

MAX_SENTENCES: Final = 20
_MAX_BYTES: Final = 2.0**63  # Kafka reports the sizes of volumes as Java's long

Place = tuple[str, str]
"""A broker and a volume, by the values of their labels."""


class Volumes:
    """Pairs the series of two queries by broker and volume."""

    def __init__(self, broker_label: str, volume_label: str, expected: Iterable[str] = ()) -> None:
        """Labels that name broker and volume; ``expected`` are brokers without which the state is unknown."""
        self._labels, self._expected = (broker_label, volume_label), tuple(expected)

    def of(self, capacity: Answer, used: Answer, *, available: bool) -> ClusterVolumes:
        """The volumes that both queries describe, and a sentence for each problem.

        Args:
            capacity: the size of each volume in bytes.
            used: bytes available on each volume, or bytes consumed.
            available: whether ``used`` are the bytes available.
        """
        word = "available" if available else "consumed"
        problems: list[str] = []
        sizes = self._by_place("capacity", capacity, problems)
        others = self._by_place(word, used, problems)
        problems += [f"{_named(place)} has capacity, but no {word}" for place in sizes if place not in others]
        problems += [f"{_named(place)} has {word}, but no capacity" for place in others if place not in sizes]
        volumes = []
        for place, size in sizes.items():
            other = others.get(place)
            if size is not None and other is not None:
                volumes += _volume(place, size, other, available, problems)
        present = {volume.broker for volume in volumes}
        problems += [f"expected broker {b!r} has no volume" for b in self._expected if b not in present]
        if not volumes and not problems:
            problems = ["the queries find no series"]
        return ClusterVolumes(tuple(volumes), _bounded(problems))

    def _by_place(self, query: str, answer: Answer, problems: list[str]) -> dict[Place, int | None]:
        """Bytes by place, None where they are unknown; each such place gets a sentence in ``problems``."""
        # A warning may mean that a part of the series is missing, and with it a full disk.
        problems += [f"the {query} query came with a warning: {warning}" for warning in answer.warnings]
        found: dict[Place, int | None] = {}
        count: Counter[Place] = Counter()
        for series in answer.series:
            broker, volume = (series.labels.get(label, "") for label in self._labels)
            if not broker or not volume:
                lacking = self._labels[1 if broker else 0]
                problems.append(f"a series of the {query} query has no label {lacking!r}")
                continue
            count[broker, volume] += 1
            sound = 0 <= series.value < _MAX_BYTES  # False for NaN
            found[broker, volume] = int(series.value) if sound else None
            if not sound:
                problems.append(f"{_named((broker, volume))} has {series.value:g} as {query}")
        # Nothing says which of several series is right, so none is taken.
        for place, times in count.items():
            if times > 1:
                found[place] = None
                problems.append(f"{_named(place)} is {times} times in the {query} query")
        return found


def _volume(place: Place, size: int, other: int, available: bool, problems: list[str]) -> list[Volume]:
    if size == 0:
        problems.append(f"{_named(place)} has a capacity of 0")
        return []
    # Consumed bytes may exceed the capacity, as file systems keep blocks for root; available ones can't.
    if available and other > size:
        problems.append(f"{_named(place)} has {other} bytes available of {size}")
        return []
    return [Volume(*place, size, size - other if available else other)]


def _named(place: Place) -> str:
    # Labels are anybody's text of any length, and the sentence goes to the log.
    broker, volume = map(shorten, place)
    return f"broker {broker!r}, volume {volume!r}"


def _bounded(sentences: list[str]) -> tuple[str, ...]:
    """The first 20 sentences; if there are more, the last one says how many."""
    distinct = list(dict.fromkeys(sentences))
    if len(distinct) > MAX_SENTENCES:
        distinct[MAX_SENTENCES - 1 :] = [f"and {len(distinct) - MAX_SENTENCES + 1} more"]
    return tuple(distinct)
