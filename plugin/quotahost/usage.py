"""What clients use of cluster-wide quotas, and what share of these each broker has, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from quotahost.model import QuotaType

MAX_CLIENTS: Final = 256
MAX_NAMES: Final = 120_000  # bytes of all names in UTF-8; JSON may write each as six


class ClientKey(NamedTuple):
    """Whose quota: user and client-id as in ``quotahost.model.Client``, and the type."""

    user: str
    client_id: str
    quota_type: QuotaType


@dataclass(frozen=True, slots=True)
class Used:
    """One client's use of its cluster-wide quota on one broker.

    Attributes:
        key: whose.
        rate: bytes/s as measured there.
        demand: bytes/s that it would use there; None wants all that it can get.
        quota: bytes/s that it may use in the whole cluster.
    """

    key: ClientKey
    rate: float
    demand: float | None
    quota: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What one broker tells of its busiest clients; ``taken_at`` in UTC, ``cluster`` "" while unknown."""

    broker: str
    taken_at: datetime
    clients: tuple[Used, ...]
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker may let pass of one client's cluster-wide quota; both in bytes/s."""

    key: ClientKey
    share: float
    quota: float


@dataclass(frozen=True, slots=True)
class Shares:
    """All shares of one broker.

    Attributes:
        broker: its id.
        run: when the pipeline that computed them was started, in ms since 1970.
        sequence: counts within the run; the larger (run, sequence) is the newer.
        computed_at: in UTC, by the pipeline's clock.
        clients: one for each client.
        cluster: its id, "" if the pipeline doesn't know it.
    """

    broker: str
    run: int
    sequence: int
    computed_at: datetime
    clients: tuple[Share, ...]
    cluster: str = ""


_Entry = TypeVar("_Entry", Used, Share)


def fitting(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """The first of them, as many as one record holds: MAX_CLIENTS, with names of MAX_NAMES bytes together."""
    names = 0
    for number, entry in enumerate(entries):
        names += octets(entry.key)
        if number == MAX_CLIENTS or names > MAX_NAMES:
            return
        yield entry


def octets(key: ClientKey) -> int:
    """How long its names are, in bytes of UTF-8."""
    return len(key.user.encode(errors="replace")) + len(key.client_id.encode(errors="replace"))
