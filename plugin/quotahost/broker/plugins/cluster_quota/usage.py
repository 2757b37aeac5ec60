"""What this broker's clients use of their cluster-wide quotas, and what they would use: the task ``publish-usage``.

Twice a second the task asks the broker what Kafka measures for each client. Kafka measures only what a client was
allowed to do, so :class:`Demands` estimates what each would use. The task publishes both for the busiest clients: at
once where it changes, and all of it every 5 s, with the bytes that each moved since the record before, for a bill.
While somebody watches, it publishes the whole broker besides, for ``quotahost top`` (``tasks.status_publisher``).
"""

import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from quotahost.api import Context
from quotahost.background import Clock
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.broker.plugins.tasks.publish_volumes import ChangePublisher
from quotahost.broker.plugins.tasks.status_publisher import StatusPublisher
from quotahost.model import ClientUse
from quotahost.records.usage import ClientKey, Usage, Used, encode
from quotahost.throttling import quota_window

# ---- what a client would use ----

_NEAR: Final = 0.9  # of its limit: from here on the limit is what holds the client back
_MORE: Final = 1.25  # times its rate is the demand of a client that nothing holds back: room to grow in


def is_silent(used: ClientUse) -> bool:
    """Whether a client has asked for nothing for as long as Kafka's windows reach back: its rate has run out."""
    return used.rate < 1


class Demands:
    """Estimates demands, and remembers from look to look when Kafka delayed each client."""

    def __init__(self, window: float) -> None:
        """``window``: the seconds over which Kafka measures."""
        self._window = window
        #: The mean of a client's delays, and when it last moved, because Kafka delayed the client once more.
        self._delays: dict[ClientKey, tuple[float, float]] = {}

    def look(self, used: Iterable[ClientUse], now: float) -> dict[ClientKey, float | None]:
        """The demand of each client in bytes/s, None where it wants all that it can get.

        ``used`` is what Kafka measures now; ``now`` in seconds, monotonic.
        """
        before, self._delays, demands = self._delays, {}, dict[ClientKey, float | None]()
        for use in used:
            delay_ms, at = before.get(key := key_of(use), (use.delay_ms, -math.inf))
            # A mean that falls to 0 shows only that Kafka has forgotten the last delay.
            self._delays[key] = use.delay_ms, now if use.delay_ms not in (delay_ms, 0) else at
            near = use.limit is not None and use.rate >= _NEAR * use.limit
            # Who was delayed within the windows waits, or has sent less because of it; the rate doesn't show that.
            held = near or now - self._delays[key][1] <= self._window
            demands[key] = 0.0 if is_silent(use) else None if held else use.rate * _MORE
        return demands


def key_of(used: ClientUse) -> ClientKey:
    return ClientKey(used.user, used.client_id, used.quota_type)


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
        self._status = StatusPublisher(context, clock)

    def run(self) -> None:
        started = self._clock()
        clients = self._look(started)
        took = timedelta(seconds=self._clock() - started)
        # A look reads Kafka's MBeans for each client; with very many clients it would otherwise keep a core busy.
        self.period = max(_PERIOD, _REST * took)
        self._context.metrics.gauge("Usage", "", "Clients", len(clients))
        self._quotas.show()
        self._publisher.offer(clients, self._encoded, _EVERY)
        self._status.run()

    def _look(self, now: float) -> _Clients:
        """The busiest clients that have a cluster-wide quota and still use or want some of it."""
        busiest = self._context.broker.usage(_ASK_FOR * MOST)
        demands = self._demands.look(busiest, now)
        elapsed, self._looked_at = now - (now if self._looked_at is None else self._looked_at), now
        clients: _Clients = {}
        for usage in busiest:
            key, quota = key_of(usage), self._quotas.rate(*key_of(usage))
            # Kafka counts no bytes of a client; they are the sum of its rate over time.
            moved = self._moved.get(key, 0.0) + usage.rate * elapsed
            # A silent client stays in the records until all is told.
            gone = is_silent(usage) and moved < 1
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
