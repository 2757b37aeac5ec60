"""The part of the answer that is about partition mutations, which the active controller alone counts (KIP-599).

Kafka keeps a bucket of tokens for each quota there (``quotahost.throttling.TokenBucket``) and refuses mutations while
fewer than 0 are left. Buckets of other nodes are never charged, so their tokens say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from quotahost.cli.explain.answer import Answer, QuotaState
from quotahost.model import QuotaType
from quotahost.units.show import MUTATIONS_PER_SECOND


def bucket_facts(answer: Answer, quota: QuotaState) -> list[tuple[str, str]]:
    """The facts about a CONTROLLER_MUTATION quota in the place of a measured rate, as pairs of label and text."""
    if not answer.is_active_controller:
        return [] if quota.limit is None else [("tokens", f"{_who_knows(answer)}: {_how_to_ask(answer)}")]
    measured = "nothing yet" if quota.rate is None else MUTATIONS_PER_SECOND.show(round(quota.rate, 1))
    facts = [("measured", f"{measured}, a mean of 30 to 60 s by which Kafka throttles nobody")]
    if quota.limit is None:
        return facts
    burst = answer.mutation_seconds * quota.limit
    # Kafka makes the bucket, a full one, at the first mutation.
    left = burst if quota.tokens is None else quota.tokens
    held = f"Kafka refuses mutations {_until_paid(quota)}" if is_exhausted(answer, quota) else "Kafka admits mutations"
    return [("tokens", f"{_number(left)} of {_number(burst)} left: {held}"), *facts]


def is_exhausted(answer: Answer, quota: QuotaState) -> bool:
    """Whether the quota's bucket has fewer than 0 tokens now; False if this node doesn't know."""
    known = answer.is_active_controller and quota.limit is not None and quota.tokens is not None
    return known and (quota.tokens or 0) < 0


def how_long(quota: QuotaState) -> str:
    """For how long an exhausted bucket keeps mutations off, in brackets."""
    return f" ({_until_paid(quota)})"


def _until_paid(quota: QuotaState) -> str:
    if not quota.limit:
        return "until the limit is raised"
    # Upwards: after the time that is shown, the next mutation is admitted.
    seconds = math.ceil(-(quota.tokens or 0) / quota.limit * 10) / 10
    return f"for another {_number(seconds)} s"


def known_elsewhere(answer: Answer, quotas: Sequence[QuotaState]) -> str:
    """A clause that names who knows whether CONTROLLER_MUTATION is limited; "" if this node does or has no limit."""
    asked = any(quota.type is QuotaType.CONTROLLER_MUTATION and quota.limit is not None for quota in quotas)
    if not asked or answer.is_active_controller:
        return ""
    return f"whether {QuotaType.CONTROLLER_MUTATION} is limited, {_who_knows(answer)}"


def _who_knows(answer: Answer) -> str:
    if not answer.controller:
        return "the active controller knows, and this node doesn't know which node that is"
    return f"node {answer.controller} knows, the active controller"


def _how_to_ask(answer: Answer) -> str:
    if not answer.controller:
        return "ask again when the cluster has elected one"
    return f"on its machine, run quotahost explain --broker-id {answer.controller}"


def _number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
