"""What a broker says of a client, in an operator's words: labelled facts about the broker and the client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from quotahost.broker.host import dump
from quotahost.broker.host.dump import BrokerState, QuotaState, Row, whose
from quotahost.model import Client, QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, rounded, show_bytes

Facts = Iterator[tuple[str, str]]  # labels and texts

TOGETHER: Final = (dump.UNLIMITED, dump.EXEMPT)  # the tags of clients that nobody needs to measure apart
_IN_SHADOW: Final = "in shadow: limits are not multiplied by it"
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


def parse(told: Row, client: Client) -> Answer:
    """The answer of ``broker_status.explained``. Raises ValueError if it is that of another version."""
    with dump.of_this_version():
        facts, of_client = dump.state_facts(told["state"]), told["client"]
        quotas = tuple(dump.quota_of(BrokerState(**facts), row, of_client) for row in of_client["quotas"])
        return Answer(
            **facts, client=client, fence_passes=bool(of_client["passes"]),
            is_marked=of_client["mark"] is not None, quotas=quotas, would_be_rates=told.get("would_be_rates", {}),
            address=of_client.get("address") or "", budget=told.get("budget", {}),
        )  # fmt: skip


def common_facts(answer: Answer) -> Facts:
    principal, client_id = map(printable, answer.client)
    address = f", lately from {printable(answer.address)}" if answer.address else ""
    yield "broker", f"{printable(answer.node) if answer.node else 'of unknown id'} (pid {answer.pid})"
    yield "client", f"user {principal}, client-id {client_id}{address}"
    yield "state", str(answer.state)
    yield "factor", _factor(answer)
    # At factor 1 the fullest volume is no cause, but the fallback is.
    if answer.cause and (answer.factor < 1 or "fallback.action" in answer.cause):
        yield "cause", printable(answer.cause)
    slowed = [
        f"since {printable(cause)}: {', '.join(map(printable, names))} by the factor {factor:.4g}"
        for names, factor, cause in answer.slowed_types
    ]
    if slowed:
        yield "slowed", "; ".join([*slowed, _IN_SHADOW] if answer.factor_in_shadow else slowed)
    if answer.source == _FIRST:
        yield "source", f"{_FIRST} answers"
    elif answer.source:
        yield "source", f"{printable(answer.source)} answers as the standby, since no record reaches {_FIRST}"
    if answer.is_for_topics:
        yield "scope", _scope(answer)
    if of_budget := [quota for quota in answer.quotas if quota.budget_factor is not None]:
        yield "budget", _budget(of_budget[0], answer.budget)
    yield "fence", _fence(answer)
    if answer.topics_threshold:
        yield "topics", _topics(answer)
    rules = f", but for what is in shadow: {', '.join(map(printable, answer.shadow))}" if answer.shadow else ""
    yield "mode", "shadow: nothing is enforced" if answer.is_shadow else f"enforce{rules}"
    if newcomers := [quota for quota in answer.quotas if quota.newcomer]:
        yield "newcomer", _newcomer(answer, newcomers[0])


def _factor(answer: Answer) -> str:
    text = f"{answer.factor:.4g}, on {', '.join(map(printable, sorted(answer.factor_types)))}"
    if answer.factor_in_shadow:
        return f"{text}; {_IN_SHADOW}" if answer.factor < 1 else text
    # Java tells only of produce limits; "slowed" tells of a factor of their own.
    of_type = answer.type_factors.get(QuotaType.PRODUCE, (1.0, ""))[0]
    if QuotaType.PRODUCE not in answer.factor_types or answer.limit_factor == min(answer.factor, of_type):
        return text
    by_fence = answer.fence_closed and answer.factor <= 0
    where = "there" if answer.factor <= of_type else f"to {of_type:.4g}"
    why = "the fence keeps the PAUSE" if by_fence else f"on their way {where} in steps that max.mute allows"
    return f"{text}; limits are multiplied by {answer.limit_factor:.4g} now, {why}"


def _scope(answer: Answer) -> str:
    slowed = [quota for quota in answer.quotas if quota.affected_topic and quota.budget_factor is None]
    then = "this client keeps its full quota: it has not written to an affected topic"
    if answer.factor_in_shadow:
        then = "it is in shadow, so nobody is slowed"
    elif slowed:
        then = f"this client is slowed, since it {writes(slowed[0])}"
    elif any(quota.budget_factor is not None for quota in answer.quotas):
        then = "this client is slowed by its budget"
    return f"the factor is for those who write to {answer.affected_topics:,} affected topics; {then}"


def _budget(quota: QuotaState, budget: Row) -> str:
    factor = quota.budget_factor or 0.0
    what = "turned back" if factor <= 0 else f"slowed by the factor {factor:.4g}"
    told = [f"this client {writes(quota)}: {what}"]
    if budget.get("bytes"):
        told.append(f"{show_bytes(budget['used'])} of {show_bytes(budget['bytes'])} are used in the cluster")
    topics = []
    for topic, size, growth in budget.get("largest", ()):
        an_hour = "" if growth is None else f", {'+' if growth > 0 else ''}{rounded(growth * 3600, 'B/h')}"
        topics.append(f"{printable(topic)} ({show_bytes(size)}{an_hour})")
    if topics:
        told.append(f"the largest on this broker: {', '.join(topics)}")
    return "; ".join(told)


def writes(quota: QuotaState) -> str:
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
    rate, threshold = map(BYTES_PER_SECOND.show, (round(answer.topics_rate), answer.topics_threshold))
    # A super user passes a closed fence, too, but has quotas, also those of topics.
    exempt = answer.fence_passes and any(quota.exempt for quota in answer.quotas)
    verb = "passed by this client alone" if exempt else "turned back"
    over = [topic for topic in answer.topics_over if topic not in answer.topics_in_shadow]
    parts = [(verb, over), ("in shadow, so only counted", answer.topics_in_shadow)]
    told = [f"{what}: {', '.join(map(printable, topics))}" for what, topics in parts if topics]
    meanwhile = "; ".join(told) or "no topic is over its own threshold meanwhile"
    return f"{rate} come in where {threshold} are expected; {meanwhile}"


def _newcomer(answer: Answer, quota: QuotaState) -> str:
    """Why the table doesn't know the client, and whose quota it therefore shares."""
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


def sharers(quota: QuotaState) -> tuple[str, str]:
    """Who shares the quota, and whose quota it is therefore."""
    if quota.slowed:
        them, its = sharers(replace(quota, slowed=False))
        return (them if its == "client's" else f"those who write to affected topics, of {them}"), its
    user, client_id, scope = whose(quota.user, quota.client_id)
    name, of_client = f"user {printable(user)}", f"client-id {printable(client_id)}"
    if quota.newcomer:
        of_user = scope == "newcomers of the user"
        return f"all client-ids of {name} that are not known yet" if of_user else "all newcomers", "newcomers'"
    if quota.user.startswith(dump.GROUP):
        return f"group {printable(scope.partition(' ')[2])}", "group's"
    return {
        "unlimited": ("all clients without one", "unlimited clients'"),
        "exempt": ("all clients without one", "unlimited clients'"),
        "broker": ("all clients of this broker", "whole broker's"),
        "client-id": (f"{of_client}, whatever the user", "client-id's"),
        "user": (name, "user's"),
    }.get(scope, (f"this client alone ({name}, {of_client})", "client's"))
