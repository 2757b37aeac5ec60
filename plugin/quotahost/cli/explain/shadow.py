"""What rules in shadow would do for a client: the supplier that would give its quota, and the factor."""

from __future__ import annotations

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
    return [text for text in (_quota(answer, quota), _supplier(quota), _factor(answer, quota)) if text]


def _quota(answer: Answer, quota: QuotaState) -> str:
    if not answer.is_shadow or quota.base is None:
        return ""
    return f"the quota would be the limit; {_compared(quota, quota.rate, quota.base)}"


def _supplier(quota: QuotaState) -> str:
    if not quota.shadow_supplier:
        return ""
    scope = quota.model_copy(update={"user": quota.shadow_user, "client_id": quota.shadow_client_id})
    whose = f"shared by {sharers(scope)[0]}"
    given = f"supplier {printable(quota.shadow_supplier)} would give {rate_text(quota, quota.shadow_base)}, {whose}"
    if quota.shadow_limit is None:
        return given
    lowered = (
        "" if quota.shadow_limit == quota.shadow_base else f" ({rate_text(quota, quota.shadow_limit)} by the factor)"
    )
    return f"{given}{lowered}; {_compared(quota, quota.shadow_rate, quota.shadow_limit)}"


def _factor(answer: Answer, quota: QuotaState) -> str:
    if not quota.shadow_factor_limit or quota.shadow_factor_limit == "null":
        return ""
    if quota.type is QuotaType.PRODUCE and answer.fence_closed and not answer.is_for_topics:
        return (
            "" if answer.fence_passes else f"the fence would turn back its produce requests ({printable(answer.cause)})"
        )
    limit = float(quota.shadow_factor_limit)
    would = f"the factor {answer.factor:.4g} would make the limit {rate_text(quota, limit)}"
    return f"{would}; {_compared(quota, quota.rate, limit)}"


def _compared(quota: QuotaState, rate: float | None, limit: float) -> str:
    if rate is None:
        return "how much of it is used isn't measured, or only together with others"
    digits = 2 if quota.type is QuotaType.REQUEST else 0
    would = "would be delayed" if rate > limit else "would not be delayed"
    return f"uses {rate_text(quota, round(rate, digits))}; {would}"
