"""The supplier ``static``: the rates of the broker's own properties, the same for everybody."""

from __future__ import annotations

from typing import Final

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType, Scope

_SCOPES: Final = {
    "client": Scope.CLIENT,
    "user": Scope.USER,
    "client-id": Scope.CLIENT_ID,
    "broker": Scope.BROKER,
}


class Static:
    """Gives every client the rates of the properties ``static.*``.

    These are ``static.produce``, ``.fetch``, ``.request`` and ``.controller-mutation``, in the units
    of QuotaType. Who shares a rate is ``static.scope``: each ``client`` (user and client-id),
    ``user`` or ``client-id`` has one of its own; ``broker`` is one total for all clients, the way
    of Strimzi's kafka-quotas-plugin.

    Excluded principals never get here: the host exempts them for every supplier.

    Raises:
        ValueError: a rate is not finite and above 0, or the scope is none of the four.
    """

    def __init__(self, context: Context) -> None:
        """Read the properties; a live change is seen at the next question."""
        self._context = context
        self._read()

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the type, or None (the next supplier is asked) where no rate is set."""
        if self._context.settings is not self._seen:
            self._read()
        return self._quotas.get(quota_type)

    def _read(self) -> None:
        self._seen = self._context.settings
        static = self._seen.static
        if static.scope not in _SCOPES:
            raise ValueError(f"static.scope {static.scope!r} must be one of: {', '.join(_SCOPES)}")
        rates: dict[QuotaType, float | None] = {
            QuotaType.PRODUCE: static.produce,
            QuotaType.FETCH: static.fetch,
            QuotaType.REQUEST: static.request,
            QuotaType.CONTROLLER_MUTATION: static.controller_mutation,
        }
        scope = _SCOPES[static.scope]
        self._quotas = {kind: Quota(rate, scope) for kind, rate in rates.items() if rate is not None}
