"""The task ``publish-usage``: what this broker's busiest clients use of their cluster-wide quotas.

It asks the broker what Kafka measures for each client, works out what each would use
(``broker.plugins.cluster_quota.demand``), and publishes a ``quotahost.records.usage.Usage``. The pipeline divides
each quota among the brokers by these records, and the supplier ``cluster-quota`` reads the shares. While somebody
watches, it publishes all clients besides, for ``quotahost top`` (``looks``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, Protocol

from quotahost.api import Context
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.broker.plugins.cluster_quota.demand import Demands, key_of
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.broker.plugins.tasks.looks import Looks
from quotahost.broker.plugins.tasks.news import NewsPublisher
from quotahost.records.clients import ClientKey
from quotahost.records.usage import Usage, Used, encode
from quotahost.throttling import quota_window

_EVERY: Final = 5.0  # seconds after which a record is written without any news
_NEWS: Final = 0.1  # of a rate or demand: a change of so much is news
_SLIGHT: Final = 0.001  # of the quota: no smaller change is news
MOST: Final = 100  # clients in a record, the busiest
_ASK_FOR: Final = 10  # times MOST: some of the busiest may have no cluster-wide quota
_PERIOD: Final = timedelta(milliseconds=500)
_REST: Final = 10  # the period is at least so many times as long as a look takes

_Clients = dict[ClientKey, Used]


class Part(Protocol):
    """A part of the task that works by itself."""

    def run(self) -> None:
        """Do what it is time for."""

    def close(self) -> None:
        """End it."""


class PublishUsage:
    """Looks twice a second; publishes what is news at once, and all of it every 5 s.

    News is a rate or demand that changed by a tenth, and a client that came, went, began or ended to be held back.
    The records of ``quotas.topic`` define which clients have a cluster-wide quota; the task makes that topic, too.
    """

    #: Kafka then measures clients without a quota, too (quotahost.broker.host.new_clients.measured).
    needs_usage: ClassVar = True

    def __init__(
        self, context: Context, clock: Callable[[], float] = time.monotonic, looks: Callable[[Context], Part] = Looks
    ) -> None:
        """Nothing is connected yet. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self.period = _PERIOD
        topic, more = context.settings.usage_topic, [context.settings.quotas_topic]
        self._news: NewsPublisher[_Clients] = NewsPublisher(context, topic, "usage", is_news, clock, more)
        self._demands = Demands(quota_window(context.broker.properties()))
        self._cluster = ""
        self._quotas = ClusterQuotas(context)
        self._looks = looks(context)

    def run(self) -> None:
        """Look, and publish if it is time or news."""
        started = self._clock()
        clients = self._look(started)
        took = timedelta(seconds=self._clock() - started)
        # A look reads Kafka's MBeans for each client; with very many clients it would otherwise keep a core busy.
        self.period = max(_PERIOD, _REST * took)
        self._context.metrics.gauge("Usage", "", "Clients", len(clients))
        self._quotas.show()
        if self._quotas.take_absent():
            self._news.make_topics()
        self._news.offer(clients, self._encoded, _EVERY)
        self._looks.run()

    def close(self) -> None:
        """Wait a moment for the records that are on their way."""
        self._news.close()
        self._looks.close()
        self._quotas.close()

    def _look(self, now: float) -> _Clients:
        """The busiest clients that have a cluster-wide quota and still use or want some of it."""
        busiest = self._context.broker.usage(_ASK_FOR * MOST)
        demands = self._demands.look(busiest, now)
        found: _Clients = {}
        for each in busiest:
            key, quota = key_of(each), self._quotas.limited(key_of(each))
            # A silent client, whose demand is 0, stays in the records until its rate has run out.
            gone = key in self._demands.silent and each.rate < 1
            # The broker lists the busiest clients first, so those beyond MOST are the least busy.
            if quota is not None and not gone and len(found) < MOST:
                found[key] = Used(key, each.rate, demands[key], quota)
        return found

    def _encoded(self, clients: _Clients) -> bytes:
        # Read here and not from context.disks: without disks to watch, no broker needs their monitor for an id.
        self._cluster = self._cluster or cluster_id(log_dirs(self._context.broker.properties()))
        now = datetime.now(UTC)
        return encode(Usage(str(self._context.node_id), now, tuple(clients.values()), self._cluster))


def is_news(before: _Clients, now: _Clients) -> bool:
    """Whether the difference is worth a record at once."""
    return before.keys() != now.keys() or any(_moved(before[key], used) for key, used in now.items())


def _moved(before: Used, now: Used) -> bool:
    # A client that begins or ends to be held back changes the shares of all brokers, whatever its rate.
    if before.quota != now.quota or (before.demand is None) != (now.demand is None):
        return True
    pairs = ((before.rate, now.rate), (before.demand or 0.0, now.demand or 0.0))
    # The part of the quota keeps a client that uses next to nothing from being news each time its rate wavers.
    return any(abs(new - old) >= max(_NEWS * old, _SLIGHT * now.quota) for old, new in pairs)
