"""Kafka's ``TokenBucket`` (``org.apache.kafka.common.metrics.stats``), which KIP-599 ended with.

The tokens K grow by R a second up to B: ``K = min(K + (now - T) x R, B)``. A mutation of N partitions is admitted
iff K >= 0, and takes N, so K may go negative; then the throttle time is ``-K / R``. R is the quota Q, and B is
``Q x S x W`` for S samples of W seconds.
"""

from __future__ import annotations

from quotahost.throttling.javamath import divide, to_long


class TokenBucket:
    """The tokens of one client. As in Kafka they are 0 at time 0: by today's clock, the bucket begins full."""

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` per second; ``samples`` and ``window_ms`` as ``MetricConfig`` has them."""
        self.quota = quota
        self.burst = samples * (window_ms / 1000.0) * quota
        self._tokens, self._updated_ms = 0.0, 0

    def tokens(self, now_ms: int) -> float:
        """``TokenBucket.measure``: K."""
        grown = self._tokens + self.quota * ((now_ms - self._updated_ms) / 1000.0)
        self._tokens, self._updated_ms = min(self.burst, grown), now_ms
        return self._tokens

    def record(self, n: float, now_ms: int) -> None:
        """``TokenBucket.record``: take N, whether there are any or not, as permissive quotas do."""
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
        return 0 if tokens >= 0 else to_long(divide(-tokens, self.quota) * 1000)
