"""The sentence that the answer ends with: what binds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quotahost.cli.explain_told import Held, Told
from quotahost.cli.explain_words import factor_acts, times, why_exempt
from quotahost.model import QuotaType
from quotahost.properties import printable

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
