"""How partition mutations are throttled, in three forms: the token bucket that Kafka has, and two of KIP-599's pages.

The revision diff of the KIP's page shows the token bucket (:class:`TokenBucket`) and a rate that fills past windows
(:class:`RevisionDiffRate`). Version 15 of the page rejects the bucket "in order to remain consistent with the existing
quota" and spreads a burst evenly (:class:`Version15Rate`). Kafka has the bucket alone. Both rates are sums over S
windows of W seconds, by which a client waits ``(R - Q) / Q x S x W``. What the pages leave open is decided here so:

- Windows begin at multiples of W, so that the first one passes up to W after a burst. All S are there, empty, when a
  client's first request comes, and the present one is one of them.
- Of the diff, "allocate the burst to all the previous window up to Q": the oldest window is filled first, so that a
  small N is forgotten as soon as the token bucket would have grown it back. "Up to Q" counts what a window holds, and
  a full one holds Q x W.
- Of version 15: each mutation is spread, a small one and a second one, too, on top of what the windows hold. As
  windows pass, N is forgotten in S equal parts. ``Samples = B / R`` is ``B / (R x W)``, rounded up.
"""

import math
from abc import ABC, abstractmethod

from quotahost.throttling.sampled_rate import divide, to_long


class TokenBucket:
    """Kafka's ``TokenBucket`` for CONTROLLER_MUTATION quotas, with the tokens of one client.

    The tokens K grow by R a second up to B: ``K = min(K + (now - T) x R, B)``. A mutation of N partitions is admitted
    iff K >= 0, and takes N, so K may go negative; then the throttle time is ``-K / R``. (The diff's definition says
    ``-K * R``, which is no time; its example divides, and so does Kafka.) R is the quota Q, and B is ``Q x S x W``.
    As in Kafka K is 0 at time 0: by today's clock, the bucket begins full.

    The model follows these lines of Kafka 4.3.1, and ``tests/throttling`` compares it with those classes in a JVM:
    ``org.apache.kafka.common.metrics.stats.TokenBucket`` (``measure`` 76-81, ``record`` 86-92, ``refill`` 95-97),
    ``StrictControllerMutationQuota.record`` 55-65 and ``ControllerMutationQuotaManager.throttleTimeMs`` 181
    (both in ``org.apache.kafka.server.quota``).
    """

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` per second; ``samples`` and ``window_ms`` are those of Kafka's ``MetricConfig``."""
        self.quota = quota
        self.burst = samples * (window_ms / 1000.0) * quota
        self._tokens, self._updated_ms = 0.0, 0

    def tokens(self, now_ms: int) -> float:
        """``TokenBucket.measure``: K."""
        grown = self._tokens + self.quota * ((now_ms - self._updated_ms) / 1000.0)
        self._tokens, self._updated_ms = min(self.burst, grown), now_ms
        return self._tokens

    def record(self, n: float, now_ms: int) -> None:
        """``TokenBucket.record``: take N, even if there are fewer tokens, as permissive quotas do."""
        self._tokens = min(self.burst, self.tokens(now_ms) - n)

    def admit(self, n: float, now_ms: int) -> bool:
        """Take N if K >= 0, as strict quotas do (``StrictControllerMutationQuota.record``)."""
        if self.tokens(now_ms) < 0:
            return False
        self.record(n, now_ms)
        return True

    def throttle_ms(self, now_ms: int) -> int:
        """``ControllerMutationQuotaManager.throttleTimeMs``: until K is 0, rounded to ms; 0 if K >= 0."""
        tokens = self.tokens(now_ms)
        # Divided first and rounded last, as in Kafka: another order could round to another millisecond.
        return 0 if tokens >= 0 else to_long(divide(-tokens, self.quota) * 1000)


class SpreadRate(ABC):
    """What the two rates share: the windows of one client, over which each mutation is spread."""

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` is Q per second, ``samples`` S, ``window_ms`` W; all are above 0."""
        self._quota, self._samples, self._window_ms = quota, samples, window_ms
        self._span_s = samples * window_ms / 1000.0
        self._held = [0.0] * samples  # the oldest first, the present one last
        self._index = 0

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """The contents of each window, the oldest first."""
        self._pass_windows(now_ms)
        return tuple(self._held)

    def measure(self, now_ms: int) -> float:
        """R, per second."""
        self._pass_windows(now_ms)
        return math.fsum(self._held) / self._span_s

    def admit(self, n: float, now_ms: int) -> bool:
        """Record N iff R allows it. N itself doesn't count: as many as a request asks for."""
        if not self._allows(self.measure(now_ms)):
            return False
        self.record(n, now_ms)
        return True

    def throttle_s(self, now_ms: int) -> float:
        """``(R - Q) / Q x S x W`` in seconds, 0 if R <= Q."""
        return max(0.0, (self.measure(now_ms) - self._quota) / self._quota * self._span_s)

    @abstractmethod
    def record(self, n: float, now_ms: int) -> None:
        """Spread N over the windows, whatever R is."""

    @abstractmethod
    def _allows(self, rate: float) -> bool:
        """Whether a mutation is admitted at this R."""

    def _pass_windows(self, now_ms: int) -> None:
        index = now_ms // self._window_ms
        # At most all of them: the first call comes from time 0 to now, and a silent client may skip any number.
        passed = max(0, min(index - self._index, self._samples))
        self._held = self._held[passed:] + [0.0] * passed
        self._index = index


class RevisionDiffRate(SpreadRate):
    """The diff's rate: past windows are filled up to Q, and the present one takes the rest. Admitted iff R <= Q.

    The document's 560 mutations make 99 samples of 5 and one of 65. Its weakness: a present window is forgotten after S
    windows, however far it exceeded Q, where the token bucket keeps the debt. So in the long run more than Q passes,
    by up to ``Q x S x W`` and one request for every S windows.
    """

    def record(self, n: float, now_ms: int) -> None:
        """Fill the past windows up to Q, the oldest first, and add what is left of N to the present one."""
        self._pass_windows(now_ms)
        full = self._quota * self._window_ms / 1000.0
        for i, filled in enumerate(self._held[:-1]):
            # A past window may be more than full: it took the rest of a burst while it was the present one.
            part = min(n, max(0.0, full - filled))
            self._held[i] += part
            n -= part
        self._held[-1] += n

    def _allows(self, rate: float) -> bool:
        return rate <= self._quota


class Version15Rate(SpreadRate):
    """Version 15's rate: each window takes an equal part of every mutation. Admitted iff R < Q, not at Q itself.

    "Instead of having one sample equal to 560 in the last window, we will have 100 samples equal to 5.6." Kafka has
    neither this form nor the page's quota ``controller_mutations_burst``. The page contradicts itself: "the client must
    wait" 12 s after 560 mutations, and "dropping 12 samples brings the rate below the quota", but 11 samples do:
    89 x 5.6 / 100 = 4.984. At exactly Q the wait is 0 s, and the mutation is refused. Its weakness: N counts for S
    windows, but by half on average. So even a steady client gets nearly twice Q in the long run, ``2 x S / (S + 1)``,
    and a request far above the burst is forgotten after S windows.
    """

    def record(self, n: float, now_ms: int) -> None:
        """Add N / S to each of the S windows."""
        self._pass_windows(now_ms)
        self._held = [held + n / self._samples for held in self._held]

    def _allows(self, rate: float) -> bool:
        return rate < self._quota


def samples_of_burst(rate: float, burst: float, window_ms: int = 1000) -> int:
    """S for ``controller_mutations_rate`` R and ``_burst`` B, both above 0: ``B / (R x W)``, rounded up."""
    # 9 digits: by binary fractions 1.1 / 0.1 is a little more than 11.
    return max(1, math.ceil(round(burst / rate * 1000 / window_ms, 9)))
