"""What a broker says of a client, in an operator's words: labelled facts, and one sentence that names what limits it.

:func:`parse` reads the answer. Facts are pairs of label and text, in the order in which they are printed:
:func:`common_facts` of the broker and the client, then :func:`quota_facts` of each quota type: its rate with the unit
of its type, who shares it, told from Kafka's metric tags, what rules in shadow would do (the property ``shadow``),
and what Kafka measures. :func:`limited_by` is the sentence below them.

The active controller alone counts partition mutations (KIP-599). Kafka keeps a bucket of tokens for each such quota
there (``quotahost.throttling.TokenBucket``) and refuses mutations while fewer than 0 are left. Buckets of other nodes
are never charged, so their tokens say nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from quotahost.broker.host.dump import (
    BROKER,
    EXEMPT,
    GROUP,
    OF_USER,
    UNLIMITED,
    BrokerState,
    QuotaState,
    Row,
    of_this_version,
    quota_of,
    state_facts,
    whose,
)
from quotahost.broker.host.messages import Reason, would_be
from quotahost.model import Client, LimitedBy, QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, rounded, show_bytes

Facts = list[tuple[str, str]]

_UNITS: Final = {QuotaType.REQUEST: PERCENT, QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND}  # of others bytes/s
_MUTATIONS: Final = QuotaType.CONTROLLER_MUTATION
_WHOLE: Final = 1000.0  # from here on a rate is shown without decimals
_TOGETHER: Final = (UNLIMITED, EXEMPT)  # the tags of clients that nobody needs to measure apart
_EXEMPT: Final[dict[str, str]] = {
    Reason.EXCLUDED: "its principal is in static.excluded.principal.name.list or exempt.principals",
    Reason.BROKER: "it is a broker of this cluster",
    Reason.PLUGIN: "it is the plugins' own client",
}
_FIRST: Final = "cluster-volumes"  # the factor source for which a second one stands in
_LONGEST: Final = 256  # characters of a client-id that Java's table keeps (Names)
_FOR_PRINCIPALS: Final = 10  # the part of the table that is for principals alone (Remembered)


@dataclass(frozen=True, slots=True)
class Answer(BrokerState):
    """What a broker says of a client."""

    client: Client = field(default_factory=lambda: Client("", ""))
    fence_passes: bool = False  # its requests pass the fence while that is closed
    is_marked: bool = False  # it has lately asked to write to an affected topic
    quotas: tuple[QuotaState, ...] = ()  # one for each quota type
    #: By quota type, what is measured of the scope in which a supplier in shadow would put the client; None if that
    #: can't be told.
    would_be_rates: Mapping[str, float | None] = field(default_factory=dict)
    address: str = ""  # from where it wrote or read last; "" where quotahost's authorizer has not seen it
    #: Of the budget by which it is slowed: ``used`` and ``bytes`` in the cluster, and the ``largest`` topics on this
    #: broker (``BudgetSizes.largest``).
    budget: Row = field(default_factory=dict)


def parse(dump: Row, client: Client) -> Answer:
    """The answer to the question ``client``, as :func:`quotahost.broker.host.broker_status.explained` has it.

    Raises:
        ValueError: it is that of another version.
    """
    with of_this_version():
        facts, of_client = state_facts(dump["state"]), dump["client"]
        quotas = tuple(quota_of(BrokerState(**facts), row, of_client) for row in of_client["quotas"])
        return Answer(
            **facts, client=client, fence_passes=bool(of_client["passes"]),
            is_marked=of_client["mark"] is not None, quotas=quotas, would_be_rates=dump.get("would_be_rates", {}),
            address=of_client.get("address") or "", budget=dump.get("budget", {}),
        )  # fmt: skip


# ---- the facts that all quota types share ----------------------------------------------------------------------


def common_facts(answer: Answer) -> Facts:
    """The facts about the broker and the client."""
    principal, client_id = map(printable, answer.client)
    address = f", lately from {printable(answer.address)}" if answer.address else ""
    # At factor 1 the fullest volume is no cause, but the fallback is.
    has_cause = answer.factor < 1 or "fallback.action" in answer.cause
    facts = [
        ("broker", f"{printable(answer.node) if answer.node else 'of unknown id'} (pid {answer.pid})"),
        ("client", f"user {principal}, client-id {client_id}{address}"),
        ("state", str(answer.state)),
        ("factor", _factor(answer)),
        ("cause", printable(answer.cause) if answer.cause and has_cause else ""),
        ("slowed", _slowed(answer)),
        ("source", _source(answer)),
        ("scope", _scope(answer)),
        ("budget", _budget(answer)),
        ("fence", _fence(answer)),
        ("topics", _topics(answer)),
        ("mode", _mode(answer)),
        ("newcomer", _newcomer(answer)),
    ]
    return [(label, text) for label, text in facts if text]


def _factor(answer: Answer) -> str:
    text = f"{answer.factor:.4g}, on {', '.join(map(printable, sorted(answer.factor_types)))}"
    if answer.factor_in_shadow:
        return text + ("; in shadow: limits are not multiplied by it" if answer.factor < 1 else "")
    if answer.limit_factor == answer.factor:
        return text
    by_fence = answer.fence_closed and answer.factor <= 0
    why = "the fence keeps the PAUSE" if by_fence else "on their way there in steps that max.mute allows"
    return f"{text}; limits are multiplied by {answer.limit_factor:.4g} now, {why}"


def _slowed(answer: Answer) -> str:
    """Which quota types have smaller factors of their own, and why."""
    told = [
        f"since {printable(cause)}: {', '.join(map(printable, names))} by the factor {factor:.4g}"
        for names, factor, cause in answer.slowed_types
    ]
    in_shadow = ["in shadow: limits are not multiplied by it"] if told and answer.factor_in_shadow else []
    return "; ".join(told + in_shadow)


def _source(answer: Answer) -> str:
    if answer.source in ("", _FIRST):
        return answer.source and f"{_FIRST} answers"
    return f"{printable(answer.source)} answers as the standby, since no record reaches {_FIRST}"


def _scope(answer: Answer) -> str:
    if not answer.is_for_topics:
        return ""
    text = f"the factor is for those who write to {answer.affected_topics:,} affected topics"
    if answer.factor_in_shadow:
        return f"{text}; it is in shadow, so nobody is slowed"
    slowed = next((quota for quota in answer.quotas if quota.affected_topic and quota.budget_factor is None), None)
    if slowed is not None:
        return f"{text}; this client is slowed, since it {_writes(slowed)}"
    return f"{text}; this client keeps its full quota: it has not written to an affected topic"


def _budget(answer: Answer) -> str:
    """The budget of storage by which the client is slowed or turned back."""
    quota, factor = next(((q, q.budget_factor) for q in answer.quotas if q.budget_factor is not None), (None, 1.0))
    if quota is None:
        return ""
    what = "turned back" if factor <= 0 else f"slowed by the factor {factor:.4g}"
    text, budget = f"this client {_writes(quota)}: {what}", answer.budget
    if budget.get("bytes"):
        text += f"; {show_bytes(budget['used'])} of {show_bytes(budget['bytes'])} are used in the cluster"
    topics = [
        f"{printable(topic)} ({', '.join([show_bytes(size), *_an_hour(growth)])})"
        for topic, size, growth in budget.get("largest", ())
    ]
    return text + (f"; the largest on this broker: {', '.join(topics)}" if topics else "")


def _an_hour(growth: float | None) -> list[str]:
    """Bytes/s as what comes or goes in an hour: ``+2.00 GB/h``; nothing if it isn't known."""
    return [] if growth is None else [f"{'+' if growth > 0 else ''}{rounded(growth * 3600, 'B/h')}"]


def _writes(quota: QuotaState) -> str:
    topic, place = printable(quota.affected_topic), printable(quota.affected_place)
    return f"writes to {topic}, which {'has a replica on' if quota.budget_factor is None else 'uses the'} {place}"


def _fence(answer: Answer) -> str:
    if not answer.fence_installed:
        return "none: in a PAUSE the limits go down to the floor"
    if answer.fence_passes or not answer.fence_closed:
        return answer.fence + ("; this client passes it in every state" if answer.fence_passes else "")
    if answer.factor_in_shadow:
        of_topics = "requests to affected topics on full volumes"
        requests = of_topics if answer.is_for_topics else "this client's produce requests"
        return f"open, as the factor is in shadow; else {requests} would be turned back"
    if answer.factor > 0:
        return "closed for the topics of budgets of storage that are used up: requests to these are turned back"
    if answer.is_for_topics:
        return "closed for affected topics on volumes at their hard limit: requests to these are turned back"
    return "closed: this client's produce requests are turned back"


def _topics(answer: Answer) -> str:
    if not answer.topics_threshold:
        return ""
    rate, threshold = map(BYTES_PER_SECOND.show, (round(answer.topics_rate), answer.topics_threshold))
    text = f"{rate} come in where {threshold} are expected; "
    if not answer.topics_over:
        return text + "no topic is over its own threshold meanwhile"
    # A super user passes a closed fence, too, but has quotas, also those of topics.
    exempt = answer.fence_passes and any(quota.exempt for quota in answer.quotas)
    verb = "passed by this client alone" if exempt else "turned back"
    over = [topic for topic in answer.topics_over if topic not in answer.topics_in_shadow]
    parts = [(verb, over), ("in shadow, so only counted", answer.topics_in_shadow)]
    return text + "; ".join(f"{what}: {', '.join(map(printable, topics))}" for what, topics in parts if topics)


def _mode(answer: Answer) -> str:
    if answer.is_shadow:
        return "shadow: nothing is enforced"
    rules = ", ".join(map(printable, answer.shadow))
    return f"enforce, but for what is in shadow: {rules}" if rules else "enforce"


def _newcomer(answer: Answer) -> str:
    """Why the table doesn't know the client, and whose quota it therefore shares; "" if the table knows it."""
    quota = next((quota for quota in answer.quotas if quota.newcomer), None)
    if quota is None:
        return ""
    if quota.supplier:
        why = f"the supplier {printable(quota.supplier)} fails for it, and it never had a quota"
    elif len(answer.client.client_id) > _LONGEST:
        why = f"its client-id has more than {_LONGEST} characters"
    elif answer.clients >= answer.clients_max - answer.clients_max // _FOR_PRINCIPALS:
        why = "the table is full (clients.max)"
    else:
        why = "it has sent nothing since the broker's start or for clients.idle, or its first request is being answered"
    typed = answer.client.principal.startswith("User:")
    hint = "; USER is the principal's name, without User:" if typed else ""
    return f"the table doesn't know this client: {why}; it shares the quota of {_sharers(quota)[0]}{hint}"


# ---- the facts about one quota type ----------------------------------------------------------------------------


def quota_facts(answer: Answer, quota: QuotaState) -> Facts:
    """The facts about one quota type."""
    if quota.exempt:
        return [("exempt", _why_exempt(quota)), ("limit", "unlimited"), ("measured", _measured(quota))]
    facts = [("quota", f"{_rate(quota, quota.base)}, shared by {_sharers(quota)[0]}"), ("from", _from(quota))]
    if quota.uses_stand_in:
        rate, of = (quota.newcomers, "the newcomers' rate") if quota.stand_in is None else (quota.stand_in, "measured")
        facts.append(("instead", f"{_rate(quota, rate)} ({of}), as a factor needs a rate to act on"))
    facts.append(("limit", _limit(answer, quota)))
    facts += [("in shadow", text) for text in _in_shadow(answer, quota) if text]
    if quota.type is _MUTATIONS and quota.user not in _TOGETHER:
        return [*facts, *_bucket(answer, quota)]
    return [*facts, ("measured", _measured(quota))]


def _why_exempt(quota: QuotaState) -> str:
    return _EXEMPT.get(quota.supplier, "it is exempt")


def _rate(quota: QuotaState, rate: float | None) -> str:
    """A rate of the quota's type with its unit; None is unlimited. Of a third of a quota no decimals are shown."""
    unit = _UNITS.get(quota.type, BYTES_PER_SECOND)
    return unit.show(rate if rate is None or rate < _WHOLE else round(rate, 0))


def _used(quota: QuotaState, rate: float) -> str:
    return _rate(quota, round(rate, 2 if quota.type is QuotaType.REQUEST else 0))


def _sharers(quota: QuotaState) -> tuple[str, str]:
    """Who shares the quota, and whose quota it is therefore."""
    if quota.slowed:
        them, its = _sharers(replace(quota, slowed=False))
        return f"those of {them} who write to affected topics", its
    user, client_id, scope = whose(quota.user, quota.client_id)
    name, of_client = f"user {printable(user)}", f"client-id {printable(client_id)}"
    if quota.user.startswith(OF_USER):
        return f"all client-ids of {name} that are not known yet", "newcomers'"
    if quota.newcomer:
        return "all newcomers", "newcomers'"
    if quota.user in _TOGETHER:
        return "all clients without one", "unlimited clients'"
    if quota.user == BROKER:
        return "all clients of this broker", "whole broker's"
    if quota.user.startswith(GROUP):
        return f"group {printable(scope.partition(' ')[2])}", "group's"
    text = {"client-id": f"{of_client}, whatever the user", "user": name}.get(scope)
    return (text, f"{scope}'s") if text else (f"this client alone ({name}, {of_client})", "client's")


def _from(quota: QuotaState) -> str:
    if quota.newcomer:
        whose = ", or what each client-id of this user has" if quota.user.startswith(OF_USER) else ""
        return f"newcomers.*{whose} (see newcomer above)"
    if not quota.supplier:
        return "no supplier has an answer, so it is unlimited"
    late = " (a supplier fails for this client now; what it had stays in force)" if quota.failed else ""
    others = [f"{printable(name)} would give {_rate(quota, rate)}" for name, rate in quota.others]
    least = f", the most constraining ({'; '.join(others)})" if others else ""
    return f"supplier {printable(quota.supplier)}{least}{late}"


def _limit(answer: Answer, quota: QuotaState) -> str:
    text = _rate(quota, quota.limit)
    if answer.is_shadow:
        return text + ", as shadow=all enforces nothing"
    if quota.floored:
        return text + ", the floor"
    return text + (f", by the factor {_in_force(answer, quota)[0]:.4g}" if _is_lowered(answer, quota) else "")


def _in_force(answer: Answer, quota: QuotaState) -> tuple[float, str | None]:
    """What the limit is multiplied by now; of a budget, or of the quota type alone, what that is on its way to.

    With the cause where the smaller factor is the one of the quota type alone, else None.
    """
    of_all = 1.0
    if quota.type in answer.factor_types:
        of_all = answer.limit_factor if quota.budget_factor is None else quota.budget_factor
    of_type = None if answer.factor_in_shadow else answer.type_factors.get(quota.type)
    return of_type if of_type is not None and of_type[0] < of_all else (of_all, None)


def _is_lowered(answer: Answer, quota: QuotaState) -> bool:
    """Whether the factor lowers this limit now. A quota below the floor stays whole under any factor."""
    if _in_force(answer, quota)[0] >= 1 or quota.limit is None:
        return False
    return quota.whole is None or quota.limit < quota.whole


def _measured(quota: QuotaState) -> str:
    if quota.rate is None:
        return "nothing yet"
    if quota.user in _TOGETHER:
        return "only together with all other clients without a limit"
    delay = f"recently delayed by {quota.delay:,.0f} ms on average" if quota.delay else "not delayed"
    if quota.delay and quota.type is QuotaType.REQUEST:
        delay += " (partition mutations that were forwarded are delayed here, too)"
    return f"{_used(quota, quota.rate)}, {delay}"


# ---- rules in shadow -------------------------------------------------------------------------------------------


def _in_shadow(answer: Answer, quota: QuotaState) -> list[str]:
    """What each rule in shadow that concerns the quota would do; "" for those that don't."""
    of_quota = ""
    if answer.is_shadow and quota.base is not None:
        of_quota = f"the quota would be the limit; {_compared(quota, quota.rate, quota.base)}"
    return [of_quota, _supplier_in_shadow(answer, quota), _factor_in_shadow(answer, quota)]


def _supplier_in_shadow(answer: Answer, quota: QuotaState) -> str:
    would = would_be(quota.shadow, quota.type)
    if would is None:
        return ""
    user, client_id = would.tags(*answer.client)
    sharers, _ = _sharers(replace(quota, user=user, client_id=client_id, newcomer=False, slowed=False))
    given = f"supplier {printable(would.supplier)} would give {_rate(quota, would.rate)}, shared by {sharers}"
    untouched = answer.factor_in_shadow or answer.is_for_topics or quota.type not in answer.factor_types
    limit = _lowered(answer, quota, would.rate, 1.0 if untouched else answer.limit_factor)
    if answer.is_shadow or limit is None:
        return given
    lowered = "" if limit == would.rate else f" ({_rate(quota, limit)} by the factor)"
    return f"{given}{lowered}; {_compared(quota, answer.would_be_rates.get(quota.type), limit)}"


def _factor_in_shadow(answer: Answer, quota: QuotaState) -> str:
    """What the factor would do if it were not in shadow, once limits have arrived there."""
    concerns = quota.type in answer.factor_types and not quota.exempt and (not answer.is_for_topics or answer.is_marked)
    if not answer.factor_in_shadow or answer.factor >= 1 or not concerns:
        return ""
    limit = _lowered(answer, quota, quota.base, answer.factor, quota.stand_in)
    if limit is None:
        return ""
    if quota.type is QuotaType.PRODUCE and answer.stops_all:
        text = f"the fence would turn back its produce requests ({printable(answer.cause)})"
        return "" if answer.fence_passes else text
    would = f"the factor {answer.factor:.4g} would make the limit {_rate(quota, limit)}"
    return f"{would}; {_compared(quota, quota.rate, limit)}"


def _lowered(
    answer: Answer, quota: QuotaState, base: float | None, factor: float, stand_in: float | None = None
) -> float | None:
    from quotahost.broker.host.comparison import limit  # only here: it needs the settings, which take long to import

    return limit(base, factor, answer.floors[quota.type], stand_in)


def _compared(quota: QuotaState, rate: float | None, limit: float) -> str:
    if rate is None:
        return "how much of it is used isn't measured, or only together with others"
    return f"uses {_used(quota, rate)}; {'would be delayed' if rate > limit else 'would not be delayed'}"


# ---- partition mutations ---------------------------------------------------------------------------------------


def _bucket(answer: Answer, quota: QuotaState) -> Facts:
    """The facts about a CONTROLLER_MUTATION quota in the place of a measured rate."""
    if not answer.is_active_controller:
        ask = "ask again when the cluster has elected one"
        if answer.controller:
            ask = f"on its machine, run quotahost explain --broker-id {printable(answer.controller)}"
        return [] if quota.limit is None else [("tokens", f"{_who_knows(answer)}: {ask}")]
    measured = "nothing yet" if quota.rate is None else MUTATIONS_PER_SECOND.show(round(quota.rate, 1))
    facts = [("measured", f"{measured}, a mean of 30 to 60 s by which Kafka throttles nobody")]
    if quota.limit is None:
        return facts
    burst = answer.mutation_seconds * quota.limit
    # Kafka makes the bucket, a full one, at the first mutation.
    left = burst if quota.tokens is None else quota.tokens
    held = f"Kafka refuses mutations {_until_paid(quota)}" if left < 0 else "Kafka admits mutations"
    return [("tokens", f"{_number(left)} of {_number(burst)} left: {held}"), *facts]


def _until_paid(quota: QuotaState) -> str:
    """For how long an exhausted bucket keeps mutations off."""
    if not quota.limit:
        return "until the limit is raised"
    # Upwards: after the time that is shown, the next mutation is admitted.
    return f"for another {_number(math.ceil(-(quota.tokens or 0) / quota.limit * 10) / 10)} s"


def _who_knows(answer: Answer) -> str:
    if not answer.controller:
        return "the active controller knows, and this node doesn't know which node that is"
    return f"node {printable(answer.controller)} knows, the active controller"


def _number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


# ---- the sentence ----------------------------------------------------------------------------------------------


def limited_by(answer: Answer, quotas: Sequence[QuotaState]) -> str:
    """One sentence: what limits the client now, of the quota types given, or why nothing does."""
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
    """What limits this quota type now, "" for nothing."""
    cause = f" ({printable(answer.cause)})" if answer.cause else ""
    if quota.bound is LimitedBy.FENCE:
        return f"the fence, since it {_writes(quota)}" if quota.affected_topic else f"the fence{cause}"
    if quota.bound is LimitedBy.TOPIC_QUOTA:
        return "topic quotas, which have turned it back in the last 15 s"
    mutates = quota.type is _MUTATIONS
    # Only the active controller creates topics and charges a bucket, and only it knows that it is that.
    if mutates and not answer.is_active_controller:
        return ""
    if mutates and answer.creation_refused and not answer.fence_passes and not answer.factor_in_shadow:
        return f"the PAUSE, in which no topics and partitions are created{cause}"
    if quota.bound is LimitedBy.NOTHING:
        return ""
    return _source_of_limit(answer, quota) + (f" ({_until_paid(quota)})" if mutates else "")


def _why_nothing(answer: Answer, quota: QuotaState) -> str:
    if answer.is_shadow:
        return ", as shadow=all enforces nothing"
    if quota.exempt:
        return f", as it is exempt from all quotas: {_why_exempt(quota)}"
    if quota.limit is None:
        return f", as it has no limit for {quota.type}"
    is_factored = answer.slows_some and quota.type in answer.factor_types
    keeps = is_factored and not quota.affected_topic
    full = ": it keeps its full quota, as it has not written to an affected topic" if keeps else ""
    return f" now{full}; {quota.type} would first be limited by {_source_of_limit(answer, quota)}"


def _source_of_limit(answer: Answer, quota: QuotaState) -> str:
    factor, of_type = _in_force(answer, quota)
    because = f": {printable(answer.cause)}" if answer.cause else ""
    if quota.affected_topic:
        because = f", since it {_writes(quota)}"
    if of_type:
        because = f", since {printable(of_type)}"
    bound = quota.bound
    if bound is LimitedBy.NOTHING:  # what would be first
        lowered = LimitedBy.FACTOR if _is_lowered(answer, quota) else LimitedBy.QUOTA
        bound = LimitedBy.FLOOR if quota.floored else lowered
    if bound is LimitedBy.FLOOR:
        return f"the floor, which the factor {factor:.4g} has come down to{because}"
    if bound is LimitedBy.FACTOR:
        return f"the factor {factor:.4g}{because}"
    given_by = "" if quota.newcomer else f" of {printable(quota.supplier)}"
    return f"the {_sharers(quota)[1]} quota{given_by}"
