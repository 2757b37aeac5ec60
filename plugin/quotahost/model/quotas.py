"""Frozen value types that every other module speaks in: clients, quotas, scopes, factors, volumes, snapshots."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, NamedTuple


class QuotaType(StrEnum):
    """Kafka's ``ClientQuotaType``, in its order (the order is the wire format to the shim).

    Units of a rate: PRODUCE and FETCH bytes/s, REQUEST percent of one thread's time
    (KIP-124), CONTROLLER_MUTATION partition mutations/s (KIP-599).
    """

    PRODUCE = "PRODUCE"
    FETCH = "FETCH"
    REQUEST = "REQUEST"
    CONTROLLER_MUTATION = "CONTROLLER_MUTATION"


QUOTA_TYPES: Final = tuple(QuotaType)


MAX_RATE: Final = sys.float_info.max


class Client(NamedTuple):
    """Who asks, as Kafka shows it to a ``ClientQuotaCallback``: principal name and client-id.

    Both are unsanitized; ``client_id`` may be empty and may hold any character. A NamedTuple, since
    20,000 of them may be made and hashed at once when a broker starts.
    """

    principal: str
    client_id: str


class ScopeKind(Enum):
    """How wide a quota is shared. The value is the code by which the shim knows it."""

    CLIENT = 0
    USER = 1
    CLIENT_ID = 2
    BROKER = 3
    GROUP = 4


@dataclass(frozen=True, slots=True)
class Scope:
    """Who shares one quota: all clients with the same scope are measured as one.

    Kafka's metric tags follow from it: CLIENT (user, client-id), USER (user, ""),
    CLIENT_ID ("", client-id), BROKER one for all, GROUP one for all of that name.

    Raises:
        ValueError: a group without a name, or a name for another kind.
    """

    kind: ScopeKind
    name: str = ""

    def __post_init__(self) -> None:
        if (self.kind is ScopeKind.GROUP) != bool(self.name):
            raise ValueError(f"a group scope, and only that, needs a non-empty name, not {self.name!r}")

    CLIENT: ClassVar[Scope]
    USER: ClassVar[Scope]
    CLIENT_ID: ClassVar[Scope]
    BROKER: ClassVar[Scope]

    @staticmethod
    def group(name: str) -> Scope:
        """A scope shared by every client that is given the same non-empty name."""
        return Scope(ScopeKind.GROUP, name)


Scope.CLIENT = Scope(ScopeKind.CLIENT)


Scope.USER = Scope(ScopeKind.USER)


Scope.CLIENT_ID = Scope(ScopeKind.CLIENT_ID)


Scope.BROKER = Scope(ScopeKind.BROKER)


@dataclass(frozen=True, slots=True)
class Quota:
    """A rate per second (units: see QuotaType) and the scope that shares it.

    ``rate=None`` means unlimited. Kafka up to 4.3 does not throttle at all for a limit of 0,
    NaN or infinity, so these are refused here.

    Raises:
        ValueError: rate is not None and not a finite number above 0.
    """

    rate: float | None
    scope: Scope = Scope.CLIENT

    def __post_init__(self) -> None:
        rate = self.rate
        if not isinstance(self.scope, Scope):
            raise ValueError(f"quota scope must be a Scope, such as Scope.USER, not {self.scope!r}")
        if rate is None:
            return
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ValueError(f"quota rate must be a number or None (unlimited), not {rate!r}")
        if not 0 < rate <= MAX_RATE:
            raise ValueError(
                f"quota rate {rate!r} must be finite and above 0: Kafka does not throttle at all "
                "for such a limit; give a small rate to slow a client, None for unlimited"
            )


UNLIMITED: Final = Quota(None)


class Default(Enum):
    """Kafka's ``<default>`` entity in a client quota."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom a client quota names: user and/or client-id; ``DEFAULT`` for Kafka's default entity."""

    user: str | Default | None = None
    client_id: str | Default | None = None


@dataclass(frozen=True, slots=True)
class ClientQuotaChange:
    """One of Kafka's own client quotas was set (rate) or removed (``rate=None``)."""

    quota_type: QuotaType
    entity: QuotaEntity
    rate: float | None
