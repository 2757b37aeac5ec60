"""The supplier ``controller-mutation``: how fast each user or client-id may create and delete partitions (KIP-599).

A rate is in partition mutations a second: partitions of topics created or deleted, and partitions added. Kafka
measures it on the controller, by a token bucket (``quotahost.throttling.TokenBucket``) whose burst is the rate x
``controller.quota.window.num`` x ``controller.quota.window.size.seconds``. A supplier chooses only the rate.
"""

from __future__ import annotations

from collections.abc import Collection

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.broker.plugins.suppliers.static import SCOPES
from quotahost.model import Client, Quota, QuotaType, Scope
from quotahost.settings.rate_lists import Rates
from quotahost.settings.types import Sharing
from quotahost.units import MutationsLimit


class ControllerMutationSettings(BaseModel):
    """The properties under ``plugin.controller-mutation.``; rates in partition mutations/s."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    default: MutationsLimit = Field(None, description="what all others may do, such as 5")
    scope: Sharing = Field("user", description="who shares the default: each user, client, client-id, or the broker")
    users: Rates = Field({}, description="by user, whose clients share it, such as alice:5,bob:0.5")
    client_ids: Rates = Field({}, description="by client-id, such as terraform:20")


class ControllerMutation:
    """Gives the rate of the user, else of the client-id, else the default; the next supplier has other quota types."""

    Section = ControllerMutationSettings

    def __init__(self, context: Context[ControllerMutationSettings]) -> None:
        """Read the settings."""
        self.reconfigure(context.section)

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of the client, or None (the next supplier is asked)."""
        if quota_type is not QuotaType.CONTROLLER_MUTATION:
            return None
        # A Quota is always true, an unlimited one as well.
        return self._users.get(client.principal) or self._client_ids.get(client.client_id) or self._default

    def distinct_client_ids(self, principal: str) -> Collection[str]:
        """The client-ids with a rate, which those of a user with a rate never get."""
        return frozenset() if principal in self._users else self._distinct

    def reconfigure(self, settings: ControllerMutationSettings) -> None:
        """Take other rates; the host asks again for all clients."""
        self._users = {name: Quota(rate, Scope.USER) for name, rate in settings.users.items()}
        self._client_ids = {name: Quota(rate, Scope.CLIENT_ID) for name, rate in settings.client_ids.items()}
        self._distinct = frozenset(self._client_ids)
        # "unlimited" is None like a default that is not set, but it is an answer.
        is_set = "default" in settings.model_fields_set
        self._default = Quota(settings.default, SCOPES[settings.scope]) if is_set else None
