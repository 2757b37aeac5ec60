"""Makes one look of the looks at several brokers: a row for each client, whichever brokers it uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quotahost.cli.explain.query import Unanswered
from quotahost.model import Bound, ClientUse, Look, State

_STATES: Final = (State.OPEN, State.THROTTLE, State.PAUSE)  # the last of them is told
#: What holds a client back most, first.
_BOUNDS: Final = (Bound.FENCE, Bound.TOPIC_QUOTA, Bound.FACTOR, Bound.FLOOR, Bound.QUOTA, Bound.NOTHING)


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
        _where(looks, silent),
        worst.state,
        worst.factor,
        min(look.limit_factor for look in all_looks),
        worst.cause,
        _fence(all_looks),
        _affected(all_looks),
        max(look.clients for look in all_looks),
        max(look.clients_max for look in all_looks),
        _uses(looks),
        any(look.left_out for look in all_looks),
        looks,
        silent,
    )


def _where(looks: Mapping[str, Look], silent: Sequence[str]) -> str:
    where = f"{len(looks)} of {len(looks) + len(silent)} brokers"
    return f"{where} (silent: {', '.join(silent[:5])}{', ...' if len(silent) > 5 else ''})" if silent else where


def _fence(looks: Sequence[Look]) -> str:
    fences = {look.fence for look in looks}
    return next(fence for fence in ("closed", "none", "open") if fence in fences)


def _affected(looks: Sequence[Look]) -> int:
    # Brokers that are in no hurry have no topics; those that slow everybody have -1, as those that slow nobody.
    slowing = [look.affected for look in looks if look.factor < 1]
    return max(slowing) if slowing and min(slowing) >= 0 else -1


def _uses(looks: Mapping[str, Look]) -> list[ClientUse]:
    found: dict[tuple[str, ...], dict[str, ClientUse]] = defaultdict(dict)
    for broker in sorted(looks, key=numeric):
        for use in looks[broker].uses:
            found[str(use.quota_type), use.user, use.client_id, use.scope][broker] = use
    return [_sum(of) for of in found.values()]


def _sum(uses: Mapping[str, ClientUse]) -> ClusterUse:
    each = list(uses.values())
    one = each[0]
    shadow = next((use.shadow for use in each if use.shadow), "")
    return ClusterUse(
        one.quota_type,
        one.user,
        one.client_id,
        one.scope,
        sum(use.rate for use in each),
        _total([use.quota for use in each]),
        _total([use.limit for use in each]),
        max(use.delay_ms for use in each),
        min((use.bound for use in each), key=_BOUNDS.index),
        min(use.idle for use in each),
        shadow,
        tuple(uses),
        max((use.share for use in each if use.share is not None), default=None),
    )


def _total(rates: Sequence[float | None]) -> float | None:
    """Their sum; None, unlimited, if one of them is."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def numeric(broker: str) -> tuple[int, str]:
    """By what brokers' ids are sorted."""
    return int(broker) if broker.isascii() and broker.isdigit() else 0, broker


def several(use: ClientUse) -> Unanswered:
    """Why a row can't be opened that is no client's own."""
    return Unanswered(f"this is the quota of several clients ({use.scope})", "choose a row of one client")
