"""How a cluster-wide quota is divided among the brokers: max-min fair by demand (KIP-13 left this open).

Each broker of the cluster keeps a small floor, so that a client can begin anywhere. The rest goes to those who
demand more, the smallest demands first, nobody more than he demands, and all who are not content the same. What
nobody demands is spread equally. ``pipeline/shares.py`` says the same in Spark's functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from quotahost.records.clients import ClientKey, fitting
from quotahost.records.shares import Share
from quotahost.records.usage import Usage, Used

FLOOR: Final = 0.05  # of an equal part
# So much less is given that floats, added in whatever order, can't come to more than the quota.
SHAVED: Final = 1 - 2**-32


@dataclass(frozen=True, slots=True)
class Division:
    """One quota divided, in bytes/s.

    Attributes:
        asking: the shares of the brokers that told a demand.
        others: what each of the other brokers gets that is not silent.
        silent: what each silent one keeps.
    """

    asking: Mapping[str, float]
    others: float
    silent: float


def divide(quota: float, demands: Mapping[str, float | None], others: int = 0, silent: int = 0) -> Division:
    """Divide the quota; all shares together are at most the quota, also after rounding.

    Args:
        quota: bytes/s of the client in the whole cluster, above 0.
        demands: bytes/s by broker; None wants all that it can get. At least one.
        others: how many further brokers have told of themselves, but not of this client.
        silent: how many brokers of the cluster have told nothing for too long.
    """
    brokers = len(demands) + others + silent
    floor = quota * FLOOR / brokers
    rest = quota - floor * brokers
    wanted = {broker: _above(floor, demand, rest) for broker, demand in demands.items()}
    level = _level(rest, sorted(wanted.values()))
    given = {broker: min(more, level) for broker, more in wanted.items()}
    over = max(0.0, rest - sum(given[broker] for broker in sorted(given))) / (len(demands) + others)
    asking = {broker: (floor + more + over) * SHAVED for broker, more in given.items()}
    return Division(asking, (floor + over) * SHAVED, floor * SHAVED)


def _above(floor: float, demand: float | None, rest: float) -> float:
    return rest if demand is None else min(max(demand - floor, 0.0), rest)


def _level(rest: float, wanted: list[float]) -> float:
    """What nobody gets more than: the highest of the levels at which the 0, 1, 2 .. smallest demands are met."""
    level = met = 0.0
    for number, more in enumerate(wanted):
        level = max(level, (rest - met) / (len(wanted) - number))
        met += more
    return level


def shares(usages: Iterable[Usage], silent: Collection[str] = ()) -> dict[str, tuple[Share, ...]]:
    """The shares of every broker of one cluster, the client that uses most in the cluster first.

    Every broker has the same clients: those that the fresh brokers told of, as many as fit into a record.

    Args:
        usages: the newest of each broker.
        silent: those of them whose usage is too old to count; their brokers keep the floor.
    """
    told = sorted(usages, key=lambda usage: usage.broker)
    fresh = [usage for usage in told if usage.broker not in silent]
    clients: dict[ClientKey, dict[str, Used]] = {}
    for usage in fresh:
        for used in usage.clients:
            clients.setdefault(used.key, {})[usage.broker] = used
    busiest = sorted(clients.items(), key=lambda item: (-sum(u.rate for u in item[1].values()), item[0]))
    found: dict[str, list[Share]] = {usage.broker: [] for usage in told}
    for key, uses in islice(busiest, _fits(key for key, _ in busiest)):
        quota = min(used.quota for used in uses.values())
        demands = {broker: used.demand for broker, used in uses.items()}
        divided = divide(quota, demands, len(fresh) - len(uses), len(told) - len(fresh))
        for broker, row in found.items():
            other = divided.silent if broker in silent else divided.others
            row.append(Share(key, divided.asking.get(broker, other), quota))
    return {broker: tuple(row) for broker, row in found.items()}


def _fits(keys: Iterable[ClientKey]) -> int:
    return sum(1 for _ in fitting(Share(key, 0.0, 1.0) for key in keys))
