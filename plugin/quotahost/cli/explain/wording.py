"""The answer in an operator's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from quotahost.cli.explain.answer import Held, Told
from quotahost.host.exemptions import Reason
from quotahost.model import QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, Unit

# TODO(merge) The sentence that the answer ends with: what binds.


_UNITS: Final[dict[QuotaType, Unit]] = {
    QuotaType.PRODUCE: BYTES_PER_SECOND,
    QuotaType.FETCH: BYTES_PER_SECOND,
    QuotaType.REQUEST: PERCENT,
    QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND,
}


_EXEMPT: Final = {
    Reason.EXCLUDED: "its principal is in static.excluded.principal.name.list",
    Reason.BROKER: "it is a broker of this cluster",
    Reason.PLUGIN: "it is the plugins' own client",
}


_FIRST: Final = "cluster-volumes"  # the factor source that has a second one


Facts = list[tuple[str, str]]


def common(told: Told) -> Facts:
    """What holds for all quota types."""
    user, client_id = map(printable, told.client)
    facts = [
        ("broker", f"{told.node or 'of unknown id'} (pid {told.pid})"),
        ("client", f"user {user}, client-id {client_id}"),
        ("state", str(told.state)),
        ("factor", _factor(told)),
    ]
    if told.cause:
        facts.append(("cause", printable(told.cause)))
    if told.source:
        facts.append(("source", _source(told)))
    facts.append(("fence", _fence(told)))
    if told.topics_threshold:
        facts.append(("topics", _topics(told)))
    facts.append(("mode", "shadow: nothing is enforced" if told.shadow else "enforce"))
    if newcomer := next((held for held in told.held if held.newcomer), None):
        facts.append(("newcomer", _newcomer(told, newcomer)))
    return facts


def of_type(told: Told, held: Held) -> Facts:
    """What holds for one quota type."""
    if held.exempt:
        return [("exempt", why_exempt(held)), ("limit", "unlimited"), ("measured", _measured(held))]
    facts = [("quota", f"{_rate(held, held.base)}, shared by {_sharers(held)}"), ("from", _from(held))]
    if held.stand_in is not None:
        kind = "measured when the factor fell" if held.is_stand_in_measured else "the newcomers' rate"
        facts.append(
            ("instead", f"{_rate(held, held.stand_in)} ({kind}), as a factor needs a rate to act on")
        )
    return [*facts, ("limit", _limit(told, held)), ("measured", _measured(held))]


def factor_acts(told: Told, held: Held) -> bool:
    """Whether the factor takes this limit down now."""
    whole = held.stand_in if held.base is None else held.base
    return (
        str(held.type) in told.factored
        and told.limit_factor < 1
        and (whole is None or held.limit is None or held.limit < whole)
    )


# ---- facts ----


def _factor(told: Told) -> str:
    acts = f", on {', '.join(sorted(told.factored))}"
    if told.limit_factor == told.factor:
        return times(told.factor) + acts
    now = f"limits are multiplied by {times(told.limit_factor)} now"
    held = told.fence_closed and told.factor <= 0
    why = "the fence holds the PAUSE" if held else "on their way there in steps that max.mute allows"
    return f"{times(told.factor)}{acts}; {now}, {why}"


def _source(told: Told) -> str:
    if told.source == _FIRST:
        return f"{_FIRST} answers"
    return f"{printable(told.source)} answers, the second one, since no record reaches {_FIRST}"


def _fence(told: Told) -> str:
    if not told.fence_installed:
        return "none: in a PAUSE the limits go down to the floor"
    if told.fence_passes:
        return ("closed" if told.fence_closed else "open") + "; this client passes it in every state"
    return "closed: this client's produce requests are turned back" if told.fence_closed else "open"


def _topics(told: Told) -> str:
    show = BYTES_PER_SECOND.show
    text = f"{show(round(told.topics_rate))} come in where {show(told.topics_threshold)} are expected; "
    if not told.topics_over:
        return text + "no topic is over its own threshold meanwhile"
    verb = "passed by this client alone" if told.fence_passes else "turned back"
    return f"{text}{verb}: {', '.join(map(printable, told.topics_over))}"


def _newcomer(told: Told, held: Held) -> str:
    if held.supplier:
        why = f"the supplier {printable(held.supplier)} fails for it, and it never had a quota"
    elif told.table_full:
        why = "the table is full (clients.max)"
    else:
        why = "it has sent nothing since the broker's start or for clients.idle, or its first request is being answered"
    hint = (
        "; USER is the principal's name, without User:" if told.client.principal.startswith("User:") else ""
    )
    return f"the table doesn't know this client: {why}; it shares the newcomers' quota{hint}"


def why_exempt(held: Held) -> str:
    """Why no quota holds for the client."""
    return _EXEMPT[Reason(held.supplier)] if held.supplier in list(Reason) else "it is exempt"


def _from(held: Held) -> str:
    if held.newcomer:
        return "newcomers.* (see newcomer above)"
    if not held.supplier:
        return "no supplier has an answer, so it is unlimited"
    late = " (a supplier fails for this client now; what it had holds on)" if held.failed else ""
    others = [f"{printable(name)} would give {_rate(held, rate)}" for name, rate in held.others]
    least = f", the most constraining ({'; '.join(others)})" if others else ""
    return f"supplier {printable(held.supplier)}{least}{late}"


def _sharers(held: Held) -> str:
    if held.newcomer:
        return "all newcomers"
    if held.user == "<broker>":
        return "all clients of this broker"
    if held.user.startswith("<group "):
        return f"group {printable(unquote(held.user[len('<group ') : -1]))}"
    if not held.user:
        return f"client-id {printable(held.client_id)}, whatever the user"
    user = f"user {printable(unquote(held.user))}"
    return f"this client alone ({user}, client-id {printable(held.client_id)})" if held.client_id else user


def _limit(told: Told, held: Held) -> str:
    text = _rate(held, held.limit)
    if told.shadow:
        return text + ", as mode=shadow enforces nothing"
    if held.floored:
        return text + ", the floor"
    if held.limit is not None and factor_acts(told, held):
        return text + f", by the factor {times(told.limit_factor)}"
    return text


def _measured(held: Held) -> str:
    if held.rate is None:
        return "nothing yet"
    delay = f"delayed by {held.delay:,.0f} ms of late" if held.delay else "not delayed"
    return f"{_rate(held, round(held.rate, 2 if held.type is QuotaType.REQUEST else 0))}, {delay}"


def times(factor: float) -> str:
    """A factor in four digits at most."""
    return f"{factor:.4g}"


def _rate(held: Held, rate: float | None) -> str:
    return _UNITS[held.type].show(rate)


_FELT: Final = 0.9  # of a limit: Kafka's measure swings around it


def binds(told: Told, held: Sequence[Held]) -> str:
    """One sentence: what holds the client back, of the quota types given; the first one's words if nothing does."""
    felt = [f"{each.type}: {words}" for each in held if (words := _felt(told, each))]
    return "What binds " + "; ".join(felt) if felt else f"What binds: {_nothing(told, held[0])}"


def _felt(told: Told, held: Held) -> str:
    if held.type is QuotaType.PRODUCE and told.fence_closed and not told.fence_passes and not told.shadow:
        return f"the fence ({printable(told.cause)})" if told.cause else "the fence"
    if held.limit is None:
        return ""
    if held.delay or (held.rate is not None and held.rate >= _FELT * held.limit):
        return _limiter(told, held)
    return ""


def _nothing(told: Told, held: Held) -> str:
    if told.shadow:
        return "nothing, as mode=shadow enforces nothing"
    if held.exempt:
        return f"nothing, as it is exempt from all quotas: {why_exempt(held)}"
    if held.limit is None:
        return f"nothing, as it has no limit for {held.type}"
    return f"nothing now; the first to bind {held.type} would be {_limiter(told, held)}"


def _limiter(told: Told, held: Held) -> str:
    because = f": {printable(told.cause)}" if told.cause else ""
    if held.floored:
        return f"the floor, which the factor {times(told.limit_factor)} has come down to{because}"
    if factor_acts(told, held):
        return f"the factor {times(told.limit_factor)}{because}"
    if held.newcomer:
        return "the newcomers' quota"
    return f"the {_whose(held)} quota of {printable(held.supplier)}"


def _whose(held: Held) -> str:
    if held.user == "<broker>":
        return "whole broker's"
    if held.user.startswith("<group "):
        return "group's"
    return "client-id's" if not held.user else "client's" if held.client_id else "user's"
