"""Which clients a factor held back, and would have held back: those that want more than their quota times the factor.

What a client wants is its demand in the records of usage; one without a number there would use whatever it gets. While
it is paused nobody measures that, so what it wanted last counts until it is heard of again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from math import inf

from quotahost.replay.values import ClientCourse, FactorPoint, HeldBack, Where
from quotahost.report.values import ClientUse, Use

Window = tuple[float, float, float, float]  # from, to, bytes/s wanted, and the quota


def courses(clients: Iterable[ClientUse], where: Sequence[Where], until: float) -> tuple[ClientCourse, ...]:
    """Those of the clients that were or would have been held back; ``until`` in seconds since 1970."""
    found = [_course(client, _factors(client, where), until) for client in clients]
    held = [each for each in found if any((*each.then, *each.new))]
    return tuple(sorted(held, key=lambda each: (-each.new.paused_s, -each.new.slowed_s, each.user, each.client)))


def _factors(client: ClientUse, where: Sequence[Where]) -> Sequence[FactorPoint]:
    """The factor for a client: its cluster's. Of brokers with factors of their own the one that held it back most."""
    brokers = {use.broker for use in client.uses}
    own = [each for each in where if each.cluster == client.cluster and each.broker in ("", *brokers)]
    return min(own, key=lambda each: (each.new.open_s, each.then.open_s)).factors if own else ()


def _course(client: ClientUse, factors: Sequence[FactorPoint], until: float) -> ClientCourse:
    seconds = [0.0] * 4
    for begin, end, wanted, quota in _windows(client, factors, until):
        for point, length in _parts(factors, begin, end):
            for index, factor in ((0, point.then), (2, point.new)):
                if factor <= 0 < wanted:
                    seconds[index + 1] += length
                elif factor < 1 and wanted > quota * factor:
                    seconds[index] += length
    parts = len({use.at for use in client.uses})
    return ClientCourse(
        client.cluster, client.user, client.client, tuple(sorted({use.broker for use in client.uses})),
        sum(use.rate for use in client.uses) / parts, HeldBack(*seconds[:2]), HeldBack(*seconds[2:]),
    )  # fmt: skip


def _windows(client: ClientUse, factors: Sequence[FactorPoint], until: float) -> Iterator[Window]:
    each = [(at, *_wanted(list(of))) for at, of in groupby(client.uses, key=lambda use: use.at)]
    ends = [(*each[-1], until)] if each else []
    windows = [(*before, after[0]) for before, after in pairwise(each)] + ends
    for at, wanted, quota, following in windows:
        end = min(at + client.width, following)
        # Silent because it was paused then.
        yield at, following if _then(factors, end) <= 0 else end, wanted, quota


def _wanted(uses: list[Use]) -> tuple[float, float]:
    """Of all brokers together, and the quota."""
    demands = [inf if use.demand is None else use.demand for use in uses]
    return sum(demands), max(use.quota for use in uses)


def _then(factors: Sequence[FactorPoint], at: float) -> float:
    index = bisect_right(factors, at, key=lambda point: point.at) - 1
    return factors[index].then if index >= 0 else 1.0


def _parts(factors: Sequence[FactorPoint], begin: float, end: float) -> Iterator[tuple[FactorPoint, float]]:
    """The factors in force from then to then, each with its seconds."""
    index = max(0, bisect_right(factors, begin, key=lambda point: point.at) - 1)
    while index < len(factors) and factors[index].at < end:
        following = factors[index + 1].at if index + 1 < len(factors) else end
        length = min(end, following) - max(begin, factors[index].at)
        if length > 0:
            yield factors[index], length
        index += 1
