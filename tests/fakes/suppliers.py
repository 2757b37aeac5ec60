"""Suppliers of one quota, and what the host finds when it asks several of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quotahost.broker.host.messages import Answers
from quotahost.broker.host.new_clients import Resolver
from quotahost.broker.host.plugins import Guard
from quotahost.model import Client, Quota
from tests.fakes.shim import FakeShim


@dataclass(frozen=True)
class Supplier:
    """Answers by two functions; ``distinct_client_ids`` may be missing."""

    quota: Callable[..., Any]
    distinct_client_ids: Callable[[str], Any] | None = None


def supplier(quota: Quota | None, distinct: Any = None) -> Supplier:
    """Gives everybody this quota and names these client-ids; with None it doesn't know them."""
    return Supplier(lambda _client, _type: quota, None if distinct is None else lambda _principal: distinct)


def resolved(
    suppliers: Mapping[str, Supplier], clients: Sequence[Client], combine: str = "first",
    in_shadow: Collection[str] = (), guard: Guard | None = None,
) -> Answers:  # fmt: skip
    """The answers for these clients."""
    named: list[tuple[str, Any]] = list(suppliers.items())
    report = (guard or Guard(FakeShim())).report
    return Resolver(named, lambda *failed: report(*failed[:-1]), combine, in_shadow).answers(clients)
