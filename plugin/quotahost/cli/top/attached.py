"""Looks at a running broker of this machine again and again, by one connection to it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from quotahost.broker.host.looks import parse
from quotahost.cli.explain.query import Asked, Unanswered
from quotahost.model.look import Look

MOST: Final = 1_000  # scopes of one look


class Attached:
    """Use it in a ``with`` block. A broker that has been restarted is found again."""

    def __init__(self, which: str = "", most: int = MOST) -> None:
        """Look at a broker (``quotahost.cli.explain.query.named``), at so many rows at most.

        Whether there is such a broker shows at the first look.
        """
        self._which, self._most = which, most
        self._asked: Asked | None = None

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def look(self) -> Look:
        """What the broker says now.

        Raises:
            Unanswered: there is no such broker, it has ended, or can't be asked.
        """
        if self._asked is not None:
            # It ends a connection that has been idle for a minute, and there may be another broker by now.
            with suppress(Unanswered):
                return self._look(self._asked)
        self._asked = Asked(self._which)
        return self._look(self._asked)

    def _look(self, asked: Asked) -> Look:
        try:
            # One more tells whether there are more.
            return parse(asked.ask("uses", str(self._most + 1))).first(self._most)
        except ValueError as problem:
            raise asked.older(problem) from None
        except Unanswered:
            self._leave()
            raise

    def _leave(self) -> None:
        if self._asked is not None:
            self._asked.__exit__()
            self._asked = None
