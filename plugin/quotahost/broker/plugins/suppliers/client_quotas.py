"""The supplier ``client-quotas`` applies Kafka's own user and client-id quotas by Kafka's own rules.

The rules are the rules of Kafka 4.3.1's ``ClientQuotaManager.DefaultQuotaCallback`` (KIP-13, KIP-55,
KIP-546), which Kafka doesn't use when a broker has another callback. The rules have two parts:

1. The most specific quota for a client determines the metric tags. Clients with the same tags share the quota:

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

2. Kafka then looks up the limit by the tags (``findQuota``). An empty tag stands for "no user" or "no
   client-id". For names that are not empty, Kafka finds the same quota again. For a client without a
   client-id (or a user name), Kafka may find another one: if the only quota is for (user, default
   client-id), the client's tags are (user, ""), no quota matches them, and Kafka does not limit the client.

If all quotas of a type are of one kind (``quotaTypesEnabled``: only levels 7-8, only 3 and 6, or only 1, 2,
4 and 5), Kafka takes a shorter way and gives all clients the tags of that kind. The result differs from the
rules above only for clients that no quota matches, and Kafka limits these clients in neither case.

The host calls ``client_quota_changed`` with each client quota that Java reads from Kafka's metadata.
"""

import math
from functools import lru_cache
from typing import Final, TypeAlias

from quotahost.api import Context
from quotahost.model import DEFAULT, QUOTA_TYPES, Client, ClientQuotaChange, Default, Quota, QuotaType, Scope

_Name: TypeAlias = str | Default | None  # a name, Kafka's <default>, or not part of the entity
_Quotas: TypeAlias = dict[tuple[_Name, _Name], Quota]  # by (user, client-id)

# Each user with own quotas has a separate set of client-ids. 1,000 users with 100,000 names each took gigabytes.
_MOST_DISTINCT: Final = 1000  # names in such a set
_MOST_KNOWN: Final = 1000  # sets that are kept


class NamedClientIds:
    """The client-ids that quotas name, by user; the user None stands for any user."""

    def __init__(self) -> None:
        self.by_user: dict[str | None, set[str]] = {}
        self._joined = lru_cache(_MOST_KNOWN)(self._join)

    def note(self, user: str | None, client_id: str, named: bool) -> None:
        """Add the client-id if a quota names it now, or remove the client-id."""
        ids = self.by_user.setdefault(user, set())
        (ids.add if named else ids.discard)(client_id)
        if not ids:
            del self.by_user[user]
        self._joined.cache_clear()

    def of(self, user: str) -> frozenset[str] | None:
        """The client-ids named for this user or any user; None (all) if the user has own ones and they are too many."""
        return self._joined(user if user in self.by_user else None)

    def _join(self, user: str | None) -> frozenset[str] | None:
        named = [self.by_user[of] for of in {None, user} & self.by_user.keys()]
        return None if user is not None and sum(map(len, named)) > _MOST_DISTINCT else frozenset().union(*named)


class ClientQuotas:
    """Applies Kafka's client quotas by the rules above, separately for each type, as Kafka has a manager for each."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._quotas: dict[QuotaType, _Quotas] = {quota_type: {} for quota_type in QUOTA_TYPES}
        self._named = NamedClientIds()
        self._named.note(None, "", True)  # Kafka treats the empty client-id in a different way (rule 2)

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The client's quota, which may be unlimited; None (the next supplier is asked) if no quota matches."""
        quotas = self._quotas[quota_type]
        if not quotas:
            return None
        matched = _most_specific(quotas, client)
        # A client with both names gets the same quota by its tags, so only a client without one is looked up twice.
        if matched is None or (client.principal and client.client_id):
            return matched
        return _by_tags(quotas, client, matched)

    def distinct_client_ids(self, principal: str) -> frozenset[str] | None:
        """The named client-ids. A default client-id quota gives all other client-ids own tags, but the same quota."""
        # If there are no quotas at all, request threads don't need to look at client-ids.
        return self._named.of(principal) if any(self._quotas.values()) else frozenset()

    def client_quota_changed(self, change: ClientQuotaChange) -> None:
        """Set or remove one client quota, and announce the change for the clients that may be affected."""
        quotas = self._quotas[change.quota_type]
        user, client_id = change.entity.user, change.entity.client_id
        scope = Scope.CLIENT_ID if user is None else Scope.USER if client_id is None else Scope.CLIENT
        new = None if change.rate is None else Quota(self._rate(change, change.rate), scope)
        before = quotas.pop((user, client_id), None)
        if new is not None:
            quotas[user, client_id] = new
        # If the change has no effect, the host doesn't need to ask again for all clients that may be affected.
        if new == before:
            return
        principal, name = _narrow(user), _narrow(client_id)
        if name:
            users = (None, DEFAULT) if principal is None else (principal,)
            named = any((each, name) in of_type for of_type in self._quotas.values() for each in users)
            self._named.note(principal, name, named)
        self._context.answers_changed(principal=principal, client_id=name)

    def _rate(self, change: ClientQuotaChange, rate: float) -> float | None:
        """The rate, or None (unlimited) if Kafka up to 4.3 doesn't throttle by such a rate.

        The controller refuses 0 and less. It accepts NaN for each type, and infinity for REQUEST and
        CONTROLLER_MUTATION (``ClientQuotaControlManager.validateQuotaKeyValue``).
        """
        if math.isfinite(rate) and rate > 0:
            return rate
        message = "%s quota %r of %s: Kafka does not throttle with such a rate, so it counts as unlimited"
        self._context.log.warning(message, change.quota_type, rate, change.entity)
        return None


def _most_specific(quotas: _Quotas, client: Client) -> Quota | None:
    # A Quota is always true, even an unlimited one, so `or` skips only the levels that are not set.
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
    # The tags ("", "") have no limit. Kafka finds levels 7 and 8 only by the tags, so there no quota matches.
    return None if matched.scope == Scope.CLIENT_ID else Quota(None, Scope.USER)


def _narrow(name: _Name) -> str | None:
    """The only affected name, or None for a default or no name, which may affect every client."""
    return name if isinstance(name, str) else None
