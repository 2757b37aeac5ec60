"""The host asks a supplier about a Client, and gets a Quota; this module has both. Public through the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, NamedTuple


class QuotaType(StrEnum):
    """Kafka's ``ClientQuotaType``, in the same order, because the host and Java exchange a type as its index.

    The units of rates are bytes/s for PRODUCE and FETCH (KIP-13), percent of one thread's time for REQUEST (KIP-124),
    and partition mutations/s for CONTROLLER_MUTATION (KIP-599).
    """

    PRODUCE = "PRODUCE"
    FETCH = "FETCH"
    REQUEST = "REQUEST"
    CONTROLLER_MUTATION = "CONTROLLER_MUTATION"

    __hash__ = str.__hash__  # faster than Enum's, which is Python code: suppliers look types up for each new client


QUOTA_TYPES: Final = tuple(QuotaType)  # all four, in Kafka's order
MAX_RATE: Final = sys.float_info.max  # the largest rate that a quota accepts
MAX_NAME: Final = 1024  # characters in a group's name: the host sends thousands of names to Java in one call


class Client(NamedTuple):
    """A client, as Kafka shows it to a ``ClientQuotaCallback`` (KIP-257).

    A NamedTuple, because 20,000 clients may be created and hashed at once when a broker starts.
    """

    principal: str  # the name of the client's principal, not URL-encoded (Kafka's metrics have it URL-encoded)
    client_id: str  # the client-id, not encoded; it may be empty and contain any character


class ScopeKind(Enum):
    """The kinds of scopes. Each value is the code that the host sends to Java."""

    CLIENT = 0
    USER = 1
    CLIENT_ID = 2
    BROKER = 3
    GROUP = 16  # 4 is NEWCOMER, which no supplier answers


@dataclass(frozen=True, slots=True)
class Scope:
    """The clients that share one quota: Kafka measures all clients of a scope together.

    The scope decides Kafka's metric tags (user, client-id): CLIENT has both tags, USER only the user, CLIENT_ID only
    the client-id, BROKER one pair for all clients, GROUP one pair for all clients of the group. Raises ValueError if a
    group's name is empty or longer than 1,024 characters, if another kind has a name, or if ``kind`` is no ScopeKind.
    """

    kind: ScopeKind
    name: str = ""  # the group's name; "" for the other kinds

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ScopeKind):
            raise ValueError(f"a scope must be of a ScopeKind, not {self.kind!r:.200}")
        if not isinstance(self.name, str) or (self.kind is ScopeKind.GROUP) != bool(self.name):
            raise ValueError(f"a group scope, and only that, needs a non-empty name, not {self.name!r:.200}")
        if len(self.name) > MAX_NAME:
            raise ValueError(f"a group's name has at most {MAX_NAME:,} characters, not {len(self.name):,}")

    CLIENT: ClassVar[Scope]
    USER: ClassVar[Scope]
    CLIENT_ID: ClassVar[Scope]
    BROKER: ClassVar[Scope]

    @staticmethod
    def group(name: str) -> Scope:
        """The scope of all clients to whom suppliers give the same non-empty name."""
        return Scope(ScopeKind.GROUP, name)


# A class body can't create instances of its own class, so these attributes are set here.
Scope.CLIENT = Scope(ScopeKind.CLIENT)
Scope.USER = Scope(ScopeKind.USER)
Scope.CLIENT_ID = Scope(ScopeKind.CLIENT_ID)
Scope.BROKER = Scope(ScopeKind.BROKER)


@dataclass(frozen=True, slots=True)
class Quota:
    """The rate that a client, or all clients of a scope, may use, before any factor.

    Raises ValueError for a rate of 0, NaN or infinity: Kafka up to 4.3 does not throttle at all for such a limit.
    """

    rate: float | None  # per second, in the unit of the QuotaType; None is unlimited
    scope: Scope = Scope.CLIENT  # the clients that share the rate

    def __post_init__(self) -> None:
        rate = self.rate
        if type(self.scope) is not Scope:
            raise ValueError(f"quota scope must be a Scope, such as Scope.USER, not {self.scope!r}")
        if rate is None:
            return
        # isinstance takes a bool for an int: True would be a quota of one byte a second.
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ValueError(f"quota rate must be a number or None (unlimited), not {rate!r}")
        # This also refuses NaN, which fails any comparison.
        if not 0 < rate <= MAX_RATE:
            raise ValueError(
                f"quota rate {rate!r} must be finite and above 0: Kafka does not throttle at all "
                "for such a limit; give a small rate to slow a client, None for unlimited"
            )


UNLIMITED: Final = Quota(None)  # the unlimited quota, with the scope CLIENT


# An enum and not a str, because a user may have the name "<default>".
class Default(Enum):
    """Kafka's ``<default>`` entity in a client quota."""

    DEFAULT = "<default>"

    __hash__ = object.__hash__  # faster than Enum's


DEFAULT: Final = Default.DEFAULT  # stands in a QuotaEntity in place of a name


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """The entity of one of Kafka's client quotas. None: not part of it; ``DEFAULT``: Kafka's default entity."""

    user: str | Default | None = None
    client_id: str | Default | None = None


@dataclass(frozen=True, slots=True)
class ClientQuotaChange:
    """One of Kafka's own client quotas was set to a rate, or removed (``rate=None``)."""

    quota_type: QuotaType
    entity: QuotaEntity
    rate: float | None
