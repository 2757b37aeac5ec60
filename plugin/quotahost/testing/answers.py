"""A supplier's answers: of the right type, from memory, and the same until another is announced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType
from quotahost.testing.caller import broken
from quotahost.testing.host import HANGS, FakeHost

FROM_MEMORY: Final = 0.01  # seconds; 20,000 clients may be new at once, and are asked for one after the other
TRIES: Final = 5  # one slow answer may be the machine's fault; so many are the plugin's


class Answers:
    """What the supplier last said of each client."""

    def __init__(self, host: FakeHost, clients: Sequence[Client]) -> None:
        """Ask for all of them."""
        self._host, self._clients = host, clients
        self._seen = 0
        self._known: dict[tuple[Client, QuotaType], Any] = {}
        self.forget()

    def forget(self) -> None:
        """Ask for all again, as the host does when properties have changed."""
        self._seen = len(self._host.announced)
        self._known = self._ask()

    def expect_announced(self, after: str) -> None:
        """Ask for all again: what differs must have been announced.

        Raises:
            AssertionError: it wasn't.
        """
        news = self._ask()
        announced = self._host.announced[self._seen :]
        for (client, quota_type), answer in news.items():
            before = self._known[client, quota_type]
            if answer != before and not _covered(client, announced):
                raise broken(
                    10,
                    f"after {after} the {quota_type} quota of {_named(client)} is {answer}, not {before} any "
                    "more, without a call of answers_changed for it: the broker would keep the old one",
                )
        self._seen, self._known = len(self._host.announced), news

    def _ask(self) -> dict[tuple[Client, QuotaType], Quota | None]:
        return {
            (client, quota_type): self._one(client, quota_type)
            for client in self._clients
            for quota_type in QUOTA_TYPES
        }

    def _one(self, client: Client, quota_type: QuotaType) -> Quota | None:
        what = f"quota() for {_named(client)}, {quota_type},"
        answer, took = self._host.call(what, lambda: _quickest(self._host.plugin, client, quota_type))
        if answer is not None and not isinstance(answer, Quota):
            raise broken(6, f"{what} answered {answer!r}: a supplier answers a Quota or None")
        if took > FROM_MEMORY:
            raise broken(
                3,
                f"{what} took {took * 1000:.0f} ms at best: it must answer from memory, and wait for nothing",
            )
        return answer


def _quickest(plugin: Any, client: Client, quota_type: QuotaType) -> tuple[Any, float]:
    """The last answer, and the time of the quickest; asked again only where one was slow."""
    best, end = float("inf"), time.monotonic() + HANGS / 2
    for _ in range(TRIES):
        begin = time.perf_counter()
        answer = plugin.quota(client, quota_type)
        best = min(best, time.perf_counter() - begin)
        if best <= FROM_MEMORY or time.monotonic() > end:
            break
    return answer, best


def _covered(client: Client, announced: Sequence[tuple[str | None, str | None]]) -> bool:
    return any(
        principal in (None, client.principal) and client_id in (None, client.client_id)
        for principal, client_id in announced
    )


def _named(client: Client) -> str:
    principal, client_id = (repr(n if len(n) <= 40 else n[:40] + "…") for n in client)
    return f"principal {principal}, client-id {client_id}"
