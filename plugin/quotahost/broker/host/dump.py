"""Java's raw dump as values: the broker's state; whose a quota is, its limit, and by what its clients are held back.

Java tells what it knows (``org.quotahost.table.Dump``): rates, limits, what Kafka measures. What follows from that is
worked out here and nowhere else:

1. :meth:`BrokerState.of`: what holds for the whole broker, such as the factor in force and its cause.
2. ``quota_of``: one quota: who shares it, whether its limit is the floor, by what its clients are held back.
3. ``whose``: who shares a quota, told from the two values of Kafka's metric tags.

``quotahost explain`` and ``top``, the metrics, JMX and ``publish-usage`` all show it (``broker_status``). ``explain``
starts with this module, so it imports little: no pydantic, no settings.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote

from quotahost.model import QuotaType, State
from quotahost.model.use import LimitedBy

UNLIMITED: Final = "<unlimited>"  # the user tag of clients that nobody needs to measure apart
EXEMPT: Final = "<exempt>"
BROKER: Final = "<broker>"  # of a quota that all clients of the broker share
GROUP: Final = "<group "  # followed by the group's name, as Kafka sanitizes it, and ">"
NEWCOMERS: Final = "<newcomers"
OF_USER: Final = "<newcomers "  # of one user, whose name follows, likewise
LONG: Final = "<long>"  # in place of each client-id that Java doesn't keep (Names)
_NEAR: Final = 0.9  # of a limit: a client at its limit swings around it, since Kafka measures in samples
_MILLIS: Final = 1000

Row = Mapping[str, Any]
#: Who shares a quota: the two values of Kafka's metric tags, user and client-id.
Tags: TypeAlias = tuple[str, str]
#: Puts a question to Java, of one or several words, and returns what its JSON says (``protocol.Shim.ask``).
Ask = Callable[..., Any]


@contextmanager
def of_this_version() -> Iterator[None]:
    """Within it, what is missing in Java's answer or has another form is a ValueError that names it."""
    try:
        yield
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None
    except (TypeError, AttributeError) as wrong:
        raise ValueError(str(wrong)) from None


# ---- the state that all clients share --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What holds for all clients of a broker."""

    pid: int = 0  # the process id of the broker
    node: str = ""  # its node id, "" if it isn't known
    version: str = ""  # of its quotahost
    enforced: bool = True  # False with shadow=all: nothing is enforced
    shadow: tuple[str, ...] = ()  # the rules that are not enforced, as the property ``shadow`` has them
    factor: float = 1.0  # the factor in force
    limit_factor: float = 1.0  # what produce limits are multiplied by at the moment
    cause: str = ""  # why the factor in force is what it is, in words for an operator
    factor_types: tuple[str, ...] = ("PRODUCE",)  # the quota types that it multiplies
    #: By quota type the factor of sources that are for single types, and its cause; none of a type whose factor is 1.
    type_factors: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)  # by quota type, below what no factor takes a limit
    affected_topics: int = -1  # how many topics the factor is for; -1 if it is for all clients
    fence_installed: bool = False
    fence_closed: bool = False
    fence_counts_only: bool = False  # the fence lets everything pass, since the factor is in shadow
    creation_refused: bool = False  # topics and partitions are created for those alone who pass the fence
    topics_threshold: float = 0.0  # bytes/s that the broker is expected to take in; 0 without topic quotas
    topics_rate: float = 0.0  # bytes/s that it does take in
    topics_over: tuple[str, ...] = ()  # the topics over their thresholds, from which producers are turned back
    topics_in_shadow: tuple[str, ...] = ()  # those of them from which nobody is turned back, as a rule is in shadow
    sources: tuple[str, ...] = ()  # the names of the factor sources that answer, where one stands in for another
    controller: str = ""  # the node id of the active controller; "" if this node knows of none
    #: Of its properties those that say where its log directories are, and how long mutations are saved up.
    properties: Mapping[str, str] = field(default_factory=dict)
    clients: int = 0  # how many clients have a place in the table
    clients_max: int = 0  # how many have room there
    #: By quota type and the two tags of a scope, the rule in shadow that would hold its clients back.
    would_hold: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    @classmethod
    @of_this_version()
    def of(cls, dump: Row) -> Self:
        """From the JSON of the question ``state``. Raises ValueError if it is that of another version."""
        nested = {f"{part}_{name}": value for part in ("fence", "topics") for name, value in dump[part].items()}
        # What the host has told Java of its last comparison (``shadow``).
        told = dump["held"].items()
        would_hold = {(kind, user, client): rule for kind, rows in told for user, client, rule in rows}
        facts = {**dump, **nested, "would_hold": would_hold}
        # The fields have Java's names, and their defaults the types.
        kinds: dict[str, Any] = {f.name: dict if f.default is MISSING else type(f.default) for f in fields(BrokerState)}
        return cls(**{name: kind(facts[name]) for name, kind in kinds.items()})

    @property
    def state(self) -> State:
        return State.OPEN if self.factor >= 1 else State.THROTTLE if self.factor > 0 else State.PAUSE

    @property
    def told_cause(self) -> str:
        """The cause where somebody has to know it: at factor 1 the fullest volume is none, but a silent host is."""
        return self.cause if self.factor < 1 or "fallback.action" in self.cause else ""

    @property
    def where(self) -> str:
        return f"broker {self.node or 'of unknown id'} (pid {self.pid})"

    @property
    def fence(self) -> str:
        closed = self.fence_closed and not self.fence_counts_only
        return "none" if not self.fence_installed else "closed" if closed else "open"

    @property
    def factor_in_shadow(self) -> bool:
        return not self.enforced or "factor" in self.shadow

    @property
    def is_for_topics(self) -> bool:
        return self.affected_topics >= 0

    @property
    def slows_types(self) -> frozenset[str]:
        """The quota types whose limits a factor may lower now."""
        return frozenset(self.factor_types) | (frozenset() if self.factor_in_shadow else self.type_factors.keys())

    @property
    def slowed_types(self) -> list[tuple[list[str], float, str]]:
        """The quota types with factors of their own: those with the same factor and cause, the factor, the cause."""
        types: dict[tuple[float, str], list[str]] = {}
        for quota_type, (factor, cause) in sorted(self.type_factors.items()):
            types.setdefault((factor, cause), []).append(quota_type)
        return [(names, *of) for of, names in types.items()]

    @property
    def stops_all(self) -> bool:
        """Whether the closed fence turns back the requests of all clients, and not only those to held topics."""
        return self.fence_closed and self.factor <= 0 and not self.is_for_topics

    @property
    def mutation_seconds(self) -> int:
        """For so many seconds a bucket of partition mutations saves up its rate; by default 11 samples of 1 s."""
        window = "controller.quota.window."
        return int(self.properties.get(f"{window}num", 11)) * int(self.properties.get(f"{window}size.seconds", 1))

    @property
    def is_active_controller(self) -> bool:
        """Whether partition mutations are counted on this node."""
        return self.controller == self.node != ""


# ---- a quota ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuotaState:
    """One quota of one quota type: whose it is, what limit it has now, what Kafka measures of those who share it.

    Rates are in the quota type's unit, a second; None is unlimited, of what is measured it is "not measured".
    """

    type: QuotaType
    user: str  # the user and the client-id of Kafka's metric tags, which say who shares the quota; this is sanitized
    client_id: str
    base: float | None  # the quota's rate
    limit: float | None  # the limit that Kafka gets
    newcomer: bool = False  # it is that of clients whose own quota isn't known
    #: The supplier that gave the quota; of an exempt client the reason, of a newcomer the supplier that failed.
    supplier: str = ""
    exempt: bool = False  # no quota applies
    stand_in: float | None = None  # the measured rate that the factor multiplies instead of an unlimited one
    uses_stand_in: bool = False  # it does so now; without a measured rate it multiplies the newcomers' one
    newcomers: float | None = None  # the newcomers' rate
    floored: bool = False  # the limit is the floor; by the factor alone it would be lower
    failed: bool = False  # a supplier has failed for this client lately
    rate: float | None = None  # what Kafka measures for all who share the quota
    delay: float | None = None  # by how many milliseconds Kafka has delayed them lately
    #: How many partition mutations are left in this node's bucket, below 0 if some are owed; None if there is no
    #: bucket, or for another type. Only the active controller charges its bucket.
    tokens: float | None = None
    #: With ``factor.scope=topics``: it is about those of the scope who write to affected topics. The limit is theirs,
    #: rate and delay are those of all in the scope.
    slowed: bool = False
    #: For whose sake one client is slowed, or in shadow would be; "" if it is not, or for several clients.
    affected_topic: str = ""
    affected_place: str = ""  # where that topic has its replica: "broker 3, volume /dev/sdb"; or which budget it uses
    budget_factor: float | None = None  # the factor of the budget that it uses; None if it is a volume
    bound: LimitedBy = LimitedBy.NOTHING  # by what the clients are held back now
    idle: float = 0.0  # seconds since Kafka asked for it last
    shadow: str = ""  # what suppliers in shadow would give, as the host wrote it (``shadow_text``); "" for nothing
    #: What the other suppliers would have given, where all are asked (``supplier.combine``).
    others: tuple[tuple[str, float | None], ...] = ()

    @property
    def whole(self) -> float | None:
        """What a factor multiplies; None if nothing is known."""
        return self.stand_in if self.base is None else self.base


@of_this_version()
def quota_of(state: BrokerState, row: Row, client: Row | None = None) -> QuotaState:
    """A row of the dump: a scope and its quota.

    ``client`` is the one that was asked for; None for a row of all who share the scope. Raises ValueError if the row is
    that of another version.
    """
    quota_type, user = QuotaType(row["type"]), str(row["user"])
    factored = quota_type.value in state.slows_types and not row["exempt"]
    single = client if client is not None else row if whose(user, row["client_id"])[2] == "client" else None
    mark = single["mark"] if single else None
    # Whether those of the scope who are slowed have been delayed by more than the others.
    more = (row["slowed_delay_ms"] or 0.0) > (row["delay_ms"] or 0.0)
    of_budget = mark is not None and mark["budget"] != ""
    of_topics = state.is_for_topics and mark is not None if single else more
    concerned = quota_type.value in state.factor_types and factored and (of_budget or of_topics)
    slowed = concerned and not state.factor_in_shadow
    mark = mark if concerned else None
    base, limit, stand_in = row["base"], row["slowed_limit" if slowed else "limit"], row["stand_in"]
    own, of_slowed = row["rate"], row["slowed_rate"]
    supplier, *others = (row.get("supplier") or "").split("\t")
    # The floor is the limit where a factor would have taken a quota above it lower.
    floor, whole = state.floors[quota_type], stand_in if base is None else base
    quota = QuotaState(
        quota_type, user, str(row["client_id"]), base, limit,
        newcomer=user.startswith(NEWCOMERS) or (not row.get("known", True) and not row["exempt"]),
        supplier=supplier, exempt=bool(row["exempt"]), stand_in=stand_in,
        uses_stand_in=base is None and limit is not None and factored, newcomers=row["newcomers"],
        floored=factored and limit is not None and limit <= floor and (whole is None or whole > floor),
        failed=bool(row.get("failed", False)), rate=own if of_slowed is None else of_slowed + (own or 0.0),
        delay=row["slowed_delay_ms"] if more or row["delay_ms"] is None else row["delay_ms"],
        tokens=row["tokens"], slowed=slowed,
        affected_topic=mark["topic"] if mark else "", affected_place=mark["place"] if mark else "",
        budget_factor=float(mark["factor"]) if mark and of_budget else None,
        idle=row["idle_ms"] / _MILLIS, shadow=row.get("shadow") or "",
        others=tuple((name, _rate(rate)) for name, _, rate in (other.partition("=") for other in others)),
    )  # fmt: skip
    turned_back = quota_type is QuotaType.PRODUCE and _turned_back(state, single or row, single is not None)
    return replace(quota, bound=turned_back or _limits(quota))


def _rate(text: str) -> float | None:
    rate = float(text)
    return rate if math.isfinite(rate) else None  # infinity is unlimited


# ---- what holds clients back -----------------------------------------------------------------------------------


def _turned_back(state: BrokerState, row: Row, alone: bool) -> LimitedBy | None:
    """What turns produce requests back: the closed fence, or lately topic quotas.

    Of several clients it is told if one of them was turned back lately. A closed fence holds one client ``alone`` also
    before it sends anything.
    """
    lately, mark = row["turned_back"], row.get("mark")  # of a scope of several clients there is no one mark
    if state.fence_closed and not state.fence_counts_only:
        concerned = state.stops_all or (mark is not None and mark["held"])
        if concerned and not row["passes"] if alone else lately == "fence":
            return LimitedBy.FENCE
    return LimitedBy.TOPIC_QUOTA if lately == "topics" else None


def _limits(quota: QuotaState) -> LimitedBy:
    """What bounds clients whose requests are let in, if Kafka delays them or they are near their limit.

    Kafka counts the delay of a forwarded mutation as one of requests, which says nothing of the request quota; of
    mutations, the tokens alone count.
    """
    if quota.limit is None:
        return LimitedBy.NOTHING
    if quota.type is QuotaType.CONTROLLER_MUTATION:
        holds = (quota.tokens or 0.0) < 0
    else:
        delayed = (quota.delay or 0.0) > 0 and quota.type is not QuotaType.REQUEST
        holds = delayed or (quota.rate is not None and quota.rate >= _NEAR * quota.limit)
    if not holds:
        return LimitedBy.NOTHING
    if quota.floored:
        return LimitedBy.FLOOR
    return LimitedBy.FACTOR if quota.whole is None or quota.limit < quota.whole else LimitedBy.QUOTA


# ---- scopes in words -------------------------------------------------------------------------------------------


def whose(user: str, client_id: str) -> tuple[str, str, str]:
    """Of the two values of Kafka's metric tags: user, client-id and scope as in ``ClientUse``."""
    if user.startswith(GROUP):
        return "", "", f"group {unquote(user[len(GROUP) : -1])}"
    if user.startswith(OF_USER):
        return unquote(user[len(OF_USER) : -1]), "", "newcomers of the user"
    if user.startswith("<"):
        return "", "", user[1:-1]
    if not user:
        return "", client_id, "client-id"
    return unquote(user), client_id, "client" if client_id else "user"
