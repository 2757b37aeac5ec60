"""Who the clients are and what quotas they have: what a supplier is asked and answers. Public, by the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, NamedTuple


class QuotaType(StrEnum):
    """Kafka's ``ClientQuotaType``, in its order: the host and Java exchange a type as its index.

    Units of a rate: PRODUCE and FETCH bytes/s (KIP-13), REQUEST percent of one thread's time (KIP-124),
    CONTROLLER_MUTATION partition mutations/s (KIP-599).
    """

    PRODUCE = "PRODUCE"
    FETCH = "FETCH"
    REQUEST = "REQUEST"
    CONTROLLER_MUTATION = "CONTROLLER_MUTATION"


QUOTA_TYPES: Final = tuple(QuotaType)  # all four, in Kafka's order
MAX_RATE: Final = sys.float_info.max  # the largest rate that a quota takes
MAX_NAME: Final = 1024  # characters of a group's name, which must go to Java with thousands of others


class Client(NamedTuple):
    """A client, as Kafka shows it to a ``ClientQuotaCallback`` (KIP-257).

    It is a NamedTuple since 20,000 of them may be made and hashed at once when a broker starts.
    """

    principal: str  # the name of the client's principal, as it is (Kafka's metrics have it URL-encoded)
    client_id: str  # as it is; it may be empty and contain any character


class ScopeKind(Enum):
    """How wide a quota is shared. The value is the code by which the shim knows it."""

    CLIENT = 0
    USER = 1
    CLIENT_ID = 2
    BROKER = 3
    GROUP = 4


@dataclass(frozen=True, slots=True)
class Scope:
    """Which clients share one quota: Kafka measures all clients with the same scope together.

    Kafka's metric tags (user, client-id) follow from it: CLIENT has both, USER (user, ""), CLIENT_ID ("", client-id),
    BROKER one pair for all clients, GROUP one pair for all clients of that group. Raises ValueError where a group has
    no name or one of more than 1,024 characters, or another kind has one, and where it is of no kind.
    """

    kind: ScopeKind
    name: str = ""  # the group's; "" for the other kinds

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
        """A scope shared by every client that is given the same non-empty name."""
        return Scope(ScopeKind.GROUP, name)


# A class can have attributes of its own type only after it was made.
Scope.CLIENT = Scope(ScopeKind.CLIENT)
Scope.USER = Scope(ScopeKind.USER)
Scope.CLIENT_ID = Scope(ScopeKind.CLIENT_ID)
Scope.BROKER = Scope(ScopeKind.BROKER)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a client may use, before any factor.

    Kafka up to 4.3 does not throttle at all for a limit of 0, NaN or infinity, so a quota refuses these: ValueError.
    """

    rate: float | None  # a second, in the unit of its QuotaType; None is unlimited
    scope: Scope = Scope.CLIENT  # which clients share the rate

    def __post_init__(self) -> None:
        rate = self.rate
        if type(self.scope) is not Scope:
            raise ValueError(f"quota scope must be a Scope, such as Scope.USER, not {self.scope!r}")
        if rate is None:
            return
        # For isinstance a bool is an int: True would be a quota of one byte a second.
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ValueError(f"quota rate must be a number or None (unlimited), not {rate!r}")
        # NaN fails any comparison, so it is refused here as well.
        if not 0 < rate <= MAX_RATE:
            raise ValueError(
                f"quota rate {rate!r} must be finite and above 0: Kafka does not throttle at all "
                "for such a limit; give a small rate to slow a client, None for unlimited"
            )


UNLIMITED: Final = Quota(None)  # for each client alone


# An enum, not the text: a user may bear the name <default>.
class Default(Enum):
    """Kafka's ``<default>`` entity in a client quota."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT  # in a QuotaEntity, in place of a name


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom one of Kafka's client quotas is set for. None is "not named"; ``DEFAULT`` is Kafka's default entity."""

    user: str | Default | None = None
    client_id: str | Default | None = None


@dataclass(frozen=True, slots=True)
class ClientQuotaChange:
    """One of Kafka's own client quotas was set to a rate, or removed (``rate=None``)."""

    quota_type: QuotaType
    entity: QuotaEntity
    rate: float | None
