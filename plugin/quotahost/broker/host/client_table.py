"""Who uses what as JMX shows it: the rows of ``quotahost:type=Clients``, which Java asks for when somebody reads it.

Java (``org.quotahost.metrics.ClientTable``) asks seldom and keeps the rows; it makes a table of them and nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final
from urllib.parse import quote

from quotahost.background import LoggedOnce, StartThread
from quotahost.model.use import ClientUse

_log = logging.getLogger("quotahost.host")

_NONE: Final = "NaN"  # for Java: a quota or limit that is unlimited


class ClientTable:
    """Answers Java's event ``clients-table``, on a thread of its own: with 50,000 active clients a look takes long."""

    def __init__(
        self, uses: Callable[[int], list[ClientUse]], reply: Callable[[str, str], None], start_thread: StartThread
    ) -> None:
        """Nobody has asked yet.

        Args:
            uses: who uses what; at most so many rows.
            reply: ``Shim.answer``.
            start_thread: a thread that leaves the JVM at its end.
        """
        self._uses, self._reply, self._start_thread = uses, reply, start_thread
        self._thread: threading.Thread | None = None
        self._fault = LoggedOnce(_log)

    def answer(self, ticket: str, most: int) -> None:
        """Answer with at most so many rows (``metrics.clients``), a moment later.

        While an earlier answer is still being made there is none, and Java waits for it in vain.
        """
        if self._thread is None or not self._thread.is_alive():
            self._thread = self._start_thread("clients", partial(self._answer, ticket, most))

    def _answer(self, ticket: str, most: int) -> None:
        try:
            text = lines(self._uses(most) if most else ())
        except (ConnectionError, ValueError) as error:
            self._fault.report("The table of clients can't be made (%s): JMX shows an empty one", error)
            return
        self._fault.healed()
        self._reply(ticket, text)


def lines(uses: Iterable[ClientUse]) -> str:
    """A line for each that has a rate or is held back: its columns, percent-encoded, with spaces between."""
    return "\n".join(_line(each) for each in uses if each.rate or each.is_held_back)


def _line(use: ClientUse) -> str:
    texts = (use.user, use.client_id, use.scope, use.quota_type)
    numbers = (use.rate, use.quota, use.limit, use.share, use.delay_ms)
    shown = [_NONE if each is None else repr(float(each)) for each in numbers]
    # What a client sends may hold half a surrogate pair, which neither UTF-8 nor Java's decoder knows.
    return " ".join([*(quote(each, safe="", errors="replace") for each in texts), *shown, quote(use.bound_by)])
