"""Whom a broker's factor slows (``factor.scope=topics``), and what Kafka measures of each client meanwhile.

Modelled are Java's ``Marks`` and ``Use`` (``org.quotahost.table``). Each client writes to a topic of its own, whose
name is the client's: so it is marked as long as that topic is affected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quotahost.model.affected import Affected
from quotahost.simulation.rate import LeanRate
from quotahost.throttling import rise

NEVER: Final = -(10**9)  # ms


@dataclass(slots=True)
class Tags:
    """One pair of metric tags.

    Attributes:
        rate: what Kafka measures under them.
        began: when they began with empty windows, in ms, so that their limit rises; None if it doesn't.
        seen: when they were used last, in ms.
    """

    rate: LeanRate
    began: int | None
    seen: int


class Slowing:
    """The tags of one broker's clients, from its start on.

    Attributes:
        affected: the topics whose writers the factor is for; None while it is for all clients.
    """

    def __init__(self, windows: int, window_ms: int) -> None:
        """``quota.window.num``, and ``quota.window.size.seconds`` in ms."""
        self._windows, self._window_ms = windows, window_ms
        self._own: dict[str, Tags] = {}
        self._slowed: dict[str, Tags] = {}
        self.affected: Affected | None = None

    def affect(self, affected: Affected | None, now: int) -> None:
        """The factor is for the writers of these topics from now on, or with None for all clients.

        Whose mark ends has its own tags again: their limit rises if Kafka has forgotten what was sent under them.
        """
        marked = () if self.affected is None else self.affected.places
        self.affected = affected
        for client in marked:
            own = self._own.get(client)
            if not self.slows(client) and (own is None or not self._recent(own, now)):
                self._own[client] = Tags(self._rate(), now, NEVER)

    def slows(self, client: str) -> bool:
        """Whether a client has the slowed tags."""
        return self.affected is not None and client in self.affected.places

    def holds(self, client: str) -> bool:
        """Whether a closed fence turns a client's requests back."""
        return self.affected is None or client in self.affected.held

    def tags(self, client: str, now: int) -> Tags:
        """The tags that a client has now; the slowed ones are new if unused for as long as Kafka looks back."""
        slows = self.slows(client)
        kept = self._slowed if slows else self._own
        tags = kept.get(client)
        if tags is None or (slows and not self._recent(tags, now)):
            tags = kept[client] = Tags(self._rate(), now if slows else None, now)
        return tags

    def share(self, tags: Tags, now: int) -> float:
        """Which share of its limit a client gets under these tags, above 0 and up to 1."""
        return 1.0 if tags.began is None else rise(now - tags.began, self._windows, self._window_ms)

    def pairs(self, client: str, since: int) -> int:
        """How many pairs of tags a client has used since then, in ms: its own, and the slowed ones."""
        return sum(kept[client].seen >= since for kept in (self._own, self._slowed) if client in kept)

    def _rate(self) -> LeanRate:
        return LeanRate(self._windows, self._window_ms)

    def _recent(self, tags: Tags, now: int) -> bool:
        return now - tags.seen <= (self._windows + 1) * self._window_ms
