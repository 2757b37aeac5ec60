"""The supplier ``static``: the rates of the broker's own properties, the same for everybody.

The broker reads ``static.*`` with its own settings, so this supplier has no section. It stands last in most lists of
suppliers: an answer that it gives goes into the quota table, and a client for whom it has none is unlimited.
"""

from __future__ import annotations

from typing import Final

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType, Scope

_NOBODY: Final[frozenset[str]] = frozenset()
#: What ``static.scope`` and ``plugin.controller-mutation.scope`` name.
SCOPES: Final = {"client": Scope.CLIENT, "user": Scope.USER, "client-id": Scope.CLIENT_ID, "broker": Scope.BROKER}


class Static:
    """Gives every client the rates of the properties ``static.*``.

    These are ``static.produce``, ``.fetch``, ``.request`` and ``.controller-mutation``, in the units
    of QuotaType. The property ``static.scope`` names who shares a rate: each ``client`` (user and client-id),
    ``user`` or ``client-id`` has one of its own; ``broker`` is one total for all clients, as in
    Strimzi's kafka-quotas-plugin. The host exempts excluded principals before it asks any supplier.

    Raises:
        ValueError: a rate is not finite and above 0.
    """

    def __init__(self, context: Context) -> None:
        """Read the properties; a live change is seen at the next question."""
        self._context = context
        self._read()

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the type, or None (the next supplier is asked) where no rate is set."""
        # At a live change of static.* the host replaces the settings and calls no method: this plugin has no section.
        if self._context.settings is not self._seen:
            self._read()
        return self._quotas.get(quota_type)

    def distinct_client_ids(self, principal: str) -> frozenset[str]:
        """Nobody: all have the same rates."""
        return _NOBODY

    def _read(self) -> None:
        self._seen = self._context.settings
        static = self._seen.static
        rates: dict[QuotaType, float | None] = {
            QuotaType.PRODUCE: static.produce,
            QuotaType.FETCH: static.fetch,
            QuotaType.REQUEST: static.request,
            QuotaType.CONTROLLER_MUTATION: static.controller_mutation,
        }
        scope = SCOPES[static.scope]
        self._quotas = {kind: Quota(rate, scope) for kind, rate in rates.items() if rate is not None}
