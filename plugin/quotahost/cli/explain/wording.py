"""The answer in an operator's words: labelled facts, and one sentence that names what limits the client.

Facts are pairs of label and text, in the order in which they are printed: :func:`common_facts` of the broker and the
client, then :func:`quota_facts` of each quota type. :func:`limited_by` is the sentence below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quotahost.broker.host.dump import OF_USER
from quotahost.broker.host.messages import Reason
from quotahost.cli.explain.quota import (
    TOGETHER,
    Answer,
    QuotaState,
    bucket_facts,
    in_shadow,
    known_elsewhere,
    mode,
    rate_text,
    sharers,
    until_paid,
)
from quotahost.model import QuotaType
from quotahost.model.use import LimitedBy
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND

Facts = list[tuple[str, str]]

_EXEMPT: Final[dict[str, str]] = {
    Reason.EXCLUDED: "its principal is in static.excluded.principal.name.list or exempt.principals",
    Reason.BROKER: "it is a broker of this cluster",
    Reason.PLUGIN: "it is the plugins' own client",
}
_FIRST: Final = "cluster-volumes"  # the factor source for which a second one stands in
_LONGEST: Final = 256  # characters of a client-id that Java's table keeps (Names)
_FOR_PRINCIPALS: Final = 10  # the part of the table that is for principals alone (Remembered)


def _address(answer: Answer) -> str:
    return f", lately from {printable(answer.address)}" if answer.address else ""


def common_facts(answer: Answer) -> Facts:
    """The facts that all quota types share."""
    principal, client_id = map(printable, answer.client)
    facts = [
        ("broker", f"{printable(answer.node) if answer.node else 'of unknown id'} (pid {answer.pid})"),
        ("client", f"user {principal}, client-id {client_id}{_address(answer)}"),
        ("state", str(answer.state)),
        ("factor", _factor(answer)),
    ]
    if _has_cause(answer):
        facts.append(("cause", printable(answer.cause)))
    if answer.source:
        facts.append(("source", _source(answer)))
    if answer.is_for_topics:
        facts.append(("scope", _scope(answer)))
    facts.append(("fence", _fence(answer)))
    if answer.topics_threshold:
        facts.append(("topics", _topics(answer)))
    facts.append(("mode", mode(answer)))
    if newcomer := next((quota for quota in answer.quotas if quota.newcomer), None):
        facts.append(("newcomer", _newcomer(answer, newcomer)))
    return facts


def _has_cause(answer: Answer) -> bool:
    """Whether the cause is one: at factor 1 the fullest volume is none, but the fallback is."""
    return bool(answer.cause) and (answer.factor < 1 or "fallback.action" in answer.cause)


def _factor(answer: Answer) -> str:
    text = f"{answer.factor:.4g}, on {', '.join(map(printable, sorted(answer.factor_types)))}"
    if answer.factor_in_shadow:
        return text + ("; in shadow: limits are not multiplied by it" if answer.factor < 1 else "")
    if answer.limit_factor == answer.factor:
        return text
    by_fence = answer.fence_closed and answer.factor <= 0
    why = "the fence keeps the PAUSE" if by_fence else "on their way there in steps that max.mute allows"
    return f"{text}; limits are multiplied by {answer.limit_factor:.4g} now, {why}"


def _scope(answer: Answer) -> str:
    many = f"the factor is for those who write to {answer.affected_topics:,} affected topics"
    if answer.factor_in_shadow:
        return f"{many}; it is in shadow, so nobody is slowed"
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
    if answer.fence_closed and answer.factor_in_shadow:
        whose = (
            "requests to affected topics on full volumes" if answer.is_for_topics else "this client's produce requests"
        )
        return f"open, as the factor is in shadow; else {whose} would be turned back"
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
    over = [topic for topic in answer.topics_over if topic not in answer.topics_in_shadow]
    parts = [(verb, over), ("in shadow, so only counted", answer.topics_in_shadow)]
    return text + "; ".join(f"{what}: {', '.join(map(printable, topics))}" for what, topics in parts if topics)


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
    return f"the table doesn't know this client: {why}; it shares the quota of {sharers(quota)[0]}{hint}"


def quota_facts(answer: Answer, quota: QuotaState) -> Facts:
    """The facts about one quota type."""
    if quota.exempt:
        return [
            ("exempt", _EXEMPT.get(quota.supplier, "it is exempt")),
            ("limit", "unlimited"),
            ("measured", _measured(quota)),
        ]
    facts = [("quota", f"{rate_text(quota, quota.base)}, shared by {sharers(quota)[0]}"), ("from", _from(quota))]
    if quota.uses_stand_in:
        rate, of = (quota.newcomers, "the newcomers' rate") if quota.stand_in is None else (quota.stand_in, "measured")
        facts.append(("instead", f"{rate_text(quota, rate)} ({of}), as a factor needs a rate to act on"))
    facts.append(("limit", _limit(answer, quota)))
    facts += [("in shadow", text) for text in in_shadow(answer, quota)]
    if quota.type is QuotaType.CONTROLLER_MUTATION and quota.user not in TOGETHER:
        return [*facts, *bucket_facts(answer, quota)]
    return [*facts, ("measured", _measured(quota))]


def _from(quota: QuotaState) -> str:
    if quota.newcomer:
        whose = ", or what each client-id of this user has" if quota.user.startswith(OF_USER) else ""
        return f"newcomers.*{whose} (see newcomer above)"
    if not quota.supplier:
        return "no supplier has an answer, so it is unlimited"
    late = " (a supplier fails for this client now; what it had stays in force)" if quota.failed else ""
    others = [f"{printable(name)} would give {rate_text(quota, rate)}" for name, rate in quota.others]
    least = f", the most constraining ({'; '.join(others)})" if others else ""
    return f"supplier {printable(quota.supplier)}{least}{late}"


def _limit(answer: Answer, quota: QuotaState) -> str:
    text = rate_text(quota, quota.limit)
    if answer.is_shadow:
        return text + ", as shadow=all enforces nothing"
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
    delay = f"recently delayed by {quota.delay:,.0f} ms on average" if quota.delay else "not delayed"
    if quota.delay and quota.type is QuotaType.REQUEST:
        delay += " (partition mutations that were forwarded are delayed here, too)"
    if quota.user in TOGETHER:
        return "only together with all other clients without a limit"
    return f"{rate_text(quota, round(quota.rate, 2 if quota.type is QuotaType.REQUEST else 0))}, {delay}"


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
    if quota.bound is LimitedBy.FENCE:
        if quota.affected_topic:
            return f"the fence, since it {_writes(quota)}"
        return f"the fence ({printable(answer.cause)})" if answer.cause else "the fence"
    if quota.bound is LimitedBy.TOPIC_QUOTA:
        return "topic quotas, which have turned it back in the last 15 s"
    mutates = quota.type is QuotaType.CONTROLLER_MUTATION
    # Only the active controller creates topics and charges a bucket, and only it knows that it is that.
    if mutates and _is_creation_refused(answer):
        return f"the PAUSE, in which no topics and partitions are created ({printable(answer.cause)})"
    if quota.bound is LimitedBy.NOTHING or (mutates and not answer.is_active_controller):
        return ""
    return _source_of_limit(answer, quota) + (f" ({until_paid(quota)})" if mutates else "")


def _is_creation_refused(answer: Answer) -> bool:
    return answer.creation_refused and answer.is_active_controller and not answer.fence_passes | answer.factor_in_shadow


def _why_nothing(answer: Answer, quota: QuotaState) -> str:
    if answer.is_shadow:
        return ", as shadow=all enforces nothing"
    if quota.exempt:
        return f", as it is exempt from all quotas: {_EXEMPT.get(quota.supplier, 'it is exempt')}"
    if quota.limit is None:
        return f", as it has no limit for {quota.type}"
    spared = (
        answer.is_for_topics
        and not answer.factor_in_shadow
        and str(quota.type) in answer.factor_types
        and not quota.affected_topic
    )
    full = ": it keeps its full quota, as it has not written to an affected topic" if spared else ""
    return f" now{full}; {quota.type} would first be limited by {_source_of_limit(answer, quota)}"


def _source_of_limit(answer: Answer, quota: QuotaState) -> str:
    because = f": {printable(answer.cause)}" if answer.cause else ""
    if quota.affected_topic:
        because = f", since it {_writes(quota)}"
    bound = quota.bound
    if bound is LimitedBy.NOTHING:  # what would be first
        bound = (
            LimitedBy.FLOOR if quota.floored else LimitedBy.FACTOR if _is_lowered(answer, quota) else LimitedBy.QUOTA
        )
    if bound is LimitedBy.FLOOR:
        return f"the floor, which the factor {answer.limit_factor:.4g} has come down to{because}"
    if bound is LimitedBy.FACTOR:
        return f"the factor {answer.limit_factor:.4g}{because}"
    given_by = "" if quota.newcomer else f" of {printable(quota.supplier)}"
    return f"the {sharers(quota)[1]} quota{given_by}"
