"""The task ``publish-usage``: what this broker's busiest clients use of their cluster-wide quotas."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from quotahost.api import Context
from quotahost.disks.file_stores import cluster_id, log_dirs
from quotahost.plugins.cluster_quota.demand import Demands, key_of
from quotahost.plugins.cluster_quota.rates import NAME, ClusterQuotaSettings, ClusterRates
from quotahost.plugins.kafka.publisher import RETRY, Publisher
from quotahost.records.clients import ClientKey
from quotahost.records.usage import Usage, Used, encode
from quotahost.settings.plugin_section import read_section
from quotahost.throttling.quota_window import quota_window

_EVERY: Final = 5.0  # seconds
_NEWS: Final = 0.1  # of what it was
_SLIGHT: Final = 0.001  # of the quota: no change of less is news
_ASK_FOR: Final = 10  # times usage.clients: some of the busiest may have no cluster-wide quota
_REST: Final = 10  # a look may take a tenth of the time


class PublishUsage:
    """Looks every ``usage.period``; publishes what is news at once, and all of it every 5 s.

    News is a rate or demand that changed by a tenth, and a client that came, went, began or ended to be held back.
    Whose quota is cluster-wide is what the properties of the supplier ``cluster-quota`` say.
    """

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is connected yet. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self.period: timedelta = context.settings.usage_period
        self._publisher = Publisher(context, context.settings.usage_topic, "usage", self._lost, clock)
        self._demands = Demands(quota_window(context.broker.properties()))
        self._due = clock()
        self._published: dict[ClientKey, Used] | None = None
        self._cluster = ""
        self._host: object = None
        self._rates: ClusterRates

    def run(self) -> None:
        """Look, and publish if it is time or news."""
        started = self._clock()
        busy = self._publisher.busy()
        used = self._look(started)
        took = timedelta(seconds=self._clock() - started)
        self.period = max(self._context.settings.usage_period, _REST * took)
        self._context.metrics.gauge("Usage", "", "Clients", len(used))
        due = started >= self._due
        if not busy and (due or (self._published is not None and is_news(self._published, used))):
            self._publish(used)

    def close(self) -> None:
        """Give what is under way a last moment."""
        self._publisher.close()

    def _look(self, now: float) -> dict[ClientKey, Used]:
        """The busiest clients that have a cluster-wide quota and still use or want something."""
        most = self._context.settings.usage_clients
        rates = self._current()
        seen = self._context.broker.usage(_ASK_FOR * most)
        demands = self._demands.look(seen, now)
        told: dict[ClientKey, Used] = {}
        for each in seen:
            key, quota = key_of(each), rates.limited(key_of(each))
            over = key in self._demands.silent and each.rate < 1
            if quota is not None and not over and len(told) < most:
                told[key] = Used(key, each.rate, demands[key], quota)
        return told

    def _current(self) -> ClusterRates:
        """As the properties are now, which may change while the broker runs."""
        host = self._context.settings
        if host is not self._host:
            own = read_section(NAME, host.plugin.get(NAME, {}), ClusterQuotaSettings)
            self._host, self._rates = host, ClusterRates(cast("ClusterQuotaSettings", own))
        return self._rates

    def _publish(self, used: dict[ClientKey, Used]) -> None:
        if not self._cluster:
            self._cluster = cluster_id(log_dirs(self._context.broker.properties()))
        broker = str(self._context.node_id)
        usage = Usage(broker, datetime.now(UTC), tuple(used.values()), self._cluster)
        self._published = used
        self._due = self._clock() + _EVERY
        self._publisher.send(broker.encode(), lambda: encode(usage))

    def _lost(self) -> None:
        self._due = self._clock() + RETRY
        self._published = None


def is_news(before: dict[ClientKey, Used], now: dict[ClientKey, Used]) -> bool:
    """Whether the difference is worth a record at once."""
    return before.keys() != now.keys() or any(_moved(before[key], used) for key, used in now.items())


def _moved(before: Used, now: Used) -> bool:
    if before.quota != now.quota or (before.demand is None) != (now.demand is None):
        return True
    return _differs(before.rate, now.rate, now.quota) or _differs(
        before.demand or 0.0, now.demand or 0.0, now.quota
    )


def _differs(before: float, now: float, quota: float) -> bool:
    return abs(now - before) >= max(_NEWS * before, _SLIGHT * quota)
