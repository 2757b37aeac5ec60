"""This module models three throttles of partition mutations: Kafka's token bucket, and two rates of KIP-599's pages.

The revision diff of the KIP's page shows the token bucket (:class:`TokenBucket`) and a rate that fills past windows
(:class:`RevisionDiffRate`). Version 15 of the page rejects the bucket "in order to remain consistent with the existing
quota" and spreads a burst evenly (:class:`Version15Rate`). Kafka has only the bucket. Both rates R are taken over S
windows of W seconds; the throttle time is ``(R - Q) / Q x S x W``. The pages leave some points open; the models decide:

- Windows begin at multiples of W, so the first window ends within W after a burst. At a client's first request all S
  windows exist and are empty; the present window is one of the S.
- The diff says "allocate the burst to all the previous window up to Q". The model fills the oldest window first, so it
  forgets a small N as soon as the token bucket would have grown it back. "Up to Q" limits the content of a window: a
  full window holds Q x W.
- In version 15 the model spreads every mutation, also a small or a second one, on top of the windows' content. As
  windows pass, the model forgets N in S equal parts. ``Samples = B / R`` is ``B / (R x W)``, rounded up.
"""

import math
from abc import ABC, abstractmethod

from quotahost.throttling.sampled_rate import divide, to_long


class TokenBucket:
    """Kafka's ``TokenBucket`` for CONTROLLER_MUTATION quotas, with the tokens of one client.

    The tokens K grow by R per second up to B: ``K = min(K + (now - T) x R, B)``. The bucket admits a mutation of N
    partitions iff K >= 0, and takes N tokens, so K may become negative; then the throttle time is ``-K / R``. (The
    diff's definition says ``-K * R``, which is no time; its example divides, and so does Kafka.) R is the quota Q, and
    B is ``Q x S x W``. As in Kafka, K is 0 at time 0, the epoch; so with today's clock the bucket begins full.

    The model follows these lines of Kafka 4.3.1, and ``tests/throttling`` compares it with those classes in a JVM:
    ``org.apache.kafka.common.metrics.stats.TokenBucket`` (``measure`` 76-81, ``record`` 86-92, ``refill`` 95-97),
    ``StrictControllerMutationQuota.record`` 55-65 and ``ControllerMutationQuotaManager.throttleTimeMs`` 181
    (both in ``org.apache.kafka.server.quota``).
    """

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` is per second; ``samples`` and ``window_ms`` are those of Kafka's ``MetricConfig``."""
        self.quota = quota
        self.burst = samples * (window_ms / 1000.0) * quota
        self._tokens, self._updated_ms = 0.0, 0

    def tokens(self, now_ms: int) -> float:
        """Return K, as ``TokenBucket.measure`` does."""
        grown = self._tokens + self.quota * ((now_ms - self._updated_ms) / 1000.0)
        self._tokens, self._updated_ms = min(self.burst, grown), now_ms
        return self._tokens

    def record(self, n: float, now_ms: int) -> None:
        """Take N tokens even if there are fewer, as permissive quotas do (``TokenBucket.record``)."""
        self._tokens = min(self.burst, self.tokens(now_ms) - n)

    def admit(self, n: float, now_ms: int) -> bool:
        """Take N tokens and return True if K >= 0, as strict quotas do (``StrictControllerMutationQuota.record``)."""
        if self.tokens(now_ms) < 0:
            return False
        self.record(n, now_ms)
        return True

    def throttle_ms(self, now_ms: int) -> int:
        """The time in ms until K is 0; 0 if K >= 0 (``ControllerMutationQuotaManager.throttleTimeMs``)."""
        tokens = self.tokens(now_ms)
        # Kafka divides first and rounds last; another order could give another millisecond.
        return 0 if tokens >= 0 else to_long(divide(-tokens, self.quota) * 1000)


class SpreadRate(ABC):
    """The base class of the two rates: it has the windows of one client, over which ``record`` spreads a mutation."""

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` is Q per second, ``samples`` S, ``window_ms`` W; all are above 0."""
        self._quota, self._samples, self._window_ms = quota, samples, window_ms
        self._span_s = samples * window_ms / 1000.0
        self._held = [0.0] * samples  # the oldest window first, the present window last
        self._index = 0

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """The content of each window, the oldest window first."""
        self._pass_windows(now_ms)
        return tuple(self._held)

    def measure(self, now_ms: int) -> float:
        """The rate R per second."""
        self._pass_windows(now_ms)
        return math.fsum(self._held) / self._span_s

    def admit(self, n: float, now_ms: int) -> bool:
        """Record N and return True iff R allows a mutation. The size of N doesn't matter."""
        if not self._allows(self.measure(now_ms)):
            return False
        self.record(n, now_ms)
        return True

    def throttle_s(self, now_ms: int) -> float:
        """The throttle time ``(R - Q) / Q x S x W`` in seconds; 0 if R <= Q."""
        return max(0.0, (self.measure(now_ms) - self._quota) / self._quota * self._span_s)

    @abstractmethod
    def record(self, n: float, now_ms: int) -> None:
        """Spread N over the windows, for any R."""

    @abstractmethod
    def _allows(self, rate: float) -> bool:
        """True if the model admits a mutation at this R."""

    def _pass_windows(self, now_ms: int) -> None:
        index = now_ms // self._window_ms
        # At most all windows pass: from time 0 to the first call, or during a client's silence, any number may pass.
        passed = max(0, min(index - self._index, self._samples))
        self._held = self._held[passed:] + [0.0] * passed
        self._index = index


class RevisionDiffRate(SpreadRate):
    """The diff's rate: it fills past windows up to Q, and adds the rest to the present window. It admits iff R <= Q.

    The document's 560 mutations make 99 samples of 5 and one of 65. The weakness: after S windows the rate forgets a
    window, however far it exceeded Q, while the token bucket keeps the debt. So in the long run more than Q passes:
    up to ``Q x S x W`` and one request more in every S windows.
    """

    def record(self, n: float, now_ms: int) -> None:
        """Fill the past windows up to Q, the oldest first, and add the rest of N to the present window."""
        self._pass_windows(now_ms)
        full = self._quota * self._window_ms / 1000.0
        for i, filled in enumerate(self._held[:-1]):
            # A past window may be more than full: as the present window it took the rest of a burst.
            part = min(n, max(0.0, full - filled))
            self._held[i] += part
            n -= part
        self._held[-1] += n

    def _allows(self, rate: float) -> bool:
        return rate <= self._quota


class Version15Rate(SpreadRate):
    """Version 15's rate: each window takes an equal part of every mutation. It admits iff R < Q, not at R = Q.

    "Instead of having one sample equal to 560 in the last window, we will have 100 samples equal to 5.6." Kafka has
    neither this form nor the page's quota ``controller_mutations_burst``. The page contradicts itself: "the client must
    wait" 12 s after 560 mutations, and "dropping 12 samples brings the rate below the quota", but 11 samples do:
    89 x 5.6 / 100 = 4.984. At R = Q the wait is 0 s, but the rate refuses the mutation. The weakness: N counts for S
    windows, but only half of N on average. So in the long run even a steady client gets ``2 x S / (S + 1)`` x Q,
    nearly twice Q, and the rate forgets a request far above the burst after S windows.
    """

    def record(self, n: float, now_ms: int) -> None:
        """Add N / S to each of the S windows."""
        self._pass_windows(now_ms)
        self._held = [held + n / self._samples for held in self._held]

    def _allows(self, rate: float) -> bool:
        return rate < self._quota


def samples_of_burst(rate: float, burst: float, window_ms: int = 1000) -> int:
    """S for ``controller_mutations_rate`` R and ``_burst`` B, above 0: ``B / (R x W)``, rounded up, 2^31 at most."""
    # round() to 9 digits, because in binary fractions 1.1 / 0.1 is a little more than 11.
    return max(1, math.ceil(min(round(burst / rate * 1000 / window_ms, 9), 2**31)))
