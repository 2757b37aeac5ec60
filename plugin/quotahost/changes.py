"""Whose answers changed, told by plugins from any thread, taken by the host."""

from __future__ import annotations

import threading
from typing import Final

EVERYONE: Final = (None, None)
WORTH_TELLING_APART: Final = 100


class Changes:
    """Whose answers changed, as (principal, client-id), None for any. Filled from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whom: set[tuple[str | None, str | None]] = set()

    def add(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``.

        Raises:
            TypeError: a name that is neither text nor None.
        """
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        with self._lock:
            self._whom.add((principal, client_id))

    def take(self) -> set[tuple[str | None, str | None]]:
        """All so far; just EVERYONE if that is among them or they are too many to be worth telling apart."""
        with self._lock:
            whom, self._whom = self._whom, set()
        return {EVERYONE} if EVERYONE in whom or len(whom) > WORTH_TELLING_APART else whom
