"""Divides a cluster-wide quota among the brokers in plain Python: max-min fair by demand.

KIP-13 left the division open. Each broker keeps a small floor, so that a client can begin anywhere. The rest goes to
the brokers that demand more, the smallest demands first: no broker gets more than it demands, and all brokers whose
demand is not met get the same. If the demands leave a rest, all reporting brokers get equal parts of the rest.

The pipeline computes the same with ``sql/shares.sql``, and tests/pipeline/test_shares.py compares the two. Broker tests
that run without Spark publish shares that this module computes.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from quotahost.pipeline.shares import FLOOR, MAX_CLIENT, SHAVED, STEPS
from quotahost.records.shares import Share
from quotahost.records.usage import MAX_CLIENTS, MAX_NAMES, ClientKey, Usage, Used, fitting


@dataclass(frozen=True, slots=True)
class Division:
    """The shares of a quota of 1."""

    asking: Mapping[str, float]  # the share of each broker that reported a demand
    others: float  # the share of each other broker that reports, rounded down to steps
    silent: float  # the share that each silent broker keeps


def divide(demands: Mapping[str, float | None], others: int = 0, silent: int = 0) -> Division:
    """Divides a quota of 1; the sum of all shares is at most 1, also after rounding.

    Args:
        demands: each broker's demand as a part of the quota, at least one; None is an unlimited demand.
        others: the number of further brokers, whose reports don't contain this client.
        silent: the number of brokers of the cluster that have not reported for too long.
    """
    brokers = len(demands) + others + silent
    floor = FLOOR / brokers
    rest = 1 - floor * brokers
    wanted = {b: rest if part is None else min(max(part - floor, 0.0), rest) for b, part in demands.items()}
    level = _level(rest, sorted(wanted.values()))
    given = {broker: min(more, level) for broker, more in wanted.items()}
    over = max(0.0, rest - sum(given[broker] for broker in sorted(given))) / (len(demands) + others)
    asking = {broker: (floor + more + over) * SHAVED for broker, more in given.items()}
    stepped = floor + math.floor(over * brokers * STEPS) / (brokers * STEPS)
    return Division(asking, stepped * SHAVED, floor * SHAVED)


def _level(rest: float, wanted: list[float]) -> float:
    """Returns the bound of each share: the maximum over k of (rest - k smallest demands) / number of other demands."""
    level = met = 0.0
    for number, more in enumerate(wanted):
        level = max(level, (rest - met) / (len(wanted) - number))
        met += more
    return level


def shares(usages: Iterable[Usage], silent: Collection[str] = ()) -> dict[str, tuple[Share, ...]]:
    """Returns the shares of every broker of a cluster; clients are ordered by their first place in any broker's usage.

    Every broker gets shares of the same clients: those that fresh brokers reported, as many as fit into a record. A
    broker's demand counts as a part of the quota that this broker reports.

    Args:
        usages: the latest usage of each broker.
        silent: the brokers whose usage is too old; they keep the floor.
    """
    known = sorted(usages, key=lambda usage: usage.broker)
    fresh = [usage for usage in known if usage.broker not in silent]
    clients: dict[ClientKey, dict[str, Used]] = {}
    places: dict[ClientKey, int] = {}
    for usage in fresh:
        for place, used in enumerate(usage.clients):
            if used.key.octets <= MAX_CLIENT:
                clients.setdefault(used.key, {})[usage.broker] = used
                places[used.key] = min(place, places.get(used.key, place))
    listed = sorted(clients, key=lambda key: (places[key], key))
    found: dict[str, list[Share]] = {usage.broker: [] for usage in known}
    for key in fitting(listed, MAX_CLIENTS, MAX_NAMES, lambda key: key.octets):
        uses = clients[key]
        demands = {b: None if used.demand is None else used.demand / used.quota for b, used in uses.items()}
        divided = divide(demands, len(fresh) - len(uses), len(known) - len(fresh))
        for broker, row in found.items():
            quota = uses[broker].quota if broker in uses else 1.0
            other = divided.silent if broker in silent else divided.others
            row.append(Share(*key, divided.asking.get(broker, other) * quota, quota))
    return {broker: tuple(row) for broker, row in found.items()}
