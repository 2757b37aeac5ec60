"""What a history can't tell, and a replay estimates: how a volume would have filled, and who would have been held back.

What a volume gained between two readings is multiplied by the share of their quotas that clients would have had then,
over the share that they had. So it is taken that clients use their quotas whole while they are slowed. What a volume
lost is left as it was: deletions follow retention, and not the factor.

A client is held back that wants more than its quota times the factor. What it wants is its demand in the records of
usage; one without a number there would use whatever it gets. While it is paused nobody measures that, so what it wanted
last counts until it is heard of again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import exp, inf
from typing import Final, NamedTuple

from quotahost.cli.lab.curves import ClientUse

#: Below this mean share so little came in that it says nothing of what would have come.
LEAST: Final = 0.05
_MEMORY: Final = 300.0  # seconds at full share over which the demand is measured


class Growth:
    """One volume's consumption as it would have been.

    Attributes:
        used: bytes.
        estimated: whether bytes are in it that nobody wrote, as clients were paused then.
    """

    def __init__(self, used: int) -> None:
        self.used, self.estimated = float(used), False
        self._then = used
        self._gained = self._open_s = 0.0

    def add(self, used: int, seconds: float, then_s: float, new_s: float) -> None:
        """Take the next reading.

        Args:
            used: bytes consumed, as recorded.
            seconds: since the last reading.
            then_s: seconds at full share that are worth the shares then.
            new_s: the same with the new settings.
        """
        more, self._then = used - self._then, used
        if then_s < LEAST * seconds:
            # No factor stops what comes now: a reassignment, or exempt clients.
            self.used += more + self._missed(then_s, new_s)
        elif more < 0:
            self.used += more
        else:
            self.used += more * (new_s / then_s if new_s != then_s else 1.0)
        if then_s >= LEAST * seconds:
            kept = exp(-then_s / _MEMORY)
            self._gained, self._open_s = self._gained * kept + max(0, more), self._open_s * kept + then_s
        self.used = max(0.0, self.used)

    def _missed(self, then_s: float, new_s: float) -> float:
        """What clients would have written besides, if they had gone on as before the PAUSE."""
        if new_s <= then_s or not self._open_s:
            return 0.0
        missed = self._gained / self._open_s * (new_s - then_s)
        self.estimated = self.estimated or missed >= 1
        return missed


class FactorPoint(NamedTuple):
    """A factor from a time on, in seconds since 1970; then, and with the new settings."""

    at: float
    then: float
    new: float


class HeldBack(NamedTuple):
    """For how many seconds a client was slowed, and paused."""

    slowed_s: float
    paused_s: float


@dataclass(frozen=True, slots=True)
class ReplayedClient:
    """One producer, as far as brokers published its use.

    Attributes:
        cluster, user, client: which.
        brokers: where it wrote.
        rate: bytes/s of all brokers together, in the mean of the time in which it wrote.
        then: for how long the factor held it back, as recorded.
        new: with the settings in question.
    """

    cluster: str
    user: str
    client: str
    brokers: tuple[str, ...]
    rate: float
    then: HeldBack
    new: HeldBack


def replayed_client(client: ClientUse, factors: Sequence[FactorPoint], until: float) -> ReplayedClient:
    """For how long these factors held a client back, until a time in seconds since 1970."""
    then, new = [0.0, 0.0], [0.0, 0.0]
    for begin, end, wanted, quota in _windows(client, factors, until):
        for point, length in _parts(factors, begin, end):
            for seconds, factor in ((then, point.then), (new, point.new)):
                if factor <= 0 < wanted:
                    seconds[1] += length
                elif factor < 1 and wanted > quota * factor:
                    seconds[0] += length
    rate = sum(use.rate for use in client.uses) / len({use.at for use in client.uses})
    brokers = tuple(sorted({use.broker for use in client.uses}))
    return ReplayedClient(client.cluster, client.user, client.client, brokers, rate, HeldBack(*then), HeldBack(*new))


def _windows(
    client: ClientUse, factors: Sequence[FactorPoint], until: float
) -> Iterator[tuple[float, float, float, float]]:
    """From when to when a client wanted how much, in bytes/s on all brokers together, and its quota."""
    parts = [(at, list(uses)) for at, uses in groupby(client.uses, key=lambda use: use.at)]
    for (at, uses), (following, _) in pairwise([*parts, (until, [])]):
        end = min(at + client.width, following)
        wanted = sum(inf if use.demand is None else use.demand for use in uses)
        # Silent because it was paused then.
        yield at, following if _then(factors, end) <= 0 else end, wanted, max(use.quota for use in uses)


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
