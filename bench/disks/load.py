"""A producer whose recovery can be measured."""

import time
from collections.abc import Mapping
from typing import Any, Final

from harness.clients.producer import ProducerLoad

_BEHIND: Final = 0.05  # seconds of delay that a paced producer does catch up on


class PacedProducer(ProducerLoad):
    """Offers the same rate all the time: after a stop it goes on at its rate, where ProducerLoad would catch up."""

    def __init__(self, config: Mapping[str, Any], topic: str, rate: float, record_size: int = 10_000) -> None:
        """Like ProducerLoad; ``rate`` is in bytes/s."""
        super().__init__(config, topic, record_size, rate)
        self._apart: Final = record_size / rate
        self._due = 0.0

    def _is_ahead(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return True
        self._due = max(self._due, now - _BEHIND) + self._apart
        return False
