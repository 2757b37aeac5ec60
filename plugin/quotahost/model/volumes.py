"""A volume's limits give its factor (1 up to the soft limit, 0 from the hard limit on) and the end of a PAUSE.

1. A factor source returns :class:`ClusterVolumes`, or a :class:`Factor` (:func:`as_answer`).
2. :func:`byte_limits` converts a volume's limits to bytes, and :class:`ByteLimits` computes its factor, in whole bytes.
   The policies, ``doctor`` and the pipeline all use these two, so they get the same factor for the same volume, to the
   last bit. The pipeline's history is the exception: it converts a limit to bytes in SQL.
3. The host applies the smallest factor to all clients, or only to the writers of :class:`Affected` topics.

Volume, State, Factor and ClusterVolumes are public through :mod:`quotahost.model`; everything else is private.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quotahost.model.limits import Limit, exact
from quotahost.model.quotas import QuotaType

MAX_PATH: Final = 4096  # characters in a volume's name or broker: the longest path of Linux


@dataclass(frozen=True, slots=True)
class Volume:
    """One file store of one broker.

    Raises ValueError if a value has a wrong type, a size is below 0, or a name has more than 4,096 characters.
    """

    broker: str  # the broker's id
    name: str  # the volume's name on that broker
    capacity: int  # bytes
    consumed: int  # bytes; may be above ``capacity``, because file systems reserve blocks for root
    #: The published limits: the volume's own limits, else its broker's (proposal 035, snapshot note 2); None: no limit.
    soft: Limit | None = None
    hard: Limit | None = None
    #: The topics with a replica on the volume. None means all topics, because the broker has not listed them: a broker
    #: lists topics only above the soft limit, or if there is only a hard limit, where a PAUSE may still hold.
    topics: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for what, text in (("broker", self.broker), ("name", self.name)):
            if not isinstance(text, str) or len(text) > MAX_PATH:
                raise ValueError(
                    f"the {what} of a volume must be a string of at most {MAX_PATH:,} characters, not {text!r:.200}"
                )
        for what, size in (("capacity", self.capacity), ("consumed", self.consumed)):
            # isinstance takes a bool for an int: True would be a size of one byte.
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise ValueError(f"{what} of a volume must be a whole number of bytes from 0, not {size!r}")
        for what, limit in (("soft", self.soft), ("hard", self.hard)):
            if limit is not None and not isinstance(limit, Limit):
                raise ValueError(f"{what} of a volume must be a Limit or None, not {limit!r}")
        topics = frozenset() if self.topics is None else self.topics
        if type(topics) is not frozenset or not {*map(type, topics)} <= {str}:
            raise ValueError(f"topics of a volume must be a frozenset of strings or None, not {topics!r:.200}")

    @property
    def free(self) -> int:
        """The free bytes; 0 if the consumption exceeds the capacity."""
        return max(0, self.capacity - self.consumed)


class State(StrEnum):
    """The state that a factor means: OPEN for 1, PAUSE for 0, and THROTTLE for anything between."""

    OPEN = "OPEN"
    THROTTLE = "THROTTLE"
    PAUSE = "PAUSE"


@dataclass(frozen=True, slots=True)
class Factor:
    """The factor of every quota, and its cause. Raises ValueError if the value is not a number from 0 to 1."""

    value: float  # from 0.0 to 1.0: a client's limit is its quota times this value
    cause: str = ""  # the cause, in words for an operator; logs and metrics show it

    def __post_init__(self) -> None:
        value = self.value
        # NaN fails the comparison, so no factor can lead to a NaN limit, which Kafka would not enforce.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ValueError(f"factor {value!r:.200} must be a number from 0.0 to 1.0")
        if not isinstance(self.cause, str):
            raise ValueError(f"the cause of a factor must be a string, not {self.cause!r:.200}")
        # A comparison of a NumPy float returns no bool, hence float(). A frozen dataclass allows no normal assignment.
        object.__setattr__(self, "value", float(value))

    @property
    def state(self) -> State:
        """OPEN at 1, PAUSE at 0, THROTTLE between."""
        if self.value >= 1:
            return State.OPEN
        return State.PAUSE if self.value <= 0 else State.THROTTLE


@dataclass(frozen=True, slots=True)
class ClusterVolumes:
    """The latest fresh volumes of brokers in service, or why they are unknown. Raises ValueError for wrong types."""

    volumes: tuple[Volume, ...]  # the known volumes; they decide the factor even while other volumes are unknown
    #: One sentence for each broker or volume whose state is unknown. The host applies ``fallback.action`` at once, so a
    #: source itself waits, for example for ``validity``, before it reports a volume as unknown. A sentence is part of
    #: the factor's cause, and must not change at each read: it names no age.
    unknown: tuple[str, ...] = ()
    #: The data that a new source still waits for; "" for none. Waiting is no failure during ``startup.grace``.
    waiting: str = ""
    #: The budgets of storage as volumes, only from quotahost's own sources; None while the budgets are unknown.
    budgets: tuple[Volume, ...] | None = ()

    def __post_init__(self) -> None:
        # Checked here and not in the host: so a wrong value raises in the plugin's call and is the plugin's failure.
        listed = (
            ("volumes", Volume, self.volumes),
            ("unknown", str, self.unknown),
            ("budgets", Volume, self.budgets or ()),
        )
        for what, kind, values in listed:
            # A set of types is a fast check: a source may return 20,000 volumes.
            if type(values) is not tuple or not {*map(type, values)} <= {kind}:
                raise ValueError(f"{what} of ClusterVolumes must be a tuple of {kind.__name__}, not {values!r:.200}")
        if not isinstance(self.waiting, str):
            raise ValueError(f"waiting of ClusterVolumes must be a string, not {self.waiting!r:.200}")


def as_answer(answer: object, cause: str) -> ClusterVolumes | Factor | None:
    """A factor source's answer, with a plain number as a Factor; ``cause`` is the cause of a Factor that has none.

    Raises TypeError for any other answer (contract 6).
    """
    if isinstance(answer, Factor):
        return Factor(answer.value, answer.cause or cause)
    if answer is None or type(answer) is ClusterVolumes:
        return answer
    try:
        return Factor(answer, cause)  # type: ignore[arg-type]  # Factor checks the type
    except ValueError:
        expected = "a factor source answers ClusterVolumes, a Factor, a number from 0.0 to 1.0 or None"
        raise TypeError(f"{expected}, not {answer!r:.200}") from None


def as_quota_types(types: object) -> frozenset[QuotaType]:
    """A factor source's ``quota_types``. Raises TypeError if the attribute has no quota types (contract 14)."""
    named = set(types) if isinstance(types, Collection) and not isinstance(types, str) else set()
    if not named or not named <= set(QuotaType):
        raise TypeError(f"quota_types must be a collection of QuotaType, not {types!r:.200}")
    return frozenset(map(QuotaType, named))


def as_typed_answer(answer: object, cause: str) -> Factor:
    """The answer of a source for single quota types, or 1 for None. Raises TypeError if it is invalid (contract 14)."""
    factor = Factor(1.0) if answer is None else as_answer(answer, cause)
    if not isinstance(factor, Factor) or factor.value == 0:
        raise TypeError(f"a factor source for single quota types answers a factor above 0, not {answer!r:.200}")
    return factor


# ---- from limits to a factor ----

_SWITCH: Final = 20  # equal limits have no way back between them, so a twentieth of the hard limit is the way


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """The consumptions, in bytes, between which a volume's factor falls from 1 to 0; ``soft <= hard``."""

    soft: int  # the factor is 1 up to here
    hard: int  # the factor is 0 from here on
    contradict: bool = False  # the hard limit is reached before the soft limit; then both attributes are the hard limit

    def breaches_hard(self, consumed: int) -> bool:
        """True if the consumption reaches the hard limit; then the factor is 0."""
        return consumed >= self.hard

    def breaches_soft(self, consumed: int) -> bool:
        """True if the consumption exceeds the soft limit; otherwise the factor is 1."""
        # If both limits are equal, the consumption at the hard limit also breaches the soft limit.
        return consumed > self.soft or self.breaches_hard(consumed)

    def may_lower(self, consumed: int) -> bool:
        """True if the factor may be below 1: above the soft limit, or below equal limits while a PAUSE may hold."""
        return consumed > self.lets_go_at(1.0)

    def ramp(self, consumed: int) -> float:
        """The factor: 1 at or below soft, 0 at or above hard, linear between (proposal 035, quota policy)."""
        # The hard limit comes first: if both limits are equal, the last line would divide by 0.
        if self.breaches_hard(consumed):
            return 0.0
        if not self.breaches_soft(consumed):
            return 1.0
        # Python divides integers of any size to the nearest float.
        return (self.hard - consumed) / (self.hard - self.soft)

    def lets_go_at(self, share: float) -> int:
        """The largest consumption (bytes) at which a PAUSE may end.

        At this point ``share`` (0.0 to 1.0) of the way back from the hard limit to the soft limit is free. If both
        limits are equal, the way back is a twentieth of the hard limit.
        """
        way = self.hard - self.soft or self.hard // _SWITCH
        # Floats could round the way of a large volume up, so that the end would lie beyond the soft limit.
        return self.hard - max(1, int(way * exact(share)))


def byte_limits(volume: Volume, soft: Limit | None, hard: Limit | None) -> ByteLimits | None:
    """The limits of this volume in bytes; None if there are no limits.

    If there is only a soft limit, the capacity is the hard limit. If there is only a hard limit, it is also the soft
    limit, so the factor goes from 1 to 0 in one step. The capacity replaces a limit above it, which no volume reaches.
    """
    if soft is None and hard is None:
        return None
    at_soft, at_hard = (
        volume.capacity if limit is None else min(limit.consumed_at(volume.capacity), volume.capacity)
        # If there is no soft limit, the hard limit is both.
        for limit in (soft or hard, hard)
    )
    return ByteLimits(min(at_soft, at_hard), at_hard, contradict=at_hard < at_soft)


# ---- whom a factor is for ----

#: The most topics that are listed for one volume, and in the cluster's record. A longer list is None: all topics.
MAX_TOPICS: Final = 1000
#: The most topics of all volumes together that a broker passes to its request threads; with more, it slows all clients.
MAX_AFFECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class SlowedBudget:
    """A budget of storage whose factor is below 1."""

    name: str
    factor: float  # for the writers of the budget's topics, 0.0 to 1.0; at 0 the fence turns their requests back
    topics: frozenset[str]  # the budget's topics with a replica on this broker
    place: str = ""  # the budget in words for an operator
    error: str = ""  # the error message of a request that the fence turns back


@dataclass(frozen=True, slots=True)
class Affected:
    """The topics whose writers the factor is for; None instead of this object means all clients.

    The factor is for all clients with ``factor.scope=cluster``, and while anything is unknown. The host computes the
    topics from the volumes, and Java (``Marks``) notes which clients write to them.
    """

    #: For each topic, a volume above its soft limit that has a replica of it: "broker 3, volume /dev/sdb".
    places: Mapping[str, str]
    held: frozenset[str]  # the topics with a replica on a volume at factor 0; the fence turns requests to them back
