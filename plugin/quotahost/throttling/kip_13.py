"""KIP-13's own formula of the delay. Kafka computes another one (:mod:`quotahost.throttling.sampled_rate`)."""

from __future__ import annotations


def simple_delay_s(produced: float, bound: float, limit: float) -> float:
    """The delay in seconds over N windows of one second: ``(produced - bound) / limit``, 0 within the bound.

    The KIP's example: 5 MB/s in 10 windows allow 50 MB; 60 MB were produced; the delay is 2 s.

    Args:
        produced: the sum over all N windows.
        bound: the sum that they allow, N times the limit.
        limit: per second, above 0.
    """
    return max(0.0, (produced - bound) / limit)
