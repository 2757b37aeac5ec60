"""For which quota types clients without a quota are measured one by one.

A client that Kafka measures costs a sensor. So a client without a quota has none of its own (Java's Scopes), but where
a factor may act on what it uses, a plugin reads it, or it would have a quota from a supplier in shadow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quotahost.api.context import LoadedPlugin
from quotahost.model import QUOTA_TYPES, QuotaType, State
from quotahost.settings.broker import Settings

_WITH_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)  # the types of Broker.usage


def measured(settings: Settings, plugins: Iterable[LoadedPlugin]) -> frozenset[QuotaType]:
    """The types that a factor may take down, those whose usage a plugin reads (``needs_usage``), all for a trial."""
    types: set[QuotaType] = set()
    if settings.factor_source is not None or settings.fallback_action == State.PAUSE:
        types |= set(settings.factor_quota_types)
    if settings.shadow.suppliers:
        types |= set(QUOTA_TYPES)
    if any(getattr(each.plugin, "needs_usage", False) for each in plugins):
        types |= set(_WITH_BYTES)
    return frozenset(types)
