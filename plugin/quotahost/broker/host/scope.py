"""Whom a factor is for: the topics of the volumes that lower it, for ``factor.scope=topics``.

``judgement`` asks for the volumes that it has judged, and ``factor`` joins what is known now with what was known last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quotahost.model import Factor, Volume
from quotahost.model.volumes import MAX_AFFECTED, Affected
from quotahost.text import printable


@dataclass(frozen=True, slots=True)
class Scoped:
    """A factor and whom it is for: the writers of these topics, or all clients where ``affected`` is None.

    ``full`` says that the factor is 0 by what is known, and not only because something is unknown.
    """

    factor: Factor
    affected: Affected | None = None
    full: bool = False


def place(volume: Volume) -> str:
    """A volume in words for an operator. Other brokers' records bring its names."""
    return f"broker {printable(volume.broker)}, volume {printable(volume.name)}"


def affected(lowered: Iterable[tuple[Volume, float]]) -> Affected | None:
    """The topics on volumes whose factors are below 1; those on volumes at factor 0 are held.

    None, which is all clients, if one of the volumes doesn't tell its topics or there are more than MAX_AFFECTED.
    """
    places: dict[str, str] = {}
    held: set[str] = set()
    # The volumes at 0 first: of several places it names the one that stops a topic. Then by name, so that the same
    # volumes always make the same answer, which is then no news.
    for volume, value in sorted(lowered, key=lambda each: (each[1] > 0, each[0].broker, each[0].name)):
        if volume.topics is None:
            return None
        places.update(dict.fromkeys(volume.topics - places.keys(), place(volume)))
        if value <= 0:
            held |= volume.topics
        if len(places) > MAX_AFFECTED:
            return None
    return Affected(places, frozenset(held))


def smaller(one: Scoped, other: Scoped) -> Scoped:
    """The smaller factor, for all whom either of the two slows. Of two equal ones the first."""
    factor = one.factor if one.factor.value <= other.factor.value else other.factor
    full = one.full or other.full
    slowing = [each.affected for each in (one, other) if each.factor.value < 1]
    places: dict[str, str] = {}
    for each in slowing:
        if each is None:
            return Scoped(factor, full=full)
        places = {**each.places, **places}
    if not slowing or len(places) > MAX_AFFECTED:
        return Scoped(factor, full=full)
    return Scoped(factor, Affected(places, frozenset().union(*(each.held for each in slowing if each))), full)
