"""For whom plugins have announced that their answers changed: ``Context.answers_changed`` adds, the loop takes.

The loop has the clients concerned, and their principals, resolved again (``resolver``).
"""

from __future__ import annotations

import threading
from typing import Final, TypeAlias

Whom: TypeAlias = tuple[str | None, str | None]  # principal and client-id, None for any

EVERYONE: Final[Whom] = (None, None)
# Announcements: for more than these, one walk through all clients costs less than a walk for each.
MOST_APART: Final = 100


class ChangedAnswers:
    """For whom plugins have announced that their answers changed. Any thread adds, the host thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whom: set[Whom] = set()

    def add(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``.

        Raises:
            TypeError: a name that is neither text nor None.
        """
        # The error must come up on the plugin's own thread: the host thread no longer knows who announced what.
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        with self._lock:
            self._whom.add((principal, client_id))

    def take(self) -> set[Whom]:
        """The announcements since the last call; EVERYONE alone if they contain it, or are more than MOST_APART."""
        with self._lock:
            whom, self._whom = self._whom, set()
        return {EVERYONE} if EVERYONE in whom or len(whom) > MOST_APART else whom
