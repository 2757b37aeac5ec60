"""KIP-599's rate as the revision diff of its page has it: past windows are filled to the quota, the rest comes last.

The diff shows two forms. The other one is the token bucket, which Kafka has (:mod:`quotahost.throttling.token_bucket`).
Version 15 of the page has a third (:mod:`quotahost.throttling.kip_599_v15`). No class of Kafka has the form of this
module: "allocate the burst to all the previous window up to Q and to allocate the remaining part the the current
window". A mutation is admitted iff R <= Q. The document's 560 mutations make 99 samples of 5 and one of 65.

The document leaves open:

- which past window is filled first. Here it is the oldest, so that a small N is forgotten as soon as the token bucket
  would have grown it back;
- whether "up to Q" counts what a window holds. Here it does: a second burst fills the room that is left;
- what a full window means if W is not 1 s. Here it holds Q x W;
- where a window begins. Here at multiples of W, so that the first one passes up to W after a burst; all S are there,
  empty, when a client's first request comes, and the present one is one of them.

Its weakness: this form forgets a present window after S windows, however far it exceeded Q, where the token bucket
keeps the debt. So in the long run it lets more than Q pass, by up to ``Q x S x W`` and one request for every S windows.
"""

from __future__ import annotations

from quotahost.throttling.spread_rate import SpreadRate


class RevisionDiffRate(SpreadRate):
    """The windows of one client; a past one is filled up to Q."""

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
