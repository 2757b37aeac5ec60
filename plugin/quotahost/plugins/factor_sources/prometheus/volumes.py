"""Two instant vectors to volumes; whatever does not fit together is said to be unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from quotahost.model import ClusterVolumes, Volume
from quotahost.plugins.factor_sources.prometheus.promql import Answer, shorten

MAX_SENTENCES: Final = 20
_MAX_BYTES: Final = 2.0**63  # as Java's long, in which Kafka reports volumes

Place = tuple[str, str]
"""Broker and volume, as the labels name them."""


class Volumes:
    """Pairs the series of both queries by broker and volume."""

    def __init__(self, broker_label: str, volume_label: str, expected: Iterable[str] = ()) -> None:
        """``expected`` are values of the broker label that must be there."""
        self._labels, self._expected = (broker_label, volume_label), tuple(expected)

    def of(self, capacity: Answer, used: Answer, *, available: bool) -> ClusterVolumes:
        """All volumes that are sound, and a sentence for each thing that is not.

        Args:
            capacity: bytes in all.
            used: bytes available, or consumed.
            available: which of these it is.
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
        """Bytes by place; None where they are not known, for which there is a sentence then."""
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
        for place, times in count.items():
            if times > 1:
                found[place] = None
                problems.append(f"{_named(place)} is {times} times in the {query} query")
        return found


def _volume(place: Place, size: int, other: int, available: bool, problems: list[str]) -> list[Volume]:
    if size == 0:
        problems.append(f"{_named(place)} has a capacity of 0")
        return []
    if available and other > size:
        problems.append(f"{_named(place)} has {other} bytes available of {size}")
        return []
    return [Volume(*place, size, size - other if available else other)]


def _named(place: Place) -> str:
    broker, volume = map(shorten, place)
    return f"broker {broker!r}, volume {volume!r}"


def _bounded(sentences: list[str]) -> tuple[str, ...]:
    """At most 20, the last of which then says how many more there were."""
    told = list(dict.fromkeys(sentences))
    if len(told) > MAX_SENTENCES:
        told[MAX_SENTENCES - 1 :] = [f"and {len(told) - MAX_SENTENCES + 1} more"]
    return tuple(told)
