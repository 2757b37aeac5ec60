"""A supplier's answers: of the right type, from memory, and the same until the supplier announces another.

Private; ``check_supplier`` asks for all answers after each event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from quotahost.api import QuotaSupplier
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType
from quotahost.testing.caller import ContractBroken
from quotahost.testing.host import FakeHost

FROM_MEMORY: Final = 0.01  # seconds; 20,000 clients may be new at once, and are asked for one after the other
_NEVER_NAMED: Final = "a client-id that no property names"
TRIES: Final = 5  # one slow answer may be the machine's fault; so many are the plugin's


class Answers:
    """The supplier's last answer for each client and quota type."""

    def __init__(self, host: FakeHost[QuotaSupplier], clients: Sequence[Client]) -> None:
        """Ask for all of them."""
        self._host, self._clients = host, clients
        self.forget()

    def forget(self) -> None:
        """Ask for all again, as the host does when properties have changed."""
        self._announced_before = len(self._host.announced)
        self._known = self._ask()

    def expect_announced(self, after: str) -> None:
        """Ask for all again: the supplier must have announced every answer that differs.

        Raises:
            AssertionError: it did not.
        """
        answers = self._ask()
        announced = self._host.announced[self._announced_before :]
        # An announcement too many costs a question; one too few leaves a client with its old quota.
        for (client, quota_type), answer in answers.items():
            before = self._known[client, quota_type]
            if answer != before and not _covered(client, announced):
                raise ContractBroken(
                    10,
                    f"after {after} the {quota_type} quota of {_named(client)} is {answer}, not {before} any "
                    "more, without a call of answers_changed for it: the broker would keep the old one",
                )
        self._announced_before, self._known = len(self._host.announced), answers

    def _ask(self) -> dict[tuple[Client, QuotaType], Quota | None]:
        answers = {(client, each): self._answer(client, each) for client in self._clients for each in QUOTA_TYPES}
        distinct = getattr(self._host.plugin, "distinct_client_ids", None)
        if callable(distinct):
            for principal in dict.fromkeys(client.principal for client in self._clients):
                self._check_alike(principal, distinct)
        return answers

    def _check_alike(self, principal: str, distinct: Callable[[str], object]) -> None:
        """The client-ids that the supplier doesn't name have the same quotas, those that nobody has seen, too."""
        what = f"distinct_client_ids({principal!r:.40})"
        named = self._host.call(what, lambda: distinct(principal))
        if named is None:
            return
        if isinstance(named, str) or not isinstance(named, Collection) or not all(isinstance(n, str) for n in named):
            raise ContractBroken(6, f"{what} answered {named!r:.200}: it answers a collection of texts or None")
        ids = dict.fromkeys([_NEVER_NAMED, *(client.client_id for client in self._clients)])
        others = [Client(principal, each) for each in ids if each not in named]
        for quota_type in QUOTA_TYPES:
            quotas = self._host.call("quota()", partial(self._quotas, others, quota_type))
            for client, quota in zip(others, quotas, strict=True):
                if quota != quotas[0]:
                    raise ContractBroken(
                        11,
                        f"the {quota_type} quota of {_named(client)} is {quota}, that of {_named(others[0])} is "
                        f"{quotas[0]}, and {what} names neither: the broker would give both the same",
                    )

    def _quotas(self, clients: Sequence[Client], quota_type: QuotaType) -> list[Quota | None]:
        return [self._host.plugin.quota(client, quota_type) for client in clients]

    def _answer(self, client: Client, quota_type: QuotaType) -> Quota | None:
        what = f"quota() for {_named(client)}, {quota_type},"
        answer, seconds = self._host.call(what, lambda: self._quickest(client, quota_type))
        if answer is not None and not isinstance(answer, Quota):
            raise ContractBroken(6, f"{what} answered {answer!r}: a supplier answers a Quota or None")
        if seconds > FROM_MEMORY:
            slow = f"{what} took {seconds * 1000:.0f} ms at best"
            raise ContractBroken(3, f"{slow}: it must answer from memory, and wait for nothing")
        return answer

    def _quickest(self, client: Client, quota_type: QuotaType) -> tuple[Any, float]:
        """The last answer, and the seconds of the quickest; it asks again only if one was slow."""
        # It ends well before call() gives up, so that a slow supplier is reported as slow and not as one that hangs.
        best, end = float("inf"), time.monotonic() + self._host.patience / 2
        for _ in range(TRIES):
            begin = time.perf_counter()
            answer = self._host.plugin.quota(client, quota_type)
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
    # Kafka lets a client-id have 32,767 bytes, and the samples have one of that length.
    principal, client_id = (repr(n if len(n) <= 40 else n[:40] + "…") for n in client)
    return f"principal {principal}, client-id {client_id}"
