"""Which rows ``quotahost top`` shows: of several brokers one for each client, chosen and sorted by the user.

:func:`merged` makes one look of the looks at several brokers. :class:`Choice`, which keys or options change, filters
and sorts the rows of a look.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quotahost.cli.explain.broker_socket import Unanswered
from quotahost.model import QuotaType, State
from quotahost.model.use import ClientUse, LimitedBy, Look
from quotahost.text import printable

_STATES: Final = (State.OPEN, State.THROTTLE, State.PAUSE)  # the last of them is told
#: What holds a client back most, first.
_BOUNDS: Final = (
    LimitedBy.FENCE,
    LimitedBy.TOPIC_QUOTA,
    LimitedBy.FACTOR,
    LimitedBy.FLOOR,
    LimitedBy.QUOTA,
    LimitedBy.NOTHING,
)


# ---- one look of several ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterUse(ClientUse):
    """What the clients of one scope use of several brokers.

    Rate, quota and limit are the sums over the brokers where the client has a place; quotas of Kafka's are for each
    broker. Delay and share are those of the broker where they are largest, and so is what binds.

    Attributes:
        brokers: the ids of the brokers.
        largest_share: the rate as a share of the quota, on the broker where it is largest; None without a quota.
    """

    brokers: tuple[str, ...] = ()
    largest_share: float | None = None

    @property
    def share(self) -> float | None:
        """See ``largest_share``."""
        return self.largest_share


@dataclass(frozen=True, slots=True)
class ClusterLook(Look):
    """A look at a cluster.

    Attributes:
        looks: the look at each broker that answered, by its id.
        silent: the brokers that are alive and don't answer.
    """

    looks: Mapping[str, Look]
    silent: Sequence[str]


def merged(looks: Mapping[str, Look], alive: Collection[str]) -> ClusterLook:
    """All brokers' looks as one.

    Args:
        looks: by the broker's id; at least one.
        alive: the ids of the brokers that are alive.
    """
    silent = sorted(set(alive) - looks.keys(), key=numeric)
    worst = max(looks.values(), key=lambda look: (_STATES.index(look.state), -look.factor))
    all_looks = list(looks.values())
    return ClusterLook(
        _where(looks, silent), worst.state, worst.factor, min(look.limit_factor for look in all_looks), worst.cause,
        _fence(all_looks), _affected(all_looks), max(look.clients for look in all_looks),
        max(look.clients_max for look in all_looks), _uses(looks), any(look.left_out for look in all_looks), looks,
        silent,
    )  # fmt: skip


def _where(looks: Mapping[str, Look], silent: Sequence[str]) -> str:
    where = f"{len(looks)} of {len(looks) + len(silent)} brokers"
    return (
        f"{where} (silent: {', '.join(map(printable, silent[:5]))}{', ...' if len(silent) > 5 else ''})"
        if silent
        else where
    )


def _fence(looks: Sequence[Look]) -> str:
    fences = {look.fence for look in looks}
    return next(fence for fence in ("closed", "none", "open") if fence in fences)


def _affected(looks: Sequence[Look]) -> int:
    # Brokers that are in no hurry have no topics; those that slow everybody have -1, as those that slow nobody.
    slowing = [look.affected for look in looks if look.factor < 1]
    return max(slowing) if slowing and min(slowing) >= 0 else -1


def _uses(looks: Mapping[str, Look]) -> list[ClientUse]:
    by_scope: dict[tuple[str, ...], dict[str, ClientUse]] = defaultdict(dict)
    for broker in sorted(looks, key=numeric):
        for use in looks[broker].uses:
            by_scope[str(use.quota_type), use.user, use.client_id, use.scope][broker] = use
    return [_sum(by_broker) for by_broker in by_scope.values()]


def _sum(by_broker: Mapping[str, ClientUse]) -> ClusterUse:
    uses = list(by_broker.values())
    first = uses[0]
    return ClusterUse(
        first.quota_type, first.user, first.client_id, first.scope, sum(use.rate for use in uses),
        _total([use.quota for use in uses]), _total([use.limit for use in uses]), max(use.delay_ms for use in uses),
        min((use.bound for use in uses), key=_BOUNDS.index), min(use.idle for use in uses),
        next((use.shadow for use in uses if use.shadow), ""),
        next((use.address for use in uses if use.address), ""), tuple(by_broker),
        max((use.share for use in uses if use.share is not None), default=None),
    )  # fmt: skip


def _total(rates: Sequence[float | None]) -> float | None:
    """Their sum; None, unlimited, if one of them is."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def numeric(broker: str) -> tuple[int, str]:
    """By what brokers' ids are sorted."""
    return int(broker) if broker.isascii() and broker.isdigit() else 0, broker


def several(use: ClientUse) -> Unanswered:
    """Why a row can't be opened that is no client's own."""
    return Unanswered(f"this is the quota of several clients ({printable(use.scope)})", "choose a row of one client")


# ---- what the user wants to see --------------------------------------------------------------------------------


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
        text: only rows with this text in the user's name, the client-id, the scope, the address or what binds, in any
            case.
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
        if not use.rate and use.bound is LimitedBy.NOTHING and not use.delay_ms and not use.shadow:
            return False  # idle
        wanted = self.text.casefold()
        bound = "" if use.bound_by == LimitedBy.NOTHING else use.bound_by
        return any(wanted in text.casefold() for text in (use.user, use.client_id, use.scope, use.address, bound))


def _of_nothing(use: ClientUse) -> float:
    return math.inf if use.rate else 0.0
