"""What rules in shadow would do for a client: the supplier that would give its quota, and the factor."""

from __future__ import annotations

from dataclasses import replace

from quotahost.broker.host.would_be import would_be
from quotahost.cli.explain.answer import Answer, QuotaState
from quotahost.cli.explain.quotas import rate_text, sharers
from quotahost.model import QuotaType
from quotahost.text import printable


def mode(answer: Answer) -> str:
    """Which rules are enforced."""
    if answer.is_shadow:
        return "shadow: nothing is enforced"
    rules = ", ".join(map(printable, answer.shadow))
    return f"enforce, but for what is in shadow: {rules}" if rules else "enforce"


def in_shadow(answer: Answer, quota: QuotaState) -> list[str]:
    """A sentence for each rule in shadow that concerns the quota."""
    return [text for text in (_quota(answer, quota), _supplier(answer, quota), _factor(answer, quota)) if text]


def _quota(answer: Answer, quota: QuotaState) -> str:
    if not answer.is_shadow or quota.base is None:
        return ""
    return f"the quota would be the limit; {_compared(quota, quota.rate, quota.base)}"


def _supplier(answer: Answer, quota: QuotaState) -> str:
    would = would_be(quota.shadow, quota.type)
    if would is None:
        return ""
    user, client_id = would.tags(*answer.client)
    whose = f"shared by {sharers(replace(quota, user=user, client_id=client_id, newcomer=False, slowed=False))[0]}"
    given = f"supplier {printable(would.supplier)} would give {rate_text(quota, would.rate)}, {whose}"
    limit = _would_be_limit(answer, quota, would.rate)
    if limit is None:
        return given
    lowered = "" if limit == would.rate else f" ({rate_text(quota, limit)} by the factor)"
    return f"{given}{lowered}; {_compared(quota, answer.would_be_rates.get(quota.type), limit)}"


def _would_be_limit(answer: Answer, quota: QuotaState, rate: float | None) -> float | None:
    """The limit that Kafka would get, by what is enforced now."""
    if answer.is_shadow:
        return None
    untouched = answer.factor_in_shadow or answer.is_for_topics or quota.type not in answer.factor_types
    return _limit(answer, quota, rate, 1.0 if untouched else answer.limit_factor)


def _limit(
    answer: Answer, quota: QuotaState, base: float | None, factor: float, stand_in: float | None = None
) -> float | None:
    from quotahost.broker.host.comparison import limit  # only here: it needs the settings, which take long to import

    return limit(base, factor, answer.floors[quota.type], stand_in)


def _factor(answer: Answer, quota: QuotaState) -> str:
    """What the factor would do if it were not in shadow, once limits have arrived there."""
    concerns = quota.type in answer.factor_types and not quota.exempt and (not answer.is_for_topics or answer.is_marked)
    if not answer.factor_in_shadow or answer.factor >= 1 or not concerns:
        return ""
    limit = _limit(answer, quota, quota.base, answer.factor, quota.stand_in)
    if limit is None:
        return ""
    if quota.type is QuotaType.PRODUCE and answer.fence_closed and not answer.is_for_topics:
        return (
            "" if answer.fence_passes else f"the fence would turn back its produce requests ({printable(answer.cause)})"
        )
    would = f"the factor {answer.factor:.4g} would make the limit {rate_text(quota, limit)}"
    return f"{would}; {_compared(quota, quota.rate, limit)}"


def _compared(quota: QuotaState, rate: float | None, limit: float) -> str:
    if rate is None:
        return "how much of it is used isn't measured, or only together with others"
    digits = 2 if quota.type is QuotaType.REQUEST else 0
    would = "would be delayed" if rate > limit else "would not be delayed"
    return f"uses {rate_text(quota, round(rate, digits))}; {would}"
