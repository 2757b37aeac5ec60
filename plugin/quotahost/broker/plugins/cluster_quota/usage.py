"""The task ``publish-usage`` publishes the usage and the demand of the busiest clients with cluster-wide quotas.

1. Twice a second the task reads the rates that Kafka measures for each client. A measured rate is only what Kafka
   allowed, so :class:`Demands` estimates the demand: what the client would use without a limit.
2. The task publishes usage and demand of the busiest clients immediately after a change, and at least every 5 s, with
   the bytes of each client since the previous record, for billing.
3. While a ``quotahost top`` watches, the task also publishes the whole broker for it (``tasks.publish_looks``).
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
from quotahost.kafka.publisher import Publisher
from quotahost.model import ClientUse
from quotahost.model.use import near_limit
from quotahost.records.topics import QUOTAS, USAGE
from quotahost.records.usage import ClientKey, Usage, Used, encode
from quotahost.throttling import quota_window

# ---- the demand of a client ----

_MORE: Final = 1.25  # if nothing holds a client back, its demand is 1.25 x its rate, so that it has room to grow
_SILENCE: Final = 1.0  # seconds
#: Request threads read no clock themselves: they note a time that the watch advances every 0.2 s.
_BEAT: Final = 0.25  # seconds; the time of a client's last request is not known more exactly
_HELD: Final = 1.5  # seconds for which a new delay shows that the client is held back


@dataclass(frozen=True, slots=True)
class _Seen:
    """A client at the last look; times in monotonic seconds."""

    asked_at: float  # the time of its last request
    waits_until: float  # the end of the wait that Kafka imposed for that request
    delay_ms: float  # the mean of its delays
    delayed_at: float | None  # when that mean last changed because Kafka delayed the client again; None if never


class Demands:
    """Estimates the demand of each client, from this look and the previous one."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._seen: dict[ClientKey, _Seen] = {}
        self.silent: frozenset[ClientKey] = frozenset()  # the clients without recent requests, as of the last look

    def look(self, uses: Mapping[ClientKey, ClientUse], now: float) -> dict[ClientKey, float | None]:
        """The demand of each client in bytes/s, or None if the client would use all that it can get.

        The demand of a ``silent`` client is 0: it has sent no request for a second longer than Kafka made it wait. Its
        rate doesn't show the silence, because Kafka's rates fall slowly as windows pass. ``uses`` has what Kafka
        measures now; ``now`` is in monotonic seconds.
        """
        self._seen = {key: self._see(self._seen.get(key), usage, now) for key, usage in uses.items()}
        # A muted client is idle because Kafka makes it wait. As a silent client it would lose its share to others.
        self.silent = frozenset(
            key for key, usage in uses.items() if usage.idle > _SILENCE and now > self._seen[key].waits_until + _SILENCE
        )
        return {key: self._demand(key, usage, now) for key, usage in uses.items()}

    def _see(self, before: _Seen | None, used: ClientUse, now: float) -> _Seen:
        asked_at = now - used.idle
        # Before the first look, only the mean delay is known. It covers a minute and is too short if it includes many
        # small delays, so only the first look uses it.
        if before is None:
            return _Seen(asked_at, asked_at + used.delay_ms / 1000, used.delay_ms, None)
        waits_until = before.waits_until
        # A smaller difference comes from the coarse clock and is no new request.
        if asked_at > before.asked_at + _BEAT:
            # Kafka makes the client wait for (rate - limit) / limit x window (``QuotaUtils.throttleTime``), by the
            # limit at the time of the request; a later limit doesn't change the wait.
            waits_until = asked_at  # if the client did not have to wait after its last request
            if used.limit and used.rate > used.limit:
                waits_until = now + (used.rate / used.limit - 1) * self._window
        # If the mean falls to 0, Kafka has only forgotten the last delay.
        moved = used.delay_ms != before.delay_ms and used.delay_ms > 0
        return _Seen(max(asked_at, before.asked_at), waits_until, used.delay_ms, now if moved else before.delayed_at)

    def _demand(self, key: ClientKey, used: ClientUse, now: float) -> float | None:
        if key in self.silent:
            return 0.0
        seen = self._seen[key]
        delayed = seen.delayed_at is not None and now - seen.delayed_at <= _HELD
        # After its wait, the client has a moment to send again: its measured rate has become low during the wait.
        waits = seen.asked_at + _BEAT < seen.waits_until and now < seen.waits_until + _SILENCE
        near = used.limit is not None and near_limit(used.rate, used.limit)
        return None if delayed or waits or near else used.rate * _MORE


def by_client(uses: Iterable[ClientUse]) -> dict[ClientKey, ClientUse]:
    return {ClientKey(use.user, use.client_id, use.quota_type): use for use in uses}


# ---- the task ----

_EVERY: Final = 5.0  # seconds after which a record is published without a change
_CHANGE: Final = 0.1  # of a rate or demand: such a change is published immediately
_SLIGHT: Final = 0.001  # of the quota: a smaller change is not published immediately
MOST: Final = 100  # the busiest clients that a record lists
_ASK_FOR: Final = 10  # the task reads 10 x MOST clients, because busy clients may have no cluster-wide quota
_PERIOD: Final = timedelta(milliseconds=500)
_REST: Final = 10  # the period is at least 10 times as long as a look takes

_Clients = dict[ClientKey, Used]


class PublishUsage:
    """Publishes early if a rate or demand moves by a tenth, or if a client comes, goes, is held back, or is freed."""

    #: The host has Kafka measure clients without a quota, too (quotahost.broker.host.new_clients).
    needs_usage: ClassVar = True

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock = context, clock
        self.period = _PERIOD
        context.closing.callback(context.metrics.forget, "Usage", "")
        topic = context.settings.named(USAGE)
        self._publisher = Publisher[_Clients](context, topic, has_changed, clock, self._to_create)
        self._demands = Demands(quota_window(context.broker.properties()))
        self._cluster = ""
        self._looked_at: float | None = None
        self._moved: dict[ClientKey, float] = {}  # bytes since the last record, of clients that the next one will list
        self._quotas = ClusterQuotas(context, self._publisher.make_topics)
        self._looks = LooksPublisher(context, clock)

    def _to_create(self) -> list[str]:
        """The quotas' topic, unless it was read: if it was deleted since, an empty one would end the quotas."""
        return [] if self._quotas.was_read else [self._context.settings.named(QUOTAS)]

    def run(self) -> None:
        started = self._clock()
        clients = self._look(started)
        # A look reads Kafka's MBeans of each client. With a fixed period, very many clients would keep a core busy.
        self.period = max(_PERIOD, _REST * timedelta(seconds=self._clock() - started))
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
            # Kafka counts no bytes per client, so the bytes are the sum of the rate over time.
            moved = self._moved.get(key, 0.0) + usage.rate * elapsed
            # A silent client stays in the records until its rate is 0 and all its bytes are published.
            gone = key in self._demands.silent and usage.rate < 1 and moved < 1
            # The broker lists the busiest clients first, so those beyond MOST are the least busy.
            if quota is not None and quota < math.inf and not gone and len(clients) < MOST:
                clients[key] = Used(*key, usage.rate, demands[key], quota, moved)
        self._moved = {key: used.bytes or 0.0 for key, used in clients.items()}
        return clients

    def _encoded(self, clients: _Clients) -> bytes:
        # context.disks has the id, too, but would start the disk monitor only for the id.
        self._cluster = self._cluster or cluster_id(log_dirs(self._context.broker.properties()))
        usage = Usage(str(self._context.node_id), datetime.now(UTC), tuple(clients.values()), self._cluster)
        self._moved = {}
        return encode(usage)


def has_changed(before: _Clients, now: _Clients) -> bool:
    return before.keys() != now.keys() or any(_moved(before[key], used) for key, used in now.items())


def _moved(before: Used, now: Used) -> bool:
    # If a limit starts or stops to hold a client back, the shares of all brokers change, whatever the rate is.
    if before.quota != now.quota or (before.demand is None) != (now.demand is None):
        return True
    pairs = ((before.rate, now.rate), (before.demand or 0.0, now.demand or 0.0))
    # _SLIGHT ignores the small changes of a client that uses almost nothing of its quota.
    return any(abs(new - old) >= max(_CHANGE * old, _SLIGHT * now.quota) for old, new in pairs)
