"""This module turns Java's raw dump into the broker's state and each quota's clients, limit and what holds them back.

Java returns what it knows (``org.quotahost.table.Dump``): rates, limits, and what Kafka measures. This module alone
derives the rest:

1. :meth:`BrokerState.of` reads what applies to the whole broker, such as the factor in force and its cause.
2. ``quota_of`` reads one quota: who shares it, whether its limit is the floor, and what holds its clients back.
3. ``whose`` finds out from the two values of Kafka's metric tags who shares a quota.

``quotahost explain`` and ``top``, the metrics, JMX and ``publish-usage`` show the result (``broker_status``).
``explain`` imports this module at its start, so this module imports neither pydantic nor the settings.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote

from quotahost.model import QuotaType, State
from quotahost.model.use import LimitedBy, near_limit

UNLIMITED: Final = "<unlimited>"  # the user tag of clients without a quota that share one sensor
EXEMPT: Final = "<exempt>"
BROKER: Final = "<broker>"  # the user tag of a quota that all clients of the broker share
GROUP: Final = "<group "  # followed by the group's name, as Kafka sanitizes it, and ">"
NEWCOMERS: Final = "<newcomers"
OF_USER: Final = "<newcomers "  # the newcomers of one user, followed by the user's name, sanitized, and ">"
LONG: Final = "<long>"  # stands for all client-ids that Java doesn't keep (Names)
_MILLIS: Final = 1000

Row = Mapping[str, Any]
#: The two values of Kafka's metric tags, user and client-id, which say who shares a quota.
Tags: TypeAlias = tuple[str, str]
#: Sends a question of one or several words to Java and returns the decoded JSON answer (``protocol.Shim.ask``).
Ask = Callable[..., Any]


@contextmanager
def of_this_version() -> Iterator[None]:
    """Raise ValueError with its name if a field of Java's answer is missing or has another form."""
    try:
        yield
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None
    except (TypeError, AttributeError) as wrong:
        raise ValueError(str(wrong)) from None


# ---- the state that all clients share --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state of a broker that applies to all its clients."""

    pid: int = 0  # the broker's process id
    node: str = ""  # the broker's node id, "" if it isn't known
    version: str = ""  # the version of the broker's quotahost
    enforced: bool = True  # False with shadow=all: nothing is enforced
    shadow: tuple[str, ...] = ()  # the rules that are not enforced, as in the property ``shadow``
    factor: float = 1.0  # the factor in force
    limit_factor: float = 1.0  # the factor by which produce limits are multiplied at the moment
    cause: str = ""  # why the factor in force has this value, in words for an operator
    factor_types: tuple[str, ...] = ("PRODUCE",)  # the quota types that the factor multiplies
    #: The factor of the sources for single types and its cause, for each quota type with such a factor below 1.
    type_factors: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)  # by quota type, the smallest limit that a factor makes
    affected_topics: int = -1  # the number of topics that the factor is for; -1 if it is for all clients
    fence_installed: bool = False
    fence_closed: bool = False
    fence_counts_only: bool = False  # the factor is in shadow: the fence only counts requests and lets them pass
    creation_refused: bool = False  # only clients that pass the fence may create topics and partitions
    topics_threshold: float = 0.0  # bytes/s that the broker is expected to take in; 0 if there are no topic quotas
    topics_rate: float = 0.0  # bytes/s that the broker takes in
    topics_over: tuple[str, ...] = ()  # the topics over their thresholds, whose producers are turned back
    topics_in_shadow: tuple[str, ...] = ()  # the topics of topics_over whose producers pass, as a rule is in shadow
    sources: tuple[str, ...] = ()  # the factor sources that answer, if one of them stands in for another
    controller: str = ""  # the node id of the active controller; "" if this node knows of none
    #: The broker's properties that name its log directories and the windows of controller mutation quotas.
    properties: Mapping[str, str] = field(default_factory=dict)
    clients: int = 0  # the number of clients in the table
    clients_max: int = 0  # the number of clients for which the table has room
    #: The rule in shadow that would hold a scope's clients back, by quota type and the scope's two tags.
    would_hold: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    @classmethod
    @of_this_version()
    def of(cls, dump: Row) -> Self:
        """Read the JSON of the question ``state``. Raises ValueError if another version of quotahost wrote it."""
        nested = {f"{part}_{name}": value for part in ("fence", "topics") for name, value in dump[part].items()}
        # The host has sent Java the result of its last comparison (``shadow``).
        told = dump["held"].items()
        would_hold = {(kind, user, client): rule for kind, rows in told for user, client, rule in rows}
        facts = {**dump, **nested, "would_hold": would_hold}
        # Fields have the names in Java's JSON, and the types of their defaults.
        kinds: dict[str, Any] = {f.name: dict if f.default is MISSING else type(f.default) for f in fields(BrokerState)}
        return cls(**{name: kind(facts[name]) for name, kind in kinds.items()})

    @property
    def state(self) -> State:
        return State.OPEN if self.factor >= 1 else State.THROTTLE if self.factor > 0 else State.PAUSE

    @property
    def told_cause(self) -> str:
        """The cause if an operator must know it: below factor 1, or if ``fallback.action`` applies or will soon."""
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
        """The quota types with factors of their own, as (types with the same factor and cause, factor, cause)."""
        types: dict[tuple[float, str], list[str]] = {}
        for quota_type, (factor, cause) in sorted(self.type_factors.items()):
            types.setdefault((factor, cause), []).append(quota_type)
        return [(names, *of) for of, names in types.items()]

    @property
    def stops_all(self) -> bool:
        """Whether the closed fence turns back the requests of all clients, not only the requests to held topics."""
        return self.fence_closed and self.factor <= 0 and not self.is_for_topics

    @property
    def mutation_seconds(self) -> int:
        """The seconds for which a bucket of partition mutations saves up its rate; by default 11 samples of 1 s."""
        window = "controller.quota.window."
        return int(self.properties.get(f"{window}num", 11)) * int(self.properties.get(f"{window}size.seconds", 1))

    @property
    def is_active_controller(self) -> bool:
        """Whether this node is the active controller, which counts partition mutations."""
        return self.controller == self.node != ""


# ---- a quota ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuotaState:
    """One quota of one quota type: who shares it, its limit now, and what Kafka measures for the clients that share it.

    Rates are in bytes/s, percent of a thread, or mutations/s. None means unlimited; for a measured rate, unknown.
    """

    type: QuotaType
    user: str  # the user of Kafka's metric tags, sanitized; user and client-id say who shares the quota
    client_id: str  # the client-id of Kafka's metric tags
    base: float | None  # the quota's rate
    limit: float | None  # the limit that Kafka gets
    newcomer: bool = False  # this is the quota of clients whose own quota isn't known
    #: The supplier that gave the quota; the reason if the client is exempt; the supplier that failed for a newcomer.
    supplier: str = ""
    exempt: bool = False  # no quota applies
    stand_in: float | None = None  # the measured rate that the factor multiplies if the quota is unlimited
    uses_stand_in: bool = False  # the factor multiplies the stand-in now, or the newcomers' rate if nothing is measured
    newcomers: float | None = None  # the newcomers' rate
    floored: bool = False  # the limit is the floor; the factor alone would make a lower limit
    failed: bool = False  # a supplier has failed for this client recently
    rate: float | None = None  # the rate that Kafka measures for all clients that share the quota
    delay: float | None = None  # milliseconds by which Kafka has recently delayed these clients
    #: The partition mutations that are left in this node's bucket, below 0 if some are owed; None if there is no bucket
    #: or the type is another one. Only the active controller charges its bucket.
    tokens: float | None = None
    #: The row is about the scope's clients that write to affected topics (``factor.scope=topics``, budgets). ``limit``
    #: is the limit of these clients; rate and delay are those of all clients of the scope.
    slowed: bool = False
    #: The topic because of which one client is slowed, or would be in shadow; "" if none, or for several clients.
    affected_topic: str = ""
    affected_place: str = ""  # the place of that topic's replica ("broker 3, volume /dev/sdb"), or the budget it uses
    budget_factor: float | None = None  # the factor of the budget that the topic uses; None if the place is a volume
    bound: LimitedBy = LimitedBy.NOTHING  # what holds the clients back now
    idle: float = 0.0  # seconds since Kafka asked for this quota last
    shadow: str = ""  # the would-be quotas, as the host wrote them (``shadow_text``); "" for none
    #: The rates of the other suppliers, if the host asks all suppliers (``supplier.combine``).
    others: tuple[tuple[str, float | None], ...] = ()

    @property
    def whole(self) -> float | None:
        """The rate that a factor multiplies; None if it isn't known."""
        return self.stand_in if self.base is None else self.base


@of_this_version()
def quota_of(state: BrokerState, row: Row, client: Row | None = None) -> QuotaState:
    """Read a row of the dump: a scope and its quota.

    ``client`` is the client that ``explain`` asks for; None if the row is about all clients of the scope. Raises
    ValueError if another version of quotahost wrote the row.
    """
    quota_type, user = QuotaType(row["type"]), str(row["user"])
    factored = quota_type.value in state.slows_types and not row["exempt"]
    single = client if client is not None else row if whose(user, row["client_id"])[2] == "client" else None
    mark = single["mark"] if single else None
    # Whether the slowed clients of the scope have been delayed by more than the others.
    more = (row["slowed_delay_ms"] or 0.0) > (row["delay_ms"] or 0.0)
    of_budget = mark is not None and mark["budget"] != ""
    of_topics = state.is_for_topics and mark is not None if single else more
    concerned = quota_type.value in state.factor_types and factored and (of_budget or of_topics)
    slowed = concerned and not state.factor_in_shadow
    mark = mark if concerned else None
    base, limit, stand_in = row["base"], row["slowed_limit" if slowed else "limit"], row["stand_in"]
    own, of_slowed = row["rate"], row["slowed_rate"]
    supplier, *others = (row.get("supplier") or "").split("\t")
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
    """What turns produce requests back: the closed fence, or recently topic quotas; None if neither does.

    A scope of several clients counts if one of them was turned back recently. For one client ``alone`` the closed fence
    counts even before the client sends a request.
    """
    lately, mark = row["turned_back"], row.get("mark")  # a scope of several clients has no mark
    if state.fence_closed and not state.fence_counts_only:
        concerned = state.stops_all or (mark is not None and mark["held"])
        if concerned and not row["passes"] if alone else lately == "fence":
            return LimitedBy.FENCE
    return LimitedBy.TOPIC_QUOTA if lately == "topics" else None


def _limits(quota: QuotaState) -> LimitedBy:
    """The limit that holds back clients that are let in: if Kafka delays them, or their rate is near the limit.

    Kafka counts the delay of a forwarded mutation as a delay of requests, so delays say nothing about a request quota.
    For mutations only the tokens count.
    """
    if quota.limit is None:
        return LimitedBy.NOTHING
    if quota.type is QuotaType.CONTROLLER_MUTATION:
        holds = (quota.tokens or 0.0) < 0
    else:
        delayed = (quota.delay or 0.0) > 0 and quota.type is not QuotaType.REQUEST
        holds = delayed or (quota.rate is not None and near_limit(quota.rate, quota.limit))
    if not holds:
        return LimitedBy.NOTHING
    if quota.floored:
        return LimitedBy.FLOOR
    return LimitedBy.FACTOR if quota.whole is None or quota.limit < quota.whole else LimitedBy.QUOTA


# ---- scopes in words -------------------------------------------------------------------------------------------


def whose(user: str, client_id: str) -> tuple[str, str, str]:
    """Return user, client-id and scope, as in ``ClientUse``, for the two values of Kafka's metric tags."""
    if user.startswith(GROUP):
        return "", "", f"group {unquote(user[len(GROUP) : -1])}"
    if user.startswith(OF_USER):
        return unquote(user[len(OF_USER) : -1]), "", "newcomers of the user"
    if user.startswith("<"):
        return "", "", user[1:-1]
    if not user:
        return "", client_id, "client-id"
    return unquote(user), client_id, "client" if client_id else "user"
