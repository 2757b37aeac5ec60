"""What a roll-up goes by."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

MAX_NAME: Final = (
    256  # characters of a name in a cluster's record: with longer ones it would not fit into one
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which brokers count.

    Attributes:
        cluster: the cluster of snapshots that don't name theirs.
        validity: how old a broker's newest snapshot may be; then the broker is stale.
        expiry: how long a stale broker is listed; then it is forgotten.
        registered: ids of the cluster's brokers, as the cluster itself tells them.
    """

    cluster: str
    validity: timedelta = timedelta(minutes=1)
    expiry: timedelta = timedelta(days=1)
    registered: Collection[str] = field(default_factory=tuple)
