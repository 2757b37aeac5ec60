"""The words for a quota: its rate with the unit of its type, and who shares it, told from Kafka's metric tags."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quotahost.broker.host.dump import BROKER, EXEMPT, GROUP, OF_USER, UNLIMITED, QuotaState, whose
from quotahost.model import QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, Unit

UNITS: Final[dict[QuotaType, Unit]] = {
    QuotaType.PRODUCE: BYTES_PER_SECOND,
    QuotaType.FETCH: BYTES_PER_SECOND,
    QuotaType.REQUEST: PERCENT,
    QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND,
}
_WHOLE: Final = 1000.0  # from here on a rate is shown without decimals
TOGETHER: Final = (UNLIMITED, EXEMPT)  # the tags of clients that nobody needs to measure apart


def rate_text(quota: QuotaState, rate: float | None) -> str:
    """A rate of the quota's type with its unit; None is unlimited. Of a third of a quota no decimals are shown."""
    return UNITS[quota.type].show(rate if rate is None or rate < _WHOLE else round(rate, 0))


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
