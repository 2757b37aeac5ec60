"""Which rows are shown, and in what order: by what the user's keys or options chose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quotahost.model import QuotaType
from quotahost.model.client_use import Bound, ClientUse


class Order(StrEnum):
    """What the rows are sorted by; the largest come first, names from A to Z."""

    RATE = "rate"
    SHARE = "share"
    DELAY = "delay"
    NAME = "name"


_KEYS: Final[dict[Order, Callable[[ClientUse], float]]] = {
    Order.RATE: lambda use: use.rate,
    # Who has a quota of 0 and uses something is beyond all others; who has none is behind them.
    Order.SHARE: lambda use: -1.0 if use.quota is None else use.share if use.share is not None else _of_nothing(use),
    Order.DELAY: lambda use: use.delay_ms,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user wants to see.

    Attributes:
        order: what the rows are sorted by.
        type: only this quota type; None for all.
        text: only rows with this text in the user's name, the client-id, the scope or what binds, in any case.
        held: only those that something holds back.
    """

    order: Order = Order.RATE
    type: QuotaType | None = None
    text: str = ""
    held: bool = False

    def rows(self, uses: Iterable[ClientUse]) -> list[ClientUse]:
        """The rows to show. Rates of different types have different units, so types follow one another."""
        chosen = [use for use in uses if self._has(use)]
        types = list(QuotaType)
        if self.order is Order.NAME:
            return sorted(chosen, key=lambda use: (use.user, use.client_id, use.scope, types.index(use.quota_type)))
        by = _KEYS[self.order]
        if self.order is Order.RATE:
            return sorted(chosen, key=lambda use: (types.index(use.quota_type), -by(use), use.user, use.client_id))
        return sorted(chosen, key=lambda use: (-by(use), types.index(use.quota_type), use.user, use.client_id))

    def _has(self, use: ClientUse) -> bool:
        if self.type not in (None, use.quota_type) or (self.held and not use.is_held_back):
            return False
        if not use.rate and use.bound is Bound.NOTHING and not use.delay_ms and not use.shadow:
            return False  # idle
        wanted = self.text.casefold()
        bound = "" if use.bound_by == Bound.NOTHING else use.bound_by
        return any(wanted in each.casefold() for each in (use.user, use.client_id, use.scope, bound))


def _of_nothing(use: ClientUse) -> float:
    return math.inf if use.rate else 0.0
