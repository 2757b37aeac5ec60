"""``ClusterQuotas`` reads the cluster-wide quotas from their topic and finds the quota of each client.

The supplier ``cluster-quota`` and the task ``publish-usage`` each follow ``__quotahost_quotas`` by a
:class:`ClusterQuotas`. At the start it reads the whole topic; until it reaches the end, no client has a cluster-wide
quota. Then each record changes the quota of one entity. If a record is refused (``quotahost.records.quotas``), the
entity keeps its last quota. If the topic is read again, the quotas that it no longer has are dropped at its end.
"""

import math
import threading
from collections.abc import Callable, Collection
from typing import ClassVar, Final

from quotahost.api import Context
from quotahost.api.context import AnswersChanged, silent
from quotahost.base.background import LoggedOnce
from quotahost.broker.plugins.suppliers.client_quotas import NamedClientIds
from quotahost.kafka.follower import Follower
from quotahost.model import QuotaType
from quotahost.records.quotas import DEFAULT, Entity, LatestQuotas
from quotahost.records.topics import QUOTAS
from quotahost.settings.sections import Section

_SILENCE: Final = 3600.0  # seconds without a change after which the topic is read again
_REMEDY: Final = (
    "cluster-wide quotas are records of __quotahost_quotas; import the old values with `quotahost quotas "
    "import-properties FILE --bootstrap HOST:PORT`, then remove this line"
)
_REMOVED: Final = ("default", "users", "client-ids", "clients")


class ClusterQuotaSettings(Section):
    """The supplier has no properties."""

    #: Properties of earlier versions, which are refused with this remedy (quotahost.settings.sections).
    removed: ClassVar = {f"{kind}.{name}": _REMEDY for kind in ("produce", "fetch") for name in _REMOVED}


class ClusterQuotas:
    """Follows the topic, and finds a client's quota: for user and client-id, else for user, client-id, or the default.

    Clients never share a quota, even if they get their rates from the same entity. Any thread may ask.
    """

    def __init__(
        self, context: Context[object], absent: Callable[[], None] = lambda: None, changed: AnswersChanged = silent
    ) -> None:
        """Start to follow the topic; call ``absent`` when it doesn't exist, ``changed`` when an entity's quota changes.

        If the topic was read and then deleted, the quotas stay until an operator applies them again.
        """
        self._context, self._changed = context, changed
        self._latest = LatestQuotas()
        self._unread = LoggedOnce(context.log)
        self._lock = threading.Lock()  # guards the next attribute
        self._named = NamedClientIds()
        self._topic = context.settings.named(QUOTAS)
        context.closing.callback(context.metrics.forget, "ClusterQuotas", "")
        self._follower = Follower(
            context, self._topic, self.record, lambda: _SILENCE, self.caught_up, absent,
            connection=f"{context.name}-quotas", begins=self._latest.begins,
        )  # fmt: skip

    # ---- any thread ----

    def rate(self, user: str, client_id: str | None, quota_type: QuotaType) -> float | None:
        """The client's bytes/s in the whole cluster; infinity is unlimited, None is no quota.

        If ``client_id`` is None, the result is the rate of the user's clients that have no quota for their client-id.
        """
        quotas = self._latest.by_name
        for name in ((user, client_id), (user, None), (None, client_id), DEFAULT):
            # A plain tuple finds an Entity, because both have the same hash.
            quota = quotas.get(name)  # type: ignore[arg-type]
            if quota is not None and (rate := quota.rate(quota_type)) is not None:
                return rate
        return None

    def distinct_client_ids(self, principal: str) -> frozenset[str] | None:
        """The client-ids of a principal with a quota; None if each client-id may have one, and so its own share."""
        # Unlimited clients have no shares, so their client-ids don't differ.
        if {self.rate(principal, None, kind) for kind in (QuotaType.PRODUCE, QuotaType.FETCH)} - {None, math.inf}:
            return None
        with self._lock:
            return self._named.of(principal)

    @property
    def was_read(self) -> bool:
        """Whether the topic was read to its end, so that the quotas are known."""
        return self._follower.has_read

    def show(self) -> None:
        metrics = self._context.metrics
        metrics.gauge("ClusterQuotas", "", "Entities", len(self._latest.by_name))
        metrics.gauge("ClusterQuotas", "", "Read", float(self.was_read))
        if not self.was_read and not self._follower.connection.starting:
            text = "topic %s can't be read so far: no client has a cluster-wide quota on this broker"
            self._unread.report(text, self._topic)

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        if (entity := self._latest.record(key, value, live)) is not None:
            self._note([entity])

    def caught_up(self) -> None:
        before, now = self._latest.caught_up(), self._latest.by_name
        if gone := len(before.keys() - now.keys()):
            text = "topic %s was read again: %d of %d cluster-wide quotas are no longer in it"
            self._context.log.warning(text, self._topic, gone, len(before))
        self._note({entity for entity, _ in before.items() ^ now.items()})

    def _note(self, entities: Collection[Entity]) -> None:
        with self._lock:
            for entity in entities:
                if entity.client_id is not None:
                    self._named.note(entity.user, entity.client_id, entity in self._latest.by_name)
        for entity in entities:
            self._changed(principal=entity.user, client_id=entity.client_id)
