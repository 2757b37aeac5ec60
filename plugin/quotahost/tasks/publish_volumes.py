"""The task ``publish-volumes``: this broker's volumes, as a snapshot, to the compacted topic of all brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from quotahost.api import Context
from quotahost.diskwatch import DiskWatch
from quotahost.kafka.client import Connection, client_config
from quotahost.kafka.topic import ensure_compacted
from quotahost.model import Volume
from quotahost.wire import Snapshot, encode

_NEWS: Final = 1000  # a change of consumption by this part of the capacity is published at once
_RETRY: Final = 1.0  # seconds
_LOOK_THEMSELVES: Final = (
    "local",
    "snapshots",
    "cluster-volumes",
)  # factor sources with a watch of their own
_GATHERS: Final = 5.0  # seconds in which the brokers of a new cluster register
_FLUSH: Final = 1.0  # seconds


class PublishVolumes:
    """Publishes at the start, at least every ``snapshots.period``, and at once what is news.

    News is a volume that came, went, changed by a thousandth of its capacity or crossed one of its limits, new limits,
    the cluster's id, or a log directory that went offline (proposal 035, "The data source"). Of disks that answer no
    more nothing is published after half of ``validity``, so that the others miss this broker.
    """

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is connected yet. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self.period: timedelta = context.host.volumes_period
        self._watch = DiskWatch(context, clock, tells=context.host.factor_source not in _LOOK_THEMSELVES)
        self._connection = Connection(context)
        self._producer: Producer | None = None
        self._started = clock()
        self._answered: float | None = None
        self._due = clock()
        self._published: Snapshot | None = None
        self._in_flight = False
        self._told_error = ""
        self._told_silence = False
        context.broker.count("Publication", "", "Errors", 0)

    def run(self) -> None:
        """Look, and publish if it is time or news."""
        self.period = self._context.host.volumes_period
        if self._producer is not None:
            self._producer.poll(0)
        snapshot = self._look()
        if snapshot is None or self._in_flight:
            return
        due = self._clock() >= self._due
        if not due and (self._published is None or not is_news(self._published, snapshot)):
            return
        try:
            self._publish(snapshot)
        except KafkaException as problem:
            self._failed(problem.args[0])
        except Exception as problem:  # the cluster doesn't tell its brokers yet, and the like
            self._failed(problem)

    def close(self) -> None:
        """Give what is under way a last moment."""
        if self._producer is not None:
            self._producer.flush(_FLUSH)
        self._watch.close()

    def _look(self) -> Snapshot | None:
        """The newest look at the disks; None where it is too old to be published as news of now."""
        host = self._context.host
        age, disks = self._watch.read()
        silent = age > max(host.validity / 2, host.snapshots_period + host.volumes_period).total_seconds()
        if silent and not self._told_silence:
            self._context.log.warning("the disks don't answer; nothing is published until they do")
        self._told_silence = silent
        if disks is None or silent:
            return None
        return Snapshot(
            str(self._context.node_id),
            datetime.now(UTC),
            disks.volumes,
            host.storage_soft,
            host.storage_hard,
            disks.offline,
            self._watch.cluster,
        )

    def _publish(self, snapshot: Snapshot) -> None:
        host = self._context.host
        key, value = snapshot.broker.encode(), encode(snapshot)
        self._connected().produce(host.snapshots_topic, key=key, value=value, on_delivery=self._delivered)
        self._in_flight = True
        self._published = snapshot
        self._due = self._clock() + host.snapshots_period.total_seconds()

    def _connected(self) -> Producer:
        if self._producer is None:
            host = self._context.host
            brokers, now = len(self._context.broker.registered()), self._clock()
            self._answered = now if self._answered is None else self._answered
            patient = now - self._started < host.startup_grace.total_seconds()
            gathering = patient and now - self._answered < _GATHERS
            config = client_config(self._context)
            ensure_compacted(config, host.snapshots_topic, brokers, patient, gathering)
            self._producer = Producer(config | _PRODUCER)
        return self._producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._in_flight = False
        if error is None:
            self._told_error = ""
            self._connection.works()
        else:
            self._failed(error)

    def _failed(self, problem: Any) -> None:
        """Look the topic up again before the next try: it may be gone."""
        self._due = self._clock() + _RETRY
        self._producer = None
        self._published = None
        starting = self._connection.ever is False
        if starting and self._clock() - self._started < self._context.host.startup_grace.total_seconds():
            return
        self._context.broker.count("Publication", "", "Errors")
        self._connection.fails(problem)
        if str(problem) != self._told_error:
            self._told_error = str(problem)
            self._context.log.warning("this broker's volumes can't be published; it tries again: %s", problem)


_PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": 5000,  # the next snapshot says more than a late one
    "topic.metadata.refresh.interval.ms": 5000,
    "queue.buffering.max.messages": 100,
}


def is_news(before: Snapshot, now: Snapshot) -> bool:
    """Whether the difference is worth a record at once."""
    old = {volume.name: volume for volume in before.volumes}
    return (
        (before.offline, before.cluster) != (now.offline, now.cluster)
        or old.keys() != {volume.name for volume in now.volumes}
        or any(_moved(old[volume.name], volume) for volume in now.volumes)
    )


def _moved(before: Volume, now: Volume) -> bool:
    if before.capacity != now.capacity or (before.soft, before.hard) != (now.soft, now.hard):
        return True
    change = abs(now.consumed - before.consumed)
    return (change > 0 and change * _NEWS >= now.capacity) or any(
        (before.consumed >= limit.consumed_at(now.capacity))
        != (now.consumed >= limit.consumed_at(now.capacity))
        for limit in (now.soft, now.hard)
        if limit is not None
    )
