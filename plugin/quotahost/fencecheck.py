"""Says once, soon after the start, when no fence stands that could hold a PAUSE."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from quotahost.settings import Settings
from quotahost.shim import Shim

log = logging.getLogger("quotahost.factor")

_SETTLED: Final = 5.0  # seconds: a broker makes its authorizer after its callback


class FenceCheck:
    """Looks once for a fence, when there is a factor source and the broker has settled."""

    def __init__(self, shim: Shim, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._clock = shim, clock
        self._at = clock() + _SETTLED
        self._done = False

    def step(self, has_source: bool, settings: Settings) -> None:
        """Look, if it is time and there is something to hold."""
        if self._done or not has_source or settings.mode == "shadow" or self._clock() < self._at:
            return
        self._done = True
        if not self._shim.fence():
            log.warning(
                "authorizer.class.name is not org.quotahost.QuotaFence: nothing holds a PAUSE; it only slows each "
                "producer to floor.bytes, and who opens new connections gets around that"
            )
