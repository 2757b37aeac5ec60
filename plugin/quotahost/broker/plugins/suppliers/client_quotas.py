"""The supplier ``client-quotas``: Kafka's own user and client-id quotas: which of them counts, and who shares it.

The rules are those of Kafka 4.3.1's ``ClientQuotaManager.DefaultQuotaCallback`` (KIP-13, KIP-55,
KIP-546), which steps aside when a broker has a callback of its own. They have two parts:

1. The most specific quota set for a client chooses the metric tags, and with them who shares it:

   ===================================  ================  =========
   quota set for                        tags              scope
   ===================================  ================  =========
   1. user, client-id                   (user, client)    CLIENT
   2. user, default client-id           (user, client)    CLIENT
   3. user                              (user, "")        USER
   4. default user, client-id           (user, client)    CLIENT
   5. default user, default client-id   (user, client)    CLIENT
   6. default user                      (user, "")        USER
   7. client-id                         ("", client)      CLIENT_ID
   8. default client-id                 ("", client)      CLIENT_ID
   ===================================  ================  =========

2. The limit is then looked up by the tags (``findQuota``), where an empty tag stands for "no
   user" or "no client-id". For names that are not empty this finds the same quota again. A client
   without a client-id (or a user name) can end elsewhere: with a quota for (user, default
   client-id) alone its tags are (user, ""), to which no quota belongs, and Kafka does not limit it.

Kafka takes a shorter way where the quotas of a type are all of one kind (``quotaTypesEnabled``: only
levels 7-8, only 3 and 6, or only 1, 2, 4 and 5) and gives all clients the tags of that kind. That
differs from the above only for clients that no quota matches, and Kafka limits those neither way.

The host hands in each client quota as Java reads it from Kafka's metadata; the answers go into the quota table.
"""

import math
from functools import lru_cache
from typing import Final, TypeAlias

from quotahost.api import Context
from quotahost.model import DEFAULT, QUOTA_TYPES, Client, ClientQuotaChange, Default, Quota, QuotaType, Scope

_Name: TypeAlias = str | Default | None  # a name, Kafka's <default>, or not part of the entity
_Quotas: TypeAlias = dict[tuple[_Name, _Name], Quota]  # by (user, client-id)

# Each user with quotas of its own has a set of its own: with 100,000 names in each, 1,000 users took gigabytes.
_MOST_DISTINCT: Final = 1000  # names in such a set
_MOST_KNOWN: Final = 1000  # sets that are kept


class NamedClientIds:
    """Which client-ids quotas name, by user; None stands for any."""

    def __init__(self) -> None:
        self.by_user: dict[str | None, set[str]] = {}
        self._joined = lru_cache(_MOST_KNOWN)(self._join)

    def note(self, user: str | None, client_id: str, named: bool) -> None:
        """From now on a quota names it, or none does."""
        ids = self.by_user.setdefault(user, set())
        (ids.add if named else ids.discard)(client_id)
        if not ids:
            del self.by_user[user]
        self._joined.cache_clear()

    def of(self, user: str) -> frozenset[str] | None:
        """Those named for this user or any; None, for all client-ids, where a user's own are among too many."""
        return self._joined(user if user in self.by_user else None)

    def _join(self, user: str | None) -> frozenset[str] | None:
        named = [self.by_user[of] for of in {None, user} & self.by_user.keys()]
        return None if user is not None and sum(map(len, named)) > _MOST_DISTINCT else frozenset().union(*named)


class ClientQuotas:
    """Applies Kafka's client quotas by the rules above; the four types are apart, as each has a manager in Kafka."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._quotas: dict[QuotaType, _Quotas] = {quota_type: {} for quota_type in QUOTA_TYPES}
        self._named = NamedClientIds()
        self._named.note(None, "", True)  # Kafka treats it apart

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The client's quota, unlimited or not; None (the next supplier is asked) if no client quota matches it."""
        quotas = self._quotas[quota_type]
        if not quotas:
            return None
        matched = _most_specific(quotas, client)
        # With both names the tags find the same quota again, so only the rare client without one is looked up twice.
        if matched is None or (client.principal and client.client_id):
            return matched
        return _by_tags(quotas, client, matched)

    def distinct_client_ids(self, principal: str) -> frozenset[str] | None:
        """A default client-id quota gives each other client-id its own tags, but all of them the same quota."""
        # Where there are none at all, request threads needn't look at client-ids.
        return self._named.of(principal) if any(self._quotas.values()) else frozenset()

    def client_quota_changed(self, change: ClientQuotaChange) -> None:
        """Set or remove one client quota, and announce it for the clients that it may concern."""
        quotas = self._quotas[change.quota_type]
        user, client_id = change.entity.user, change.entity.client_id
        scope = Scope.CLIENT_ID if user is None else Scope.USER if client_id is None else Scope.CLIENT
        new = None if change.rate is None else Quota(self._rate(change, change.rate), scope)
        before = quotas.pop((user, client_id), None)
        if new is not None:
            quotas[user, client_id] = new
        # For a change without effect the host needn't ask again about every client that it may concern.
        if new == before:
            return
        principal, name = _narrow(user), _narrow(client_id)
        if name:
            users = (None, DEFAULT) if principal is None else (principal,)
            named = any((each, name) in of_type for of_type in self._quotas.values() for each in users)
            self._named.note(principal, name, named)
        self._context.answers_changed(principal=principal, client_id=name)

    def _rate(self, change: ClientQuotaChange, rate: float) -> float | None:
        """The rate, or None (unlimited) for one by which Kafka up to 4.3 doesn't throttle.

        The controller refuses 0 and less, but lets NaN pass for each type, and infinity for
        REQUEST and CONTROLLER_MUTATION (``ClientQuotaControlManager.validateQuotaKeyValue``).
        """
        if math.isfinite(rate) and rate > 0:
            return rate
        message = "%s quota %r of %s: Kafka does not throttle by such a rate; taken as unlimited"
        self._context.log.warning(message, change.quota_type, rate, change.entity)
        return None


def _most_specific(quotas: _Quotas, client: Client) -> Quota | None:
    # A Quota is always true, an unlimited one as well, so `or` passes over levels that are not set and nothing else.
    user, client_id, get = client.principal, client.client_id, quotas.get
    return (
        get((user, client_id))
        or get((user, DEFAULT))
        or get((user, None))
        or get((DEFAULT, client_id))
        or get((DEFAULT, DEFAULT))
        or get((DEFAULT, None))
        or get((None, client_id))
        or get((None, DEFAULT))
    )


def _by_tags(quotas: _Quotas, client: Client, matched: Quota) -> Quota | None:
    """The quota that Kafka finds by the tags of a client whose principal, client-id or both are empty."""
    user = "" if matched.scope == Scope.CLIENT_ID else client.principal
    client_id = "" if matched.scope == Scope.USER else client.client_id
    if user:
        return quotas.get((user, None)) or quotas.get((DEFAULT, None)) or Quota(None, Scope.USER)
    if client_id:
        return quotas.get((None, client_id)) or quotas.get((None, DEFAULT)) or Quota(None, Scope.CLIENT_ID)
    # Tags ("", "") have no limit. Levels 7 and 8 are only ever looked up, so there they don't match.
    return None if matched.scope == Scope.CLIENT_ID else Quota(None, Scope.USER)


def _narrow(name: _Name) -> str | None:
    """The only name that is concerned; None for a default or no name, which may concern every client."""
    return name if isinstance(name, str) else None
