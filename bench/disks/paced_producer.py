"""A producer that offers the same rate all the time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from harness.clients.producer import ProducerLoad

_BEHIND: Final = 0.05  # seconds that are caught up


class PacedProducer(ProducerLoad):
    """Forgets what it could not send while it was held up, where ProducerLoad catches up."""

    def __init__(self, config: Mapping[str, Any], topic: str, rate: float, record_size: int = 10_000) -> None:
        """``rate`` in bytes/s; else as ProducerLoad."""
        super().__init__(config, topic, record_size, rate)
        self._apart: Final = record_size / rate
        self._due = 0.0

    def _is_ahead(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return True
        self._due = max(self._due, now - _BEHIND) + self._apart
        return False
