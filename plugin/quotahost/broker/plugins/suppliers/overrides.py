"""The supplier ``overrides``: KIP-13's default and overrides per client-id, under KIP-13's own names.

Kafka dropped these broker properties when it moved quotas into its metadata. Here they are properties of the plugin,
``plugin.overrides.quota.producer.default`` and so on, in KIP-13's form. The answers go into the quota table.
"""

from __future__ import annotations

from collections.abc import Collection

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType, Scope
from quotahost.settings.rate_lists import Rates
from quotahost.units import BytesLimit


class OverridesSettings(BaseModel):
    """The properties under ``plugin.overrides.``; rates in bytes/s, on each broker."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

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


class Overrides:
    """Gives each client-id its override, or else the default, of its own on each broker (KIP-13).

    Clients without a client-id share one quota, the default. REQUEST and CONTROLLER_MUTATION, and client-ids
    without an override where no default is set, are left to the next supplier.
    """

    Section = OverridesSettings

    def __init__(self, context: Context[OverridesSettings]) -> None:
        """Read the settings."""
        self.reconfigure(context.section)

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the client's client-id, whatever its principal."""
        # KIP-13 knows produce and fetch only.
        by_name = self._overrides.get(quota_type)
        if by_name is None:
            return None
        return by_name.get(client.client_id) or self._defaults.get(quota_type)

    def distinct_client_ids(self, principal: str) -> Collection[str]:
        """The client-ids with an override; for each other one the default, if there is one, is the same."""
        return self._distinct

    def reconfigure(self, settings: OverridesSettings) -> None:
        """Take other rates; the host asks again for all clients."""
        overrides = {QuotaType.PRODUCE: settings.producer_override, QuotaType.FETCH: settings.consumer_override}
        self._overrides = {
            kind: {name: Quota(rate, Scope.CLIENT_ID) for name, rate in rates.items()}
            for kind, rates in overrides.items()
        }
        self._distinct = frozenset(settings.producer_override) | frozenset(settings.consumer_override)
        # A default that is set to "unlimited" is an answer, one that is not set is none; both are None here.
        self._defaults: dict[QuotaType, Quota] = {}
        if "producer_default" in settings.model_fields_set:
            self._defaults[QuotaType.PRODUCE] = Quota(settings.producer_default, Scope.CLIENT_ID)
        if "consumer_default" in settings.model_fields_set:
            self._defaults[QuotaType.FETCH] = Quota(settings.consumer_default, Scope.CLIENT_ID)
