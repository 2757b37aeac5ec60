"""The answer in an operator's words: labelled facts, and one sentence that names what limits the client.

Facts are pairs of label and text, in the order in which ``command`` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from quotahost.cli.explain.answer import Answer, QuotaState
from quotahost.cli.explain.mutations import bucket_facts, how_long, is_exhausted, known_elsewhere
from quotahost.host.exemptions import Reason
from quotahost.model import QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, Unit

Facts = list[tuple[str, str]]

_UNITS: Final[dict[QuotaType, Unit]] = {
    QuotaType.PRODUCE: BYTES_PER_SECOND,
    QuotaType.FETCH: BYTES_PER_SECOND,
    QuotaType.REQUEST: PERCENT,
    QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND,
}
_EXEMPT: Final[dict[str, str]] = {
    Reason.EXCLUDED: "its principal is in static.excluded.principal.name.list or exempt.principals",
    Reason.BROKER: "it is a broker of this cluster",
    Reason.PLUGIN: "it is the plugins' own client",
}
_FIRST: Final = "cluster-volumes"  # the factor source for which a second one stands in
_BROKER: Final = "<broker>"  # Java's tag of a quota that all clients of the broker share
_GROUP: Final = "<group "  # followed by the group's name, escaped, and ">"
_NEWCOMERS: Final = "<newcomers "  # likewise, followed by a user's name
_SLOWED: Final = "<slowed"  # followed by the user tag of a scope; its clients that write to affected topics (Twin)
_TOGETHER: Final = ("<unlimited>", "<exempt>")  # the tags of clients that nobody needs to measure apart
_LONGEST: Final = 256  # characters of a client-id that Java's table keeps (Names)
_FOR_PRINCIPALS: Final = 10  # the part of the table that is for principals alone (Remembered)
_NEAR: Final = 0.9  # of a limit: a client at its limit swings around it, since Kafka measures in samples


def common_facts(answer: Answer) -> Facts:
    """The facts that all quota types share."""
    principal, client_id = map(printable, answer.client)
    facts = [
        ("broker", f"{answer.node or 'of unknown id'} (pid {answer.pid})"),
        ("client", f"user {principal}, client-id {client_id}"),
        ("state", str(answer.state)),
        ("factor", _factor(answer)),
    ]
    if answer.cause:
        facts.append(("cause", printable(answer.cause)))
    if answer.source:
        facts.append(("source", _source(answer)))
    if answer.is_for_topics:
        facts.append(("scope", _scope(answer)))
    facts.append(("fence", _fence(answer)))
    if answer.topics_threshold:
        facts.append(("topics", _topics(answer)))
    facts.append(("mode", "shadow: nothing is enforced" if answer.is_shadow else "enforce"))
    if newcomer := next((quota for quota in answer.quotas if quota.is_newcomer), None):
        facts.append(("newcomer", _newcomer(answer, newcomer)))
    return facts


def _factor(answer: Answer) -> str:
    text = f"{answer.factor:.4g}, on {', '.join(sorted(answer.factor_types))}"
    if answer.limit_factor == answer.factor:
        return text
    by_fence = answer.fence_closed and answer.factor <= 0
    why = "the fence keeps the PAUSE" if by_fence else "on their way there in steps that max.mute allows"
    return f"{text}; limits are multiplied by {answer.limit_factor:.4g} now, {why}"


def _scope(answer: Answer) -> str:
    many = f"the factor is for those who write to {answer.affected_topics:,} affected topics"
    slowed = next((quota for quota in answer.quotas if quota.affected_topic), None)
    if slowed is not None:
        return f"{many}; this client is slowed, since it {_writes(slowed)}"
    return f"{many}; this client keeps its full quota: it has not written to an affected topic"


def _writes(quota: QuotaState) -> str:
    topic, place = printable(quota.affected_topic), printable(quota.affected_place)
    return f"writes to {topic}, which has a replica on {place}"


def _source(answer: Answer) -> str:
    if answer.source == _FIRST:
        return f"{_FIRST} answers"
    return f"{printable(answer.source)} answers as the standby, since no record reaches {_FIRST}"


def _fence(answer: Answer) -> str:
    if not answer.fence_installed:
        return "none: in a PAUSE the limits go down to the floor"
    if answer.fence_passes:
        return ("closed" if answer.fence_closed else "open") + "; this client passes it in every state"
    if answer.fence_closed and answer.is_for_topics:
        return "closed for affected topics on volumes at their hard limit: requests to these are turned back"
    return "closed: this client's produce requests are turned back" if answer.fence_closed else "open"


def _topics(answer: Answer) -> str:
    show = BYTES_PER_SECOND.show
    rate, threshold = show(round(answer.topics_rate)), show(answer.topics_threshold)
    text = f"{rate} come in where {threshold} are expected; "
    if not answer.topics_over:
        return text + "no topic is over its own threshold meanwhile"
    # A super user passes a closed fence, too, but has quotas, also those of topics.
    exempt = answer.fence_passes and any(quota.exempt for quota in answer.quotas)
    verb = "passed by this client alone" if exempt else "turned back"
    return f"{text}{verb}: {', '.join(map(printable, answer.topics_over))}"


def _newcomer(answer: Answer, quota: QuotaState) -> str:
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


def quota_facts(answer: Answer, quota: QuotaState) -> Facts:
    """The facts about one quota type."""
    if quota.exempt:
        return [
            ("exempt", _EXEMPT.get(quota.supplier, "it is exempt")),
            ("limit", "unlimited"),
            ("measured", _measured(quota)),
        ]
    facts = [("quota", f"{_rate(quota, quota.base)}, shared by {_sharers(quota)[0]}"), ("from", _from(quota))]
    if quota.stand_in is not None:
        measured = quota.stand_in_from == "measured"
        kind = "measured when the factor fell" if measured else "the newcomers' rate"
        text = f"{_rate(quota, quota.stand_in)} ({kind}), as a factor needs a rate to act on"
        facts.append(("instead", text))
    facts.append(("limit", _limit(answer, quota)))
    if quota.type is QuotaType.CONTROLLER_MUTATION and quota.user not in _TOGETHER:
        return [*facts, *bucket_facts(answer, quota)]
    return [*facts, ("measured", _measured(quota))]


def _from(quota: QuotaState) -> str:
    if quota.is_newcomer:
        whose = ", or what each client-id of this user has" if quota.user.startswith(_NEWCOMERS) else ""
        return f"newcomers.*{whose} (see newcomer above)"
    if not quota.supplier:
        return "no supplier has an answer, so it is unlimited"
    late = " (a supplier fails for this client now; what it had stays in force)" if quota.failed else ""
    others = [f"{printable(name)} would give {_rate(quota, rate)}" for name, rate in quota.others]
    least = f", the most constraining ({'; '.join(others)})" if others else ""
    return f"supplier {printable(quota.supplier)}{least}{late}"


def _sharers(quota: QuotaState) -> tuple[str, str]:
    """Who shares the quota, and whose quota it is therefore."""
    if quota.user.startswith(_SLOWED):
        # The slowed of a scope have tags beside those of the scope.
        own = quota.model_copy(update={"user": quota.user[len(_SLOWED) : -1].lstrip(" ")})
        sharers, whose = _sharers(own)
        return f"those of {sharers} who write to affected topics", whose
    if quota.user.startswith(_NEWCOMERS):
        user = printable(unquote(quota.user[len(_NEWCOMERS) : -1]))
        return f"all client-ids of user {user} that are not known yet", "newcomers'"
    if quota.is_newcomer:
        return "all newcomers", "newcomers'"
    if quota.user in _TOGETHER:
        return "all clients without one", "unlimited clients'"
    if quota.user == _BROKER:
        return "all clients of this broker", "whole broker's"
    if quota.user.startswith(_GROUP):
        # The tags have the user's and the group's name URL-encoded, as Kafka sanitizes it.
        return f"group {printable(unquote(quota.user[len(_GROUP) : -1]))}", "group's"
    if not quota.user:
        return f"client-id {printable(quota.client_id)}, whatever the user", "client-id's"
    user = f"user {printable(unquote(quota.user))}"
    if not quota.client_id:
        return user, "user's"
    return f"this client alone ({user}, client-id {printable(quota.client_id)})", "client's"


def _limit(answer: Answer, quota: QuotaState) -> str:
    text = _rate(quota, quota.limit)
    if answer.is_shadow:
        return text + ", as mode=shadow enforces nothing"
    if quota.floored:
        return text + ", the floor"
    if quota.limit is not None and _is_lowered(answer, quota):
        return text + f", by the factor {answer.limit_factor:.4g}"
    return text


def _is_lowered(answer: Answer, quota: QuotaState) -> bool:
    """Whether the factor lowers this limit now."""
    # A quota below the floor stays whole under any factor, so the limit is compared, too.
    whole = quota.stand_in if quota.base is None else quota.base
    return (
        str(quota.type) in answer.factor_types
        and answer.limit_factor < 1
        and (whole is None or quota.limit is None or quota.limit < whole)
    )


def _measured(quota: QuotaState) -> str:
    if quota.rate is None:
        return "nothing yet"
    delay = f"delayed by {quota.delay:,.0f} ms of late" if quota.delay else "not delayed"
    if quota.delay and quota.type is QuotaType.REQUEST:
        delay += " (partition mutations that were forwarded are delayed here, too)"
    if quota.user in _TOGETHER:
        return "only together with all other clients without a limit"
    return f"{_rate(quota, round(quota.rate, 2 if quota.type is QuotaType.REQUEST else 0))}, {delay}"


def _rate(quota: QuotaState, rate: float | None) -> str:
    return _UNITS[quota.type].show(rate)


def limited_by(answer: Answer, quotas: Sequence[QuotaState]) -> str:
    """One sentence: what limits the client now, of the quota types given, or why nothing does."""
    limited = [f"{quota.type} is limited by {by}" for quota in quotas if (by := _limits_now(answer, quota))]
    elsewhere = known_elsewhere(answer, quotas)
    if not limited and not (elsewhere and len(quotas) == 1):
        limited = [f"Nothing limits this client{_why_nothing(answer, quotas[0])}"]
    sentence = "; ".join([*limited, elsewhere] if elsewhere else limited)
    return sentence[0].upper() + sentence[1:]


def _limits_now(answer: Answer, quota: QuotaState) -> str:
    """What limits this quota type now, "" for nothing."""
    produces = quota.type is QuotaType.PRODUCE and (not answer.is_for_topics or quota.affected_topic)
    if produces and answer.fence_closed and not answer.fence_passes and not answer.is_shadow:
        if quota.affected_topic:
            return f"the fence, since it {_writes(quota)}"
        return f"the fence ({printable(answer.cause)})" if answer.cause else "the fence"
    mutates = quota.type is QuotaType.CONTROLLER_MUTATION
    if (
        mutates
        and answer.creation_refused
        and answer.is_active_controller
        and not answer.fence_passes | answer.is_shadow
    ):
        return f"the PAUSE, in which no topics and partitions are created ({printable(answer.cause)})"
    if quota.limit is None:
        return ""
    if mutates:
        return _source_of_limit(answer, quota) + how_long(quota) if is_exhausted(answer, quota) else ""
    is_near = quota.rate is not None and quota.rate >= _NEAR * quota.limit
    # Kafka counts the delay of a forwarded mutation as one of requests, which says nothing of the request quota.
    is_delayed = quota.delay and quota.type is not QuotaType.REQUEST
    return _source_of_limit(answer, quota) if is_delayed or is_near else ""


def _why_nothing(answer: Answer, quota: QuotaState) -> str:
    if answer.is_shadow:
        return ", as mode=shadow enforces nothing"
    if quota.exempt:
        return f", as it is exempt from all quotas: {_EXEMPT.get(quota.supplier, 'it is exempt')}"
    if quota.limit is None:
        return f", as it has no limit for {quota.type}"
    spared = answer.is_for_topics and str(quota.type) in answer.factor_types and not quota.affected_topic
    full = ": it keeps its full quota, as it has not written to an affected topic" if spared else ""
    return f" now{full}; {quota.type} would first be limited by {_source_of_limit(answer, quota)}"


def _source_of_limit(answer: Answer, quota: QuotaState) -> str:
    because = f": {printable(answer.cause)}" if answer.cause else ""
    if quota.affected_topic:
        because = f", since it {_writes(quota)}"
    if quota.floored:
        return f"the floor, which the factor {answer.limit_factor:.4g} has come down to{because}"
    if _is_lowered(answer, quota):
        return f"the factor {answer.limit_factor:.4g}{because}"
    given_by = "" if quota.is_newcomer else f" of {printable(quota.supplier)}"
    return f"the {_sharers(quota)[1]} quota{given_by}"
