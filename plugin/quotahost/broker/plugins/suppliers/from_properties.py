"""The suppliers whose rates are broker properties: ``static``, ``overrides`` and ``controller-mutation``.

Kafka measures partition mutations on the controller, by a token bucket (``quotahost.throttling.TokenBucket``) whose
burst is the rate x ``controller.quota.window.num`` x ``controller.quota.window.size.seconds``; a supplier chooses the
rate alone. A client for whom one of them has no rate is left to the next supplier of the property ``supplier``. In
``Rates`` and defaults None is "unlimited", which is an answer.
"""

from collections.abc import Collection
from typing import Final

from pydantic import Field

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType, Scope
from quotahost.settings import sections
from quotahost.settings.types import SCOPES, Rates, Sharing
from quotahost.units import BytesLimit, MutationsLimit

_NONE: Final[frozenset[str]] = frozenset()  # of client-ids


class Static:
    """Gives every client the rates of the properties ``static.*``; ``static.scope`` names who shares one."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the type, or None (the next supplier is asked) where no rate is set."""
        return self._context.settings.static.quotas.get(quota_type)

    def distinct_client_ids(self, principal: str) -> frozenset[str]:
        """None of them: all have the same rates."""
        return _NONE


class Overrides:
    """Gives each client-id, on each broker, a rate of its own: its override, or else the default (KIP-13).

    Clients without a client-id share one quota, the default. REQUEST and CONTROLLER_MUTATION, and client-ids
    without an override where no default is set, are left to the next supplier.
    """

    class Section(sections.Section):
        """The properties under ``plugin.overrides.``; rates in bytes/s, on each broker."""

        producer_default: BytesLimit = Field(
            None, alias="quota.producer.default", description="what each other client-id may produce, such as 2M"
        )
        consumer_default: BytesLimit = Field(
            None, alias="quota.consumer.default", description="what each other client-id may fetch, such as 2M"
        )
        producer_override: Rates = Field(
            {}, alias="quota.producer.override", description="by client-id, such as clientA:4M,clientB:10M"
        )
        consumer_override: Rates = Field(
            {}, alias="quota.consumer.override", description="by client-id, such as clientC:3M,clientD:5M"
        )

    def __init__(self, context: Context[Section]) -> None:
        self.reconfigure(context.section)

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        # KIP-13 knows produce and fetch only. A Quota is always true, an unlimited one as well.
        overrides, default = self._rates.get(quota_type, ({}, None))
        return overrides.get(client.client_id) or default

    def distinct_client_ids(self, principal: str) -> Collection[str]:
        """The client-ids with an override; for each other one the default, if there is one, is the same."""
        return self._distinct

    def reconfigure(self, settings: Section) -> None:
        produce = _default(settings, "producer_default", Scope.CLIENT_ID)
        fetch = _default(settings, "consumer_default", Scope.CLIENT_ID)
        self._rates = {
            QuotaType.PRODUCE: (_quotas(settings.producer_override, Scope.CLIENT_ID), produce),
            QuotaType.FETCH: (_quotas(settings.consumer_override, Scope.CLIENT_ID), fetch),
        }
        self._distinct = frozenset(settings.producer_override) | frozenset(settings.consumer_override)


class ControllerMutation:
    """The rate of the user, else of the client-id, else the default, in partitions created or deleted a second."""

    class Section(sections.Section):
        """The properties under ``plugin.controller-mutation.``; rates in partition mutations/s."""

        default: MutationsLimit = Field(None, description="what all others may do, such as 5")
        scope: Sharing = Field("user", description="who shares the default: a user, client, client-id, or the broker")
        users: Rates = Field({}, description="by user, whose clients share it, such as alice:5,bob:0.5")
        client_ids: Rates = Field({}, description="by client-id, such as terraform:20")

    def __init__(self, context: Context[Section]) -> None:
        self.reconfigure(context.section)

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        if quota_type is not QuotaType.CONTROLLER_MUTATION:
            return None
        return self._users.get(client.principal) or self._client_ids.get(client.client_id) or self._default

    def distinct_client_ids(self, principal: str) -> Collection[str]:
        """The client-ids with a rate, which those of a user with a rate never get."""
        return _NONE if principal in self._users else self._distinct

    def reconfigure(self, settings: Section) -> None:
        self._users = _quotas(settings.users, Scope.USER)
        self._client_ids = _quotas(settings.client_ids, Scope.CLIENT_ID)
        self._distinct = frozenset(self._client_ids)
        self._default = _default(settings, "default", SCOPES[settings.scope])


def _quotas(rates: Rates, scope: Scope) -> dict[str, Quota]:
    return {name: Quota(rate, scope) for name, rate in rates.items()}


def _default(settings: sections.Section, name: str, scope: Scope) -> Quota | None:
    """The quota of a property that may be "unlimited", which is None there like one that is not set."""
    return Quota(getattr(settings, name), scope) if name in settings.model_fields_set else None
