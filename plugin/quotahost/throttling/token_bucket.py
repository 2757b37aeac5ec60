"""Kafka's ``TokenBucket``, the form in which KIP-599 was adopted: CONTROLLER_MUTATION quotas.

It is one of the two forms that the revision diff of the KIP's page shows. Version 15 of the page rejects it "in order
to remain consistent with the existing quota". The rates that these documents have instead are in
:mod:`quotahost.throttling.kip_599_diff` and :mod:`quotahost.throttling.kip_599_v15`.

The model follows these lines of Kafka 4.3.1, and ``tests/throttling`` compares it with those classes in a JVM:
``org.apache.kafka.common.metrics.stats.TokenBucket`` (``measure`` 76-81, ``record`` 86-92, ``refill`` 95-97),
``StrictControllerMutationQuota.record`` 55-65 and ``ControllerMutationQuotaManager.throttleTimeMs`` 181
(both in ``org.apache.kafka.server.quota``).

The tokens K grow by R a second up to B: ``K = min(K + (now - T) x R, B)``. A mutation of N partitions is admitted
iff K >= 0, and takes N, so K may go negative; then the throttle time is ``-K / R``. (The diff's definition says
``-K * R``, which is no time; its example divides, and so does Kafka.) R is the quota Q, and B is ``Q x S x W`` for S
samples of W seconds.
"""

from __future__ import annotations

from quotahost.throttling.javamath import divide, to_long


class TokenBucket:
    """The tokens of one client. As in Kafka they are 0 at time 0: by today's clock, the bucket begins full."""

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
