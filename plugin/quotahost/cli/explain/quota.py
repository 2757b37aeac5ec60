"""What a broker says of a client, and the words for one of its quotas.

:func:`parse` reads the answer. Of each quota it has the rate with the unit of its type, and who shares it, told from
Kafka's metric tags; what rules in shadow would do (the property ``shadow``); and of partition
mutations, which the active controller alone counts (KIP-599), the tokens that are left. Kafka keeps a bucket of tokens
for each such quota there (``quotahost.throttling.TokenBucket``) and refuses mutations while fewer than 0 are left.
Buckets of other nodes are never charged, so their tokens say nothing. ``wording`` makes the whole answer of it.
"""

from __future__ import annotations

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
from quotahost.broker.host.messages import would_be
from quotahost.model import Client, QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, Unit

__all__ = ["Answer", "QuotaState", "parse"]

_UNITS: Final[dict[QuotaType, Unit]] = {
    QuotaType.PRODUCE: BYTES_PER_SECOND,
    QuotaType.FETCH: BYTES_PER_SECOND,
    QuotaType.REQUEST: PERCENT,
    QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND,
}
_WHOLE: Final = 1000.0  # from here on a rate is shown without decimals
TOGETHER: Final = (UNLIMITED, EXEMPT)  # the tags of clients that nobody needs to measure apart


@dataclass(frozen=True, slots=True)
class Answer(BrokerState):
    """What a broker says of a client.

    Attributes:
        client: the client.
        fence_passes: whether its requests pass the fence while that is closed.
        is_marked: whether it has lately asked to write to an affected topic.
        quotas: one for each quota type.
        would_be_rates: by quota type, what is measured of the scope in which a supplier in shadow would put the client;
            None if that can't be told.
    """

    client: Client = field(default_factory=lambda: Client("", ""))
    fence_passes: bool = False
    is_marked: bool = False
    address: str = ""
    quotas: tuple[QuotaState, ...] = ()
    would_be_rates: Mapping[str, float | None] = field(default_factory=dict)


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
            is_marked=of_client["mark"] is not None, address=of_client.get("address") or "", quotas=quotas,
            would_be_rates=dump.get("would_be_rates", {}),
        )  # fmt: skip


# ---- a rate, and who shares it ---------------------------------------------------------------------------------


def rate_text(quota: QuotaState, rate: float | None) -> str:
    """A rate of the quota's type with its unit; None is unlimited. Of a third of a quota no decimals are shown."""
    return _UNITS[quota.type].show(rate if rate is None or rate < _WHOLE else round(rate, 0))


def sharers(quota: QuotaState) -> tuple[str, str]:
    """Who shares the quota, and whose quota it is therefore."""
    if quota.slowed:
        them, its = sharers(replace(quota, slowed=False))
        return f"those of {them} who write to affected topics", its
    user, client_id, scope = whose(quota.user, quota.client_id)
    if quota.user.startswith(OF_USER):
        return f"all client-ids of user {printable(user)} that are not known yet", "newcomers'"
    if quota.newcomer:
        return "all newcomers", "newcomers'"
    if quota.user in TOGETHER:
        return "all clients without one", "unlimited clients'"
    if quota.user == BROKER:
        return "all clients of this broker", "whole broker's"
    if quota.user.startswith(GROUP):
        return f"group {printable(scope.partition(' ')[2])}", "group's"
    if scope == "client-id":
        return f"client-id {printable(client_id)}, whatever the user", "client-id's"
    if scope == "user":
        return f"user {printable(user)}", "user's"
    return f"this client alone (user {printable(user)}, client-id {printable(client_id)})", "client's"


# ---- rules in shadow -------------------------------------------------------------------------------------------


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


# ---- partition mutations ---------------------------------------------------------------------------------------


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
    held = f"Kafka refuses mutations {until_paid(quota)}" if is_exhausted(answer, quota) else "Kafka admits mutations"
    return [("tokens", f"{_number(left)} of {_number(burst)} left: {held}"), *facts]


def is_exhausted(answer: Answer, quota: QuotaState) -> bool:
    """Whether the quota's bucket has fewer than 0 tokens now; False if this node doesn't know."""
    known = answer.is_active_controller and quota.limit is not None and quota.tokens is not None
    return known and (quota.tokens or 0) < 0


def until_paid(quota: QuotaState) -> str:
    """For how long an exhausted bucket keeps mutations off."""
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
    return f"node {printable(answer.controller)} knows, the active controller"


def _how_to_ask(answer: Answer) -> str:
    if not answer.controller:
        return "ask again when the cluster has elected one"
    return f"on its machine, run quotahost explain --broker-id {printable(answer.controller)}"


def _number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
