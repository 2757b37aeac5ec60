"""The words for a quota: its rate with the unit of its type, and who shares it, told from Kafka's metric tags."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from quotahost.cli.explain.answer import QuotaState
from quotahost.model import QuotaType
from quotahost.text import printable
from quotahost.units.show import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, PERCENT, Unit

UNITS: Final[dict[QuotaType, Unit]] = {
    QuotaType.PRODUCE: BYTES_PER_SECOND,
    QuotaType.FETCH: BYTES_PER_SECOND,
    QuotaType.REQUEST: PERCENT,
    QuotaType.CONTROLLER_MUTATION: MUTATIONS_PER_SECOND,
}
_BROKER: Final = "<broker>"  # Java's tag of a quota that all clients of the broker share
_GROUP: Final = "<group "  # followed by the group's name, escaped, and ">"
NEWCOMERS: Final = "<newcomers "  # likewise, followed by a user's name
_SLOWED: Final = "<slowed"  # followed by the user tag of a scope; its clients that write to affected topics (Twin)
_WHOLE: Final = 1000.0  # from here on a rate is shown without decimals
TOGETHER: Final = ("<unlimited>", "<exempt>")  # the tags of clients that nobody needs to measure apart


def rate_text(quota: QuotaState, rate: float | None) -> str:
    """A rate of the quota's type with its unit; None is unlimited. Of a third of a quota no decimals are shown."""
    return UNITS[quota.type].show(rate if rate is None or rate < _WHOLE else round(rate, 0))


def sharers(quota: QuotaState) -> tuple[str, str]:
    """Who shares the quota, and whose quota it is therefore."""
    if quota.user.startswith(_SLOWED):
        # The slowed of a scope have tags beside those of the scope.
        own = quota.model_copy(update={"user": quota.user[len(_SLOWED) : -1].lstrip(" ")})
        them, whose = sharers(own)
        return f"those of {them} who write to affected topics", whose
    if quota.user.startswith(NEWCOMERS):
        user = printable(unquote(quota.user[len(NEWCOMERS) : -1]))
        return f"all client-ids of user {user} that are not known yet", "newcomers'"
    if quota.is_newcomer:
        return "all newcomers", "newcomers'"
    if quota.user in TOGETHER:
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
