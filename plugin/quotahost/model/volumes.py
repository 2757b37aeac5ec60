"""How full volumes are; the rule from limits to a factor, 1 up to the soft one, 0 from the hard one; a PAUSE's end.

1. A factor source answers :class:`ClusterVolumes`, or a :class:`Factor` itself (:func:`as_answer`).
2. :func:`byte_limits` turns a volume's limits into bytes, and :class:`ByteLimits` decides its factor, in whole bytes.
   The policies ask here, and so do ``doctor`` and the pipeline, so that all of them find the same factor of the same
   volume, to the last bit; the pipeline's history has a limit's bytes in SQL.
3. The smallest factor is for all clients, or for those who write to :class:`Affected` topics.

Volume, State, Factor and ClusterVolumes are public, by :mod:`quotahost.model`; the rest is private.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quotahost.model.limits import Limit, exact
from quotahost.model.quotas import QuotaType

MAX_PATH: Final = 4096  # characters of a volume's name or broker: Linux has no longer path


@dataclass(frozen=True, slots=True)
class Volume:
    """One file store of one broker.

    Raises ValueError where a value has another type, a size is below 0, or a name has more than 4,096 characters.
    """

    broker: str  # its id
    name: str  # on that broker
    capacity: int  # bytes
    consumed: int  # bytes; may be above ``capacity``, as file systems keep blocks for root
    #: The limits published with it: its own, else those of its broker (proposal 035, snapshot note 2); None for none.
    soft: Limit | None = None
    hard: Limit | None = None
    #: The topics with a replica on it; None where nobody has listed them, which stands for all. They matter, and are
    #: listed, only above the soft limit, and on the way back from a hard limit alone.
    topics: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for what, text in (("broker", self.broker), ("name", self.name)):
            if not isinstance(text, str) or len(text) > MAX_PATH:
                raise ValueError(
                    f"the {what} of a volume must be a string of at most {MAX_PATH:,} characters, not {text!r:.200}"
                )
        for what, size in (("capacity", self.capacity), ("consumed", self.consumed)):
            # A bool is an int for isinstance, and would pass as a size of one byte.
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
        """Bytes left; 0 if more is consumed than the capacity."""
        return max(0, self.capacity - self.consumed)


class State(StrEnum):
    """What a factor does to the clients: OPEN is factor 1, PAUSE factor 0, and THROTTLE anything between."""

    OPEN = "OPEN"
    THROTTLE = "THROTTLE"
    PAUSE = "PAUSE"


@dataclass(frozen=True, slots=True)
class Factor:
    """How much of every quota is left, and why. Raises ValueError if the value is no number from 0 to 1."""

    value: float  # the part that is left, 0.0 to 1.0: a client's limit is its quota x value
    cause: str = ""  # why, in words for an operator; logs and metrics show it

    def __post_init__(self) -> None:
        value = self.value
        # NaN fails the comparison: no factor can make a limit that Kafka doesn't enforce.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ValueError(f"factor {value!r:.200} must be a number from 0.0 to 1.0")
        if not isinstance(self.cause, str):
            raise ValueError(f"the cause of a factor must be a string, not {self.cause!r:.200}")
        # What NumPy's floats are compared to is no bool. A frozen dataclass takes another value in no other way.
        object.__setattr__(self, "value", float(value))

    @property
    def state(self) -> State:
        """OPEN at 1, PAUSE at 0, THROTTLE between."""
        if self.value >= 1:
            return State.OPEN
        return State.PAUSE if self.value <= 0 else State.THROTTLE


@dataclass(frozen=True, slots=True)
class ClusterVolumes:
    """The newest fresh volumes of every broker in service, or why they are not known. Raises ValueError as a Volume."""

    volumes: tuple[Volume, ...]  # those that are known; they decide the factor even while others are unknown
    #: A sentence for each broker or volume whose state is unknown. ``fallback.action`` applies at once: a source waits
    #: itself before it says so, such as for ``validity``.
    unknown: tuple[str, ...] = ()
    #: What a source that has just started still waits for, "" for nothing; no failure until ``startup.grace`` is over.
    waiting: str = ""
    #: The budgets of storage, each as the volume that stands for it (``quotahost.model.budgets``); only quotahost's own
    #: sources tell them. None: they are not known yet.
    budgets: tuple[Volume, ...] | None = ()

    def __post_init__(self) -> None:
        # Here, in the plugin's own call, and not where the host reads them: what is wrong is the plugin's failure.
        listed = (
            ("volumes", Volume, self.volumes),
            ("unknown", str, self.unknown),
            ("budgets", Volume, self.budgets or ()),
        )
        for what, kind, values in listed:
            # By the set of types: a source may make such an object of 20,000 volumes.
            if type(values) is not tuple or not {*map(type, values)} <= {kind}:
                raise ValueError(f"{what} of ClusterVolumes must be a tuple of {kind.__name__}, not {values!r:.200}")
        if not isinstance(self.waiting, str):
            raise ValueError(f"waiting of ClusterVolumes must be a string, not {self.waiting!r:.200}")


def as_answer(answer: object, cause: str) -> ClusterVolumes | Factor | None:
    """What a factor source answered; a bare number is a factor, and ``cause`` stands where none is told.

    Raises TypeError (contract, sentence 6).
    """
    if isinstance(answer, Factor):
        return Factor(answer.value, answer.cause or cause)
    if answer is None or type(answer) is ClusterVolumes:
        return answer
    try:
        return Factor(answer, cause)  # type: ignore[arg-type]  # it checks that itself
    except ValueError:
        expected = "a factor source answers ClusterVolumes, a Factor, a number from 0.0 to 1.0 or None"
        raise TypeError(f"{expected}, not {answer!r:.200}") from None


def as_quota_types(types: object) -> frozenset[QuotaType]:
    """A factor source's ``quota_types``. Raises TypeError if they are none (contract, sentence 14)."""
    named = set(types) if isinstance(types, Collection) and not isinstance(types, str) else set()
    if not named or not named <= set(QuotaType):
        raise TypeError(f"quota_types must be a collection of QuotaType, not {types!r:.200}")
    return frozenset(map(QuotaType, named))


def as_typed_answer(answer: object, cause: str) -> Factor:
    """The same of a source for single quota types (contract, sentence 14); None is factor 1."""
    factor = Factor(1.0) if answer is None else as_answer(answer, cause)
    if not isinstance(factor, Factor) or factor.value == 0:
        raise TypeError(f"a factor source for single quota types answers a factor above 0, not {answer!r:.200}")
    return factor


# ---- from limits to a factor ----

_SWITCH: Final = 20  # a switch lets go over a twentieth of the bytes at which it stops: it has no way of its own


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """Between which consumptions, in bytes, a volume's factor falls from 1 to 0; ``soft <= hard``."""

    soft: int  # the factor is 1 up to here
    hard: int  # the factor is 0 from here on
    contradict: bool = False  # the hard limit is reached before the soft one; both attributes are the hard limit then

    def breaches_hard(self, consumed: int) -> bool:
        """Whether the hard limit is reached; then the factor is 0."""
        return consumed >= self.hard

    def breaches_soft(self, consumed: int) -> bool:
        """Whether the soft limit is exceeded; else the factor is 1."""
        # Where both limits are the same, there is no consumption between them: the hard one decides alone.
        return consumed > self.soft or self.breaches_hard(consumed)

    def may_lower(self, consumed: int) -> bool:
        """Whether the factor may be below 1: above soft, or below a switch where a PAUSE may still hold."""
        return consumed > self.lets_go_at(1.0)

    def ramp(self, consumed: int) -> float:
        """1 at or below soft, 0 at or above hard, in proportion between (proposal 035, quota policy)."""
        # The hard limit comes first: where both are the same it is a switch, and nothing is divided by 0 below.
        if self.breaches_hard(consumed):
            return 0.0
        if not self.breaches_soft(consumed):
            return 1.0
        # Of whole numbers Python returns the float nearest to the quotient, however large they are.
        return (self.hard - consumed) / (self.hard - self.soft)

    def lets_go_at(self, share: float) -> int:
        """The most bytes consumed at which a PAUSE may end: this share, 0.0 to 1.0, of the way back is free then.

        The way back goes from the hard limit to the soft one. A switch has none, so a twentieth of its limit counts.
        """
        way = self.hard - self.soft or self.hard // _SWITCH
        # Exactly: as a float the way of a large volume may be longer than it is, and the end beyond the soft limit.
        return self.hard - max(1, int(way * exact(share)))


def byte_limits(volume: Volume, soft: Limit | None, hard: Limit | None) -> ByteLimits | None:
    """These limits as bytes of this volume; None without limits.

    A soft limit alone has nothing to fall towards, so the capacity is its hard limit. A hard limit alone is a switch.
    A limit beyond the capacity could never be reached, so the capacity takes its place.
    """
    if soft is None and hard is None:
        return None
    at_soft, at_hard = (
        volume.capacity if limit is None else min(limit.consumed_at(volume.capacity), volume.capacity)
        # Without a soft limit the hard one stands for both, which makes the switch.
        for limit in (soft or hard, hard)
    )
    return ByteLimits(min(at_soft, at_hard), at_hard, contradict=at_hard < at_soft)


# ---- whom a factor is for ----

#: Topics of one volume, and of the cluster's record. Where there are more, nobody lists them: it is all topics then.
MAX_TOPICS: Final = 1000
#: Topics of all volumes together that a broker hands on to its request threads; beyond that it is all clients.
MAX_AFFECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class SlowedBudget:
    """A budget of storage whose factor is below 1."""

    name: str
    factor: float  # for those who write to its topics, 0.0 to 1.0; at 0 requests to these are turned back
    topics: frozenset[str]  # those with a replica on this broker
    place: str = ""  # which budget it is, in words for an operator
    error: str = ""  # what a client is told whose request is turned back


@dataclass(frozen=True, slots=True)
class Affected:
    """The topics whose writers the factor is for; None in its place means all clients.

    That is so with ``factor.scope=cluster``, and while anything is unknown. The host makes it of the volumes, and
    Java's ``QuotaTable`` finds out who writes to these topics.
    """

    #: By topic where it has a replica on a volume above its soft limit, in words: "broker 3, volume /dev/sdb".
    places: Mapping[str, str]
    held: frozenset[str]  # those with a replica on a volume at factor 0; requests to them are turned back
