"""A model of a broker with few request handlers: tests whether the law of the source ``load`` keeps it at its target.

In each tick of 10 ms every client that isn't muted asks for as many seconds of the handlers' time as it would like. The
handlers' time is divided among the clients in proportion. Kafka's own rate and delay (``SampledRate``) then mute the
clients whose quotas are used up. At the first read of the source after a second has passed, which may come LATE_MS
later, the law gets the handlers' idle time. Up to LATE_MS after that, the tap begins to move the limits to the law's
factor.

The simulator (``quotahost.cli.lab``) jumps from one batch to the next and has bytes on disks. Here the handlers' time
is divided in each tick among all clients that ask, so the two have no clients in common. Kafka's rate and the tap are
the same.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from quotahost.broker.plugins.factor_sources.load import Law
from quotahost.throttling import QuotaWindows, SampledRate, Tap

TICK_MS: Final = 10
LATE_MS: Final = 250  # factor.interval
BEAT_MS: Final = 100  # how often Java moves the tap
HANDLERS: Final = 2.0
TARGET: Final = 0.3
_NEAR: Final = 0.9  # share of its limit from which a client counts as held back, as for the source


@dataclass(slots=True)
class Modelled:
    """A client of the model."""

    wants: float  # seconds of the handlers' time that it would use in a second
    quota: float  # in the same unit; for a client without a quota its usage without a factor (its stand-in)
    sends: Callable[[int], bool] = lambda now_ms: True  # whether it has anything to send at this time in ms
    muted_until_ms: int = 0  # the end of its mute by Kafka


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values of each second: the law's factor, the factor of the limits, and the handlers' idle share."""

    factors: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)


def play(clients: Sequence[Modelled], seconds: int, windows: QuotaWindows, law: Law, seed: int = 1) -> Outcome:
    """Let the clients send for so long. The demand of a client differs from tick to tick, by a tenth at most."""
    chance, outcome = random.Random(seed), Outcome()
    rates = [SampledRate(windows.number, windows.size * 1000) for _ in clients]
    tap, factor, (coming, from_ms) = Tap(windows.number, windows.size * 1000), 1.0, (1.0, 0)
    idle, heard_idle, heard_ms, due_ms = 0.0, 0.0, 0, 1000
    capacity = HANDLERS * TICK_MS / 1000

    def held() -> bool:
        return tap.value < 1 and any(
            rate.measure(now_ms) >= _NEAR * client.quota * tap.value
            for client, rate in zip(clients, rates, strict=True)
        )

    for now_ms in range(0, seconds * 1000, TICK_MS):
        wanted = [
            client.wants * TICK_MS / 1000 * chance.uniform(0.9, 1.1)
            if client.sends(now_ms) and now_ms >= client.muted_until_ms
            else 0.0
            for client in clients
        ]
        share = min(1.0, capacity / (sum(wanted) or capacity))
        idle_now = (1 - min(1.0, sum(wanted) / capacity)) * TICK_MS / 1000
        idle, heard_idle = idle + idle_now, heard_idle + idle_now
        if now_ms % BEAT_MS == 0:
            factor = coming if now_ms >= from_ms else factor
            tap.step(factor, False, now_ms)
        for client, rate, want in zip(clients, rates, wanted, strict=True):
            if want:
                rate.record(want * share, now_ms)
                client.muted_until_ms = now_ms + rate.throttle_ms(client.quota * tap.value, now_ms)
        if (end_ms := now_ms + TICK_MS) >= due_ms:
            elapsed = (end_ms - heard_ms) / 1000
            coming = law.step((1 - heard_idle / elapsed) / (1 - TARGET), elapsed, now_ms, held)
            from_ms, heard_idle, heard_ms = now_ms + LATE_MS, 0.0, end_ms
            due_ms = end_ms + 1000 + chance.randrange(LATE_MS)
        if end_ms % 1000 == 0:
            outcome.factors.append(factor)
            outcome.limits.append(tap.value)
            outcome.idle.append(idle)
            idle = 0.0
    return outcome
