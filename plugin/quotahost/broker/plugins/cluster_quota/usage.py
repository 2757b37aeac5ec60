"""The task ``publish-usage``: what clients use of cluster-wide quotas, what they would use (demand), bytes for a bill.

Twice a second the task asks the broker what Kafka measures for each client. Kafka measures only what a client was
allowed to do, so :class:`Demands` estimates what each would use. The task publishes both for the busiest clients: at
once where it changes, and all of it every 5 s, with the bytes that each moved since the record before, for a bill.
While somebody watches, it publishes the whole broker besides, for ``quotahost top`` (``tasks.publish_looks``).
"""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.broker.plugins.tasks.publish_looks import LooksPublisher
from quotahost.broker.plugins.tasks.publish_volumes import ChangePublisher
from quotahost.model import ClientUse
from quotahost.records.usage import ClientKey, Usage, Used, encode
from quotahost.throttling import quota_window

# ---- what a client would use ----

_NEAR: Final = 0.9  # of its limit: from here on the limit is what holds the client back
_MORE: Final = 1.25  # times its rate is the demand of a client that nothing holds back: room to grow in
_SILENCE: Final = 1.0  # seconds
#: Request threads note the beat of a clock that the watch moves every 0.2 s, so that they read no time themselves.
_BEAT: Final = 0.25  # seconds; nobody knows more exactly when a client last asked
_HELD: Final = 1.5  # seconds for which a new delay shows that the client is held back


@dataclass(frozen=True, slots=True)
class _Seen:
    """A client at the last look; times in monotonic seconds."""

    asked_at: float  # when it last asked
    waits_until: float  # until when Kafka makes it wait since then
    delay_ms: float  # the mean of its delays
    delayed_at: float | None  # when that mean last changed, because Kafka delayed it once more; None if it never did


class Demands:
    """Estimates demands, and remembers each client from look to look."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._seen: dict[ClientKey, _Seen] = {}
        self.silent: frozenset[ClientKey] = frozenset()  # who asked for nothing lately, as of the last look

    def look(self, uses: Mapping[ClientKey, ClientUse], now: float) -> dict[ClientKey, float | None]:
        """The demand of each client in bytes/s, None where it wants all that it can get.

        The demand of a ``silent`` client is 0: it has asked for nothing for a second longer than Kafka made it wait.
        Its rate doesn't show that, because Kafka's rates fall only slowly, as windows pass. ``uses`` is what Kafka
        measures now; ``now`` in seconds, monotonic.
        """
        self._seen = {key: self._see(self._seen.get(key), usage, now) for key, usage in uses.items()}
        # A muted client is idle because Kafka told it to wait; as silent it would lose its share to other brokers.
        self.silent = frozenset(
            key for key, usage in uses.items() if usage.idle > _SILENCE and now > self._seen[key].waits_until + _SILENCE
        )
        return {key: self._demand(key, usage, now) for key, usage in uses.items()}

    def _see(self, before: _Seen | None, used: ClientUse, now: float) -> _Seen:
        asked_at = now - used.idle
        # Of the past there is only the mean of the delays. It reaches back a minute and is too short where many small
        # ones are among them, so it serves for the first look alone.
        if before is None:
            return _Seen(asked_at, asked_at + used.delay_ms / 1000, used.delay_ms, None)
        waits_until = before.waits_until
        # A smaller difference is the clock's coarseness and no new request.
        if asked_at > before.asked_at + _BEAT:
            # Kafka makes it wait for (rate - limit) / limit x window (``QuotaUtils.throttleTime``), by the limit at the
            # time when it asked; a later limit doesn't change the wait.
            if used.limit and used.rate > used.limit:
                waits_until = now + (used.rate / used.limit - 1) * self._window
            else:  # it is free to ask since its last request; it does not wait until this look
                waits_until = asked_at
        # A mean that falls to 0 shows only that Kafka has forgotten the last delay.
        moved = used.delay_ms != before.delay_ms and used.delay_ms > 0
        return _Seen(max(asked_at, before.asked_at), waits_until, used.delay_ms, now if moved else before.delayed_at)

    def _demand(self, key: ClientKey, used: ClientUse, now: float) -> float | None:
        if key in self.silent:
            return 0.0
        seen = self._seen[key]
        delayed = seen.delayed_at is not None and now - seen.delayed_at <= _HELD
        # After its wait a client gets a moment to ask again before its measured rate counts, which is low by then.
        waits = seen.asked_at + _BEAT < seen.waits_until and now < seen.waits_until + _SILENCE
        near = used.limit is not None and used.rate >= _NEAR * used.limit
        return None if delayed or waits or near else used.rate * _MORE


def by_client(uses: Iterable[ClientUse]) -> dict[ClientKey, ClientUse]:
    return {ClientKey(use.user, use.client_id, use.quota_type): use for use in uses}


# ---- the task ----

_EVERY: Final = 5.0  # seconds after which a record is written though nothing has changed
_CHANGE: Final = 0.1  # of a rate or demand: a change of so much is published at once
_SLIGHT: Final = 0.001  # of the quota: no smaller change is
MOST: Final = 100  # clients in a record, the busiest
_ASK_FOR: Final = 10  # times MOST: some of the busiest may have no cluster-wide quota
_PERIOD: Final = timedelta(milliseconds=500)
_REST: Final = 10  # the period is at least so many times as long as a look takes

_Clients = dict[ClientKey, Used]


class PublishUsage:
    """A change is a rate or demand that moved by a tenth, or a client that came, went, or is held back or no more."""

    #: Kafka then measures clients without a quota, too (quotahost.broker.host.new_clients).
    needs_usage: ClassVar = True

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self.period = _PERIOD
        context.closing.callback(context.metrics.forget, "Usage", "")
        topic, more = context.settings.usage_topic, [context.settings.quotas_topic]
        self._publisher: ChangePublisher[_Clients] = ChangePublisher(context, topic, has_changed, clock, more)
        self._demands = Demands(quota_window(context.broker.properties()))
        self._cluster = ""
        self._looked_at: float | None = None
        self._moved: dict[ClientKey, float] = {}  # bytes since the last record, of those who would stand in the next
        self._quotas = ClusterQuotas(context, self._publisher.make_topics)
        self._looks = LooksPublisher(context, clock)

    def run(self) -> None:
        started = self._clock()
        clients = self._look(started)
        took = timedelta(seconds=self._clock() - started)
        # A look reads Kafka's MBeans for each client; with very many clients it would otherwise keep a core busy.
        self.period = max(_PERIOD, _REST * took)
        self._context.metrics.gauge("Usage", "", "Clients", len(clients))
        self._quotas.show()
        self._publisher.offer(clients, self._encoded, _EVERY)
        self._looks.run()

    def _look(self, now: float) -> _Clients:
        """The busiest clients that have a cluster-wide quota and still use or want some of it."""
        busiest = by_client(self._context.broker.usage(_ASK_FOR * MOST))
        demands = self._demands.look(busiest, now)
        elapsed, self._looked_at = now - (now if self._looked_at is None else self._looked_at), now
        clients: _Clients = {}
        for key, usage in busiest.items():
            quota = self._quotas.rate(*key)
            # Kafka counts no bytes of a client; they are the sum of its rate over time.
            moved = self._moved.get(key, 0.0) + usage.rate * elapsed
            # A silent client, whose demand is 0, stays in the records until its rate has run out and all is told.
            gone = key in self._demands.silent and usage.rate < 1 and moved < 1
            # The broker lists the busiest clients first, so those beyond MOST are the least busy.
            if quota is not None and quota < math.inf and not gone and len(clients) < MOST:
                clients[key] = Used(*key, usage.rate, demands[key], quota, moved)
        self._moved = {key: used.bytes or 0.0 for key, used in clients.items()}
        return clients

    def _encoded(self, clients: _Clients) -> bytes:
        # Read here and not from context.disks: without disks to watch, no broker needs their monitor for an id.
        self._cluster = self._cluster or cluster_id(log_dirs(self._context.broker.properties()))
        usage = Usage(str(self._context.node_id), datetime.now(UTC), tuple(clients.values()), self._cluster)
        self._moved = {}
        return encode(usage)


def has_changed(before: _Clients, now: _Clients) -> bool:
    return before.keys() != now.keys() or any(_moved(before[key], used) for key, used in now.items())


def _moved(before: Used, now: Used) -> bool:
    # A client that begins or ends to be held back changes the shares of all brokers, whatever its rate.
    if before.quota != now.quota or (before.demand is None) != (now.demand is None):
        return True
    pairs = ((before.rate, now.rate), (before.demand or 0.0, now.demand or 0.0))
    # The part of the quota keeps a client that uses next to nothing from changing each time its rate wavers.
    return any(abs(new - old) >= max(_CHANGE * old, _SLIGHT * now.quota) for old, new in pairs)
