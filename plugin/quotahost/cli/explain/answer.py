"""``quotahost explain`` shows an operator the facts of a client and its quotas, and a sentence on what limits it now.

:func:`common_facts` has the facts of broker and client, :func:`quota_facts` those of a quota with its rules in shadow.
:func:`limited_by` makes the sentence. Only the active controller counts partition mutations (KIP-599). Kafka keeps a
token bucket there for each such quota (``quotahost.throttling.TokenBucket``), and refuses mutations while the bucket
has fewer than 0 tokens. Kafka never charges the buckets of other nodes, so their tokens mean nothing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final

from quotahost.base.text import printable
from quotahost.broker.host import dump
from quotahost.broker.host.dump import BrokerState, QuotaState, Row, whose
from quotahost.broker.host.messages import Reason, would_be
from quotahost.model import Client, LimitedBy, QuotaType
from quotahost.throttling import lowered
from quotahost.units.show import (
    BYTES_PER_SECOND,
    MUTATIONS_PER_SECOND,
    PERCENT,
    counted,
    rounded,
    show_bytes,
    show_factor,
    show_number,
    show_seconds,
)

Facts = Iterator[tuple[str, str]]  # labels and texts

_TOGETHER: Final = (dump.UNLIMITED, dump.EXEMPT)  # the tags of clients that Kafka measures only together
_IN_SHADOW: Final = "in shadow: limits are not multiplied by it"
_FIRST: Final = "cluster-volumes"  # the factor source that has a standby
_UNITS: Final = {QuotaType.REQUEST: PERCENT, QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND}  # others: bytes/s
_MUTATIONS: Final = QuotaType.CONTROLLER_MUTATION
_EXEMPT: Final[dict[str, str]] = {
    Reason.EXCLUDED: "its principal is in static.excluded.principal.name.list or exempt.principals",
    Reason.BROKER: "it is a broker of this cluster",
    Reason.PLUGIN: "it is the plugins' own client",
}


@dataclass(frozen=True, slots=True)
class Answer(BrokerState):
    """A broker's answer about one client."""

    client: Client = field(default_factory=lambda: Client("", ""))
    fence_passes: bool = False  # the client's requests pass the closed fence
    quotas: tuple[QuotaState, ...] = ()  # one for each quota type
    #: For each quota type, the measured rate of the scope in which a supplier in shadow would put the client; None if
    #: the rate isn't known.
    would_be_rates: Mapping[str, float | None] = field(default_factory=dict)
    address: str = ""  # the address of its last produce or fetch; "" if quotahost's authorizer hasn't seen the client
    #: The budget that slows the client, or would without shadow: ``used`` and ``bytes`` in the cluster, and the
    #: ``largest`` topics on this broker (``BudgetSizes.largest``).
    budget: Row = field(default_factory=dict)


def parse(told: Row, client: Client) -> Answer:
    """Read an answer of ``broker_status.explained``. Another version's raises one of ``broker_socket.UNREADABLE``."""
    state, of_client = Answer.of(told["state"]), told["client"]
    return replace(
        state, client=client, fence_passes=bool(of_client["passes"]), address=of_client.get("address") or "",
        quotas=tuple(dump.quota_of(state, row, of_client) for row in of_client["quotas"]),
        would_be_rates=told.get("would_be_rates", {}), budget=told.get("budget", {}),
    )  # fmt: skip


# ---- the broker and the client ---------------------------------------------------------------------------------


def common_facts(answer: Answer) -> Facts:
    principal, client_id = map(printable, answer.client)
    address = f", lately from {printable(answer.address)}" if answer.address else ""
    yield "broker", f"{printable(answer.node) if answer.node else 'of unknown id'} (pid {answer.pid})"
    yield "client", f"user {principal}, client-id {client_id}{address}"
    yield "state", str(answer.state)
    yield "factor", _factor(answer)
    if answer.told_cause:
        yield "cause", printable(answer.told_cause)
    shadow = f"; {_IN_SHADOW}" if answer.factor_in_shadow else ""
    for names, factor, cause in answer.slowed_types:
        types = ", ".join(map(printable, names))
        yield "slowed", f"since {printable(cause)}: {types} by the factor {show_factor(factor)}{shadow}"
    if source := ",".join(answer.sources):
        why = "" if source == _FIRST else f" as the standby, since no record reaches {_FIRST}"
        yield "source", f"{printable(source)} answers{why}"
    if answer.is_for_topics:
        yield "scope", _scope(answer)
    if of_budget := [quota for quota in answer.quotas if quota.budget_factor is not None]:
        yield "budget", _budget(answer, of_budget[0])
    yield "fence", _fence(answer)
    if answer.topics_threshold:
        yield "topics", _topics(answer)
    rules = f", except these rules in shadow: {', '.join(map(printable, answer.shadow))}" if answer.shadow else ""
    yield "mode", f"enforce{rules}" if answer.enforced else "shadow: nothing is enforced"
    if newcomers := [quota for quota in answer.quotas if quota.newcomer]:
        yield "newcomer", _newcomer(answer, newcomers[0])


def _factor(answer: Answer) -> str:
    text = f"{show_factor(answer.factor)}, on {', '.join(map(printable, sorted(answer.factor_types)))}"
    if answer.factor_in_shadow:
        return f"{text}; {_IN_SHADOW}" if answer.factor < 1 else text
    if answer.limit_factor == answer.factor:
        return text
    return f"{text}; produce limits are multiplied by {show_factor(answer.limit_factor)} now"


def _scope(answer: Answer) -> str:
    scope = f"the factor is for those who write to {counted(answer.affected_topics, 'affected topics')}"
    if answer.factor_in_shadow:
        return f"{scope}; {_IN_SHADOW}"
    if slowed := [quota for quota in answer.quotas if quota.affected_topic]:
        return f"{scope}; this client is slowed, since it {_writes(slowed[0])}"
    return f"{scope}; this client keeps its full quota: it has not written to an affected topic"


def _budget(answer: Answer, quota: QuotaState) -> str:
    budget, factor = answer.budget, quota.budget_factor or 0.0
    stopped = "let in, as it passes the fence" if answer.fence_passes else "turned back"
    what = f"slowed by the factor {show_factor(factor)}" if factor > 0 else stopped
    what = f"it would be {what}, but the factor is in shadow" if answer.factor_in_shadow else what
    told = [f"this client {_writes(quota)}: {what}"]
    if budget.get("bytes"):
        told.append(f"{show_bytes(budget['used'])} of {show_bytes(budget['bytes'])} are used in the cluster")
    topics = []
    for topic, size, growth in budget.get("largest", ()):
        an_hour = "" if growth is None else f", {'+' if growth > 0 else ''}{rounded(growth * 3600, 'B/h')}"
        topics.append(f"{printable(topic)} ({show_bytes(size)}{an_hour})")
    if topics:
        told.append(f"the largest on this broker: {', '.join(topics)}")
    return "; ".join(told)


def _writes(quota: QuotaState) -> str:
    topic, place = printable(quota.affected_topic), printable(quota.affected_place)
    return f"writes to {topic}, which {'has a replica on' if quota.budget_factor is None else 'uses the'} {place}"


def _fence(answer: Answer) -> str:
    if not answer.fence_installed:
        return "none: in a PAUSE the limits go down to the floor"
    if answer.fence_passes or not answer.fence_closed:
        return answer.fence + ("; this client passes it in every state" if answer.fence_passes else "")
    requests = "requests to topics on full volumes, or of budgets that are used up,"
    if answer.stops_all:
        requests = "this client's produce requests"
    if answer.factor_in_shadow:
        return f"open, as the factor is in shadow; otherwise {requests} would be turned back"
    return f"closed: {requests} are turned back"


def _topics(answer: Answer) -> str:
    rate, threshold = map(BYTES_PER_SECOND.show, (round(answer.topics_rate), answer.topics_threshold))
    over = [
        printable(topic) + (" (only counted, as it is in shadow)" if topic in answer.topics_in_shadow else "")
        for topic in answer.topics_over
    ]
    meanwhile = f"turned back: {', '.join(over)}" if over else "no topic is over its own threshold"
    return f"{rate} come in, {threshold} are expected; {meanwhile}"


def _newcomer(answer: Answer, quota: QuotaState) -> str:
    """Why the table doesn't know the client, and which clients share its quota meanwhile."""
    why = "it has sent nothing lately, or its first request is being answered, or the table is full (clients.max)"
    if quota.supplier:
        why = f"the supplier {printable(quota.supplier)} fails for it, and it never had a quota"
    typed = answer.client.principal.startswith("User:")
    hint = "; USER is the principal's name, without User:" if typed else ""
    return f"the table doesn't know this client: {why}; it shares the quota of {_sharers(quota)[0]}{hint}"


def _sharers(quota: QuotaState) -> tuple[str, str]:
    """The clients that share the quota, and a word for the quota's owner."""
    if quota.slowed:
        them, its = _sharers(replace(quota, slowed=False))
        return (them if its == "client's" else f"those who write to affected topics, of {them}"), its
    user, client_id, scope = whose(quota.user, quota.client_id)
    name, of_client = f"user {printable(user)}", f"client-id {printable(client_id)}"
    if quota.newcomer:
        of_user = scope == "newcomers of the user"
        return f"all client-ids of {name} that are not known yet" if of_user else "all newcomers", "newcomers'"
    if quota.user.startswith(dump.GROUP):
        return f"group {printable(scope.partition(' ')[2])}", "group's"
    if scope == "client" and client_id == dump.LONG:
        return f"all client-ids of {name} that are too long or that JMX can't show", "client's"
    return {
        "unlimited": ("all clients without one", "unlimited clients'"),
        "broker": ("all clients of this broker", "whole broker's"),
        "client-id": (f"{of_client}, whatever the user", "client-id's"),
        "user": (name, "user's"),
    }.get(scope, (f"this client alone ({name}, {of_client})", "client's"))


# ---- its quotas ------------------------------------------------------------------------------------------------


def quota_facts(answer: Answer, quota: QuotaState) -> Facts:
    if quota.exempt:
        yield "exempt", _EXEMPT.get(quota.supplier, "it is exempt")
        yield "limit", "unlimited"
        yield "measured", _measured(quota)
        return
    yield "quota", f"{_rate(quota, quota.base)}, shared by {_sharers(quota)[0]}"
    yield "from", _from(quota)
    if quota.uses_stand_in:
        rate, of = (quota.newcomers, "the newcomers' rate") if quota.stand_in is None else (quota.stand_in, "measured")
        yield "instead", f"{_rate(quota, rate)} ({of}), as a factor needs a rate to act on"
    yield "limit", _limit(answer, quota)
    for text in _in_shadow(answer, quota):
        yield "in shadow", text
    if quota.type is _MUTATIONS and quota.user not in _TOGETHER:
        yield from _bucket(answer, quota)
    else:
        yield "measured", _measured(quota)


def _rate(quota: QuotaState, rate: float | None) -> str:
    """A rate with the unit of the quota's type, rounded for an operator; None is unlimited."""
    unit = _UNITS.get(quota.type, BYTES_PER_SECOND)
    return unit.show(rate if rate is None else round(rate, 2 if quota.type in _UNITS else 0))


def _from(quota: QuotaState) -> str:
    if quota.newcomer:
        return "newcomers.* (see newcomer above)"
    if not quota.supplier:
        return "no supplier has an answer, so it is unlimited"
    late = " (a supplier fails for this client now; its last quota stays in force)" if quota.failed else ""
    others = [f"{printable(name)} would give {_rate(quota, rate)}" for name, rate in quota.others]
    least = f", the most constraining ({'; '.join(others)})" if others else ""
    return f"supplier {printable(quota.supplier)}{least}{late}"


def _limit(answer: Answer, quota: QuotaState) -> str:
    factor, text = _multiplied(quota), _rate(quota, quota.limit)
    if not answer.enforced:
        return text + ", as shadow=all enforces nothing"
    if quota.floored:
        return text + ", the floor"
    return f"{text}, by the factor {show_factor(factor)}" if factor < 1 else text


def _multiplied(quota: QuotaState) -> float:
    """The limit as a share of the quota, while the limit moves to a factor; always 1 for a quota below the floor."""
    whole = quota.newcomers if quota.whole is None else quota.whole
    return min(1.0, quota.limit / whole) if quota.limit is not None and whole else 1.0


def _smallest(answer: Answer, quota: QuotaState) -> tuple[float, str]:
    """The smallest factor for the client's limit and its cause, even in shadow; the limit may still move to it."""
    since = f", since it {_writes(quota)}"
    aims: list[tuple[float, str]] = []
    if quota.type in answer.factor_types:
        if quota.budget_factor is not None:
            aims.append((quota.budget_factor, since))
        by_topic = bool(quota.affected_topic) and quota.budget_factor is None
        aim = answer.factor if by_topic or not answer.is_for_topics else 1.0
        # At factor 1 no cause is shown: limits may still rise from an earlier factor, whose cause is no longer known.
        cause = f": {printable(answer.cause)}" if answer.cause and answer.factor < 1 else ""
        aims.append((aim, since if by_topic else cause))
    if quota.type in answer.type_factors:
        of_type, cause = answer.type_factors[quota.type]
        aims.append((of_type, f", since {printable(cause)}"))
    return min(aims, key=itemgetter(0), default=(1.0, ""))


def _measured(quota: QuotaState) -> str:
    if quota.rate is None:
        return "nothing yet"
    if quota.user in _TOGETHER:
        return "only together with all other clients without a limit"
    delay = f"recently delayed by {quota.delay:,.0f} ms on average" if quota.delay else "not delayed"
    return f"{_rate(quota, quota.rate)}, {delay}"


# ---- rules in shadow -------------------------------------------------------------------------------------------


def _in_shadow(answer: Answer, quota: QuotaState) -> Iterator[str]:
    """The effect of each rule in shadow alone: shadow=all, a supplier, and the factor once limits have moved to it."""
    if not answer.enforced and quota.base is not None:
        yield f"the quota would be the limit; {_compared(quota, quota.rate, quota.base)}"
    if would := would_be(quota.shadow, quota.type):
        user, client_id = would.tags(*answer.client)
        them, _ = _sharers(replace(quota, user=user, client_id=client_id, newcomer=False, slowed=False))
        text = f"supplier {printable(would.supplier)} would give {_rate(quota, would.rate)}, shared by {them}"
        rate = answer.would_be_rates.get(quota.type)
        yield text if would.rate is None else f"{text}; {_compared(quota, rate, would.rate)}"
    # If the fence would turn the requests back, the fact "fence" says so.
    turned_back = answer.stops_all and quota.type in answer.factor_types
    factor = _smallest(answer, quota)[0]
    if answer.factor_in_shadow and factor < 1 and not turned_back and quota.whole is not None:
        limit = lowered(quota.whole, factor, answer.floors[quota.type])
        text = f"the factor {show_factor(factor)} would make the limit {_rate(quota, limit)}"
        yield f"{text}; {_compared(quota, quota.rate, limit)}"


def _compared(quota: QuotaState, rate: float | None, limit: float) -> str:
    if rate is None:
        return "the use isn't measured, or only together with other clients"
    return f"uses {_rate(quota, rate)}; {'would be delayed' if rate > limit else 'would not be delayed'}"


# ---- partition mutations ---------------------------------------------------------------------------------------


def _bucket(answer: Answer, quota: QuotaState) -> Facts:
    """The tokens; only the active controller charges buckets (KIP-599), so those of other nodes are always full."""
    if not answer.is_active_controller:
        if quota.limit is not None:
            yield "tokens", _who_knows(answer)
        return
    if quota.limit is not None:
        burst = answer.mutation_seconds * quota.limit
        # Kafka creates a full bucket at the first mutation.
        left = burst if quota.tokens is None else quota.tokens
        held = f"Kafka refuses mutations {_until_paid(quota)}" if left < 0 else "Kafka admits mutations"
        yield "tokens", f"{show_number(round(left, 2))} of {show_number(round(burst, 2))} left: {held}"
    measured = "nothing yet" if quota.rate is None else MUTATIONS_PER_SECOND.show(round(quota.rate, 1))
    yield "measured", f"{measured}, a mean of 30 to 60 s; Kafka throttles no client by it"


def _until_paid(quota: QuotaState) -> str:
    """For how long Kafka still refuses mutations, until the bucket is back at 0 tokens."""
    # The time is rounded up, so that Kafka admits a mutation after the time that is shown. A limit is above 0 (Quota).
    return f"for another {show_seconds(math.ceil(-(quota.tokens or 0) / (quota.limit or math.inf) * 10) / 10)}"


def _who_knows(answer: Answer) -> str:
    return f"node {printable(answer.controller or '?')} knows, the active controller"


# ---- the sentence ----------------------------------------------------------------------------------------------


def limited_by(answer: Answer, quotas: Sequence[QuotaState]) -> str:
    """One sentence that says what limits the client now for these quota types, or why nothing limits it."""
    clauses = [f"{quota.type} is limited by {by}" for quota in quotas if (by := _limits_now(answer, quota))]
    has_bucket = any(quota.type is _MUTATIONS and quota.limit is not None for quota in quotas)
    is_known_elsewhere = has_bucket and not answer.is_active_controller
    if not clauses and not (is_known_elsewhere and len(quotas) == 1):
        clauses = [f"Nothing limits this client{_why_nothing(answer, quotas[0])}"]
    if is_known_elsewhere:
        clauses.append(f"whether {_MUTATIONS} is limited, {_who_knows(answer)}")
    sentence = "; ".join(clauses)
    return sentence[0].upper() + sentence[1:]


def _limits_now(answer: Answer, quota: QuotaState) -> str:
    """The fence, topic quota, factor or quota that limits this quota type now; "" if nothing limits it."""
    cause = f" ({printable(answer.cause)})" if answer.cause else ""
    if quota.bound is LimitedBy.FENCE:
        return f"the fence, since it {_writes(quota)}" if quota.affected_topic else f"the fence{cause}"
    if quota.bound is LimitedBy.TOPIC_QUOTA:
        return "topic quotas, which have turned it back in the last 15 s"
    mutates = quota.type is _MUTATIONS
    # Only the active controller creates topics and charges buckets, so only that node can tell.
    if mutates and not answer.is_active_controller:
        return ""
    if mutates and answer.creation_refused and not answer.fence_passes and not answer.factor_in_shadow:
        return f"the PAUSE, in which no topics and partitions are created{cause}"
    if quota.bound is LimitedBy.NOTHING:
        return ""
    return _source_of_limit(answer, quota) + (f" ({_until_paid(quota)})" if mutates else "")


def _why_nothing(answer: Answer, quota: QuotaState) -> str:
    if not answer.enforced:
        return ", as shadow=all enforces nothing"
    if quota.exempt:
        return f", as it is exempt from all quotas: {_EXEMPT.get(quota.supplier, 'it is exempt')}"
    if quota.limit is None:
        return f", as it has no limit for {quota.type}"
    return f" now; {quota.type} would first be limited by {_source_of_limit(answer, quota)}"


def _source_of_limit(answer: Answer, quota: QuotaState) -> str:
    """The reason for a limit: the floor, a factor or the quota. The limit binds now, or would be the first to bind."""
    aim, why = _smallest(answer, quota)
    if quota.floored:
        return f"the floor, which the factor {show_factor(aim)} has come down to{why}"
    if (factor := _multiplied(quota)) < 1:
        return f"the factor {show_factor(factor)}{why}"
    given_by = "" if quota.newcomer else f" of {printable(quota.supplier)}"
    return f"the {_sharers(quota)[1]} quota{given_by}"
