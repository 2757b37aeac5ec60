"""The suppliers ``static``, ``overrides`` and ``controller-mutation`` take their rates from broker properties.

If a supplier has no rate for a client, the next supplier of the property ``supplier`` decides. In ``Rates`` and
defaults, None means "unlimited", which is an answer. Kafka measures partition mutations on the controller by a token
bucket (``quotahost.throttling.TokenBucket``). Its burst is the rate x ``controller.quota.window.num`` x
``controller.quota.window.size.seconds``; a supplier chooses only the rate.
"""

from collections.abc import Collection
from typing import Final

from pydantic import Field

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType, Scope
from quotahost.settings import sections
from quotahost.settings.types import SCOPES, Rates, Sharing
from quotahost.units import BytesLimit, MutationsLimit

_NONE: Final[frozenset[str]] = frozenset()  # no client-ids


class Static:
    """Gives every client the rates of the properties ``static.*``; ``static.scope`` says which clients share a rate."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the type, or None (the next supplier is asked) if no rate is set."""
        return self._context.settings.static.quotas.get(quota_type)

    def distinct_client_ids(self, principal: str) -> frozenset[str]:
        """No client-ids, because all client-ids have the same rates."""
        return _NONE


class Overrides:
    """Gives each client-id a separate rate on each broker: its override, or else the default (KIP-13).

    Clients without a client-id share one quota, the default. The next supplier decides for REQUEST and
    CONTROLLER_MUTATION, and for client-ids without an override if no default is set.
    """

    class Section(sections.Section):
        """The properties under ``plugin.overrides.``; rates in bytes/s, on each broker."""

        producer_default: BytesLimit = Field(
            None, alias="quota.producer.default", description="rate of each other client-id, such as 2M"
        )
        consumer_default: BytesLimit = Field(
            None, alias="quota.consumer.default", description="rate of each other client-id, such as 2M"
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
        # KIP-13 has only produce and fetch quotas. A Quota is always true, even an unlimited one.
        overrides, default = self._rates.get(quota_type, ({}, None))
        return overrides.get(client.client_id) or default

    def distinct_client_ids(self, principal: str) -> Collection[str]:
        """The client-ids with an override; all other client-ids get the same answer."""
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
    """Gives the rate of the user, else of the client-id, else the default, in created or deleted partitions/s."""

    class Section(sections.Section):
        """The properties under ``plugin.controller-mutation.``; rates in partition mutations/s."""

        default: MutationsLimit = Field(None, description="rate of all other clients, such as 5")
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
        """The client-ids with a rate; no client-ids for a user with a rate, because the user's rate comes first."""
        return _NONE if principal in self._users else self._distinct

    def reconfigure(self, settings: Section) -> None:
        self._users = _quotas(settings.users, Scope.USER)
        self._client_ids = _quotas(settings.client_ids, Scope.CLIENT_ID)
        self._distinct = frozenset(self._client_ids)
        self._default = _default(settings, "default", SCOPES[settings.scope])


def _quotas(rates: Rates, scope: Scope) -> dict[str, Quota]:
    return {name: Quota(rate, scope) for name, rate in rates.items()}


def _default(settings: sections.Section, name: str, scope: Scope) -> Quota | None:
    """The quota of a property, or None if the property is not set; "unlimited" is a quota whose rate is None."""
    return Quota(getattr(settings, name), scope) if name in settings.model_fields_set else None
