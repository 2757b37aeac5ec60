"""KIP-599's rate as version 15 of its page describes it: a burst is spread evenly over all windows.

Kafka has neither this form nor the page's quota ``controller_mutations_burst``. "Instead of having one
sample equal to 560 in the last window, we will have 100 samples equal to 5.6." A mutation is admitted iff R < Q: not
at Q itself, where the revision diff's form still admits (:mod:`quotahost.throttling.kip_599_diff`).

The document leaves open:

- what a second burst does. Here it is spread as the first one: each window gets N / S on top of what it holds, and
  windows that differ are not levelled;
- what is a burst. Here each mutation is spread, also a small one;
- what follows as windows pass. Here the oldest leaves and an empty one begins, so N is forgotten in S equal parts;
- where a window begins. Here at multiples of W, so that the first one passes up to W after a burst; all S are there,
  empty, when a client's first request comes, and the present one is one of them;
- ``Samples = B / R`` if that is no whole number (here rounded up, so that nobody has less than B), or if W is not 1 s
  (here ``B / (R x W)``).

It contradicts itself. "The client must wait" 12 s after 560 mutations, and "dropping 12 samples brings the rate below
the quota", but 11 samples do: 89 x 5.6 / 100 = 4.984. At exactly Q the wait is 0 s, and the mutation is refused.

Its weakness: N counts for S windows, but by half on average. So even a steady client gets nearly twice Q in the long
run, ``2 x S / (S + 1)``, and a request far above the burst is forgotten after S windows.
"""

from __future__ import annotations

import math

from quotahost.throttling.spread_rate import SpreadRate


class Version15Rate(SpreadRate):
    """The windows of one client; each takes an equal part of every mutation."""

    # What is held are N, not N / S: sums of whole numbers are exact, so that R < Q is, too.

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """The contents of each window, the oldest first."""
        return tuple(n / self._samples for n in super().windows(now_ms))

    def measure(self, now_ms: int) -> float:
        """R, per second."""
        return super().measure(now_ms) / self._samples

    def record(self, n: float, now_ms: int) -> None:
        """Add N / S to each of the S windows."""
        self._pass_windows(now_ms)
        self._held = [held + n for held in self._held]

    def _allows(self, rate: float) -> bool:
        return rate < self._quota


def samples_of_burst(rate: float, burst: float, window_ms: int = 1000) -> int:
    """S for ``controller_mutations_rate`` R and ``controller_mutations_burst`` B: ``B / (R x W)``, rounded up.

    Raises:
        ValueError: one of them is not above 0, or so far apart that S is not finite.
    """
    if not rate > 0 or not burst > 0 or window_ms < 1:
        raise ValueError("rate, burst and window_ms must be above 0")
    samples = burst / rate * 1000 / window_ms
    if not math.isfinite(samples):
        raise ValueError(f"burst {burst} is too far above the rate {rate}")
    # 9 digits: by binary fractions 1.1 / 0.1 is a little more than 11.
    return max(1, math.ceil(round(samples, 9)))
