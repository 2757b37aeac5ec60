"""The cluster-wide quotas of the properties ``plugin.cluster-quota.*``, and the quota of each client.

The supplier ``cluster-quota`` declares them as its section. The task ``publish-usage`` reads the same properties, so
that it publishes the usage of those clients alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from pydantic import ConfigDict, Field

from quotahost.model import QuotaType
from quotahost.records.clients import ClientKey
from quotahost.settings.rate_lists import ClientRates, Rates
from quotahost.settings.telling import Telling
from quotahost.units import BytesLimit

NAME: Final = "cluster-quota"
_Rates: TypeAlias = dict[tuple[str | None, str | None], float | None]  # by principal and client-id, None for any


class ClusterQuotaSettings(Telling):
    """The properties under ``plugin.cluster-quota.``; rates in bytes/s, in the whole cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    produce_default: BytesLimit = Field(
        None, alias="produce.default", description="what each other client may produce, such as 3M"
    )
    produce_users: Rates = Field(
        {}, alias="produce.users", description="each client of a user, such as alice:3M,bob:10M"
    )
    produce_client_ids: Rates = Field(
        {}, alias="produce.client-ids", description="each client with a client-id, such as app:3M"
    )
    produce_clients: ClientRates = Field(
        {}, alias="produce.clients", description="by user and client-id, such as alice/app:3M"
    )
    fetch_default: BytesLimit = Field(
        None, alias="fetch.default", description="what each other client may fetch, such as 3M"
    )
    fetch_users: Rates = Field({}, alias="fetch.users", description="each client of a user, such as alice:3M,bob:10M")
    fetch_client_ids: Rates = Field(
        {}, alias="fetch.client-ids", description="each client with a client-id, such as app:3M"
    )
    fetch_clients: ClientRates = Field(
        {}, alias="fetch.clients", description="by user and client-id, such as alice/app:3M"
    )

    def told(self) -> dict[str, list[tuple[str | None, str | None, float | None]]]:
        """User, client-id and rate of each quota, by type; None for any client, and for an unlimited rate."""
        rates = ClusterRates(self).by_type()
        return {kind.name.lower(): [(*name, rate) for name, rate in each.items()] for kind, each in rates.items()}


class ClusterRates:
    """Finds a client's quota: that of user and client-id, else of the user, of the client-id, the default.

    Each client (user and client-id) has a quota of its own, wherever its rate was found.
    """

    def __init__(self, settings: ClusterQuotaSettings) -> None:
        """Arrange the rates of these properties by name."""
        self._rates = {
            QuotaType.PRODUCE: _by_name(settings.produce_clients, settings.produce_users, settings.produce_client_ids),
            QuotaType.FETCH: _by_name(settings.fetch_clients, settings.fetch_users, settings.fetch_client_ids),
        }
        # A default that is set to "unlimited" is an answer, one that is not set is none; both are None here.
        if "produce_default" in settings.model_fields_set:
            self._rates[QuotaType.PRODUCE][None, None] = settings.produce_default
        if "fetch_default" in settings.model_fields_set:
            self._rates[QuotaType.FETCH][None, None] = settings.fetch_default
        names = [name for rates in self._rates.values() for name in rates]
        self._client_ids = frozenset(client_id for user, client_id in names if user is None and client_id is not None)
        self._of_user: dict[str, frozenset[str]] = {}
        for user, client_id in names:
            if user is not None and client_id is not None:
                self._of_user[user] = self._of_user.get(user, self._client_ids) | {client_id}

    def by_type(self) -> Mapping[QuotaType, Mapping[tuple[str | None, str | None], float | None]]:
        """All rates, by user and client-id; None stands for any."""
        return self._rates

    def distinct_client_ids(self, principal: str) -> frozenset[str] | None:
        """The client-ids of a principal that have a quota; None if all have one, each a share of its own."""
        for rates in self._rates.values():
            of_all = rates.get((principal, None), rates.get((None, None)))
            # An unlimited client has no shares: all are alike.
            if of_all is not None:
                return None
        return self._of_user.get(principal, self._client_ids)

    def find(self, key: ClientKey) -> float | None:
        """The client's bytes/s in the whole cluster; None is unlimited.

        Raises:
            KeyError: no quota is set for the client.
        """
        rates = self._rates.get(key.quota_type, {})
        # A rate of None (unlimited) is found, too, so `in` decides and not the value.
        for name in ((key.principal, key.client_id), (key.principal, None), (None, key.client_id)):
            if name in rates:
                return rates[name]
        return rates[None, None]

    def limited(self, key: ClientKey) -> float | None:
        """The client's bytes/s in the whole cluster; None without a quota or with an unlimited one."""
        try:
            return self.find(key)
        except KeyError:
            return None


def _by_name(
    clients: Mapping[tuple[str, str], float | None],
    users: Mapping[str, float | None],
    client_ids: Mapping[str, float | None],
) -> _Rates:
    rates: _Rates = dict(clients.items())
    rates |= {(user, None): rate for user, rate in users.items()}
    return rates | {(None, client_id): rate for client_id, rate in client_ids.items()}
