"""The records by which brokers and the pipeline learn of one another: their topics, and how often they are written."""

from __future__ import annotations

from typing import Final, Self

from pydantic import model_validator

from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.types import FencedBrokers, Text
from quotahost.units import Duration

_TOPICS: Final = (
    "snapshots_topic", "cluster_volumes_topic", "usage_topic", "shares_topic", "quotas_topic", "watch_topic",
    "looks_topic",
)  # fmt: skip


class RecordSettings(Frozen):
    """Snapshots and cluster volumes, usage of clients, and shares of cluster-wide quotas."""

    volumes_period: Duration = declare("volumes.period", default="250ms")
    """How often this broker looks at its file stores."""
    snapshots_topic: Text = declare("snapshots.topic", default="__quotahost_snapshots", live=False)
    """Compacted topic of the brokers' volume snapshots; made if it is absent."""
    cluster_volumes_topic: Text = declare("cluster.volumes.topic", default="__quotahost_cluster_volumes", live=False)
    """Compacted topic of the clusters' volumes, which the pipeline writes and `cluster-volumes` reads."""
    snapshots_period: Duration = declare("snapshots.period", default="5s")
    """How often a broker publishes its snapshot at least; news (a thousandth of a volume's capacity, a limit crossed)
    is published at once."""
    usage_topic: Text = declare("usage.topic", default="__quotahost_usage", live=False)
    """Compacted topic in which the task `publish-usage` publishes what each broker's busiest clients use; made if it
    is absent."""
    watch_topic: Text = declare("watch.topic", default="__quotahost_watch", live=False)
    """Compacted topic by which `quotahost top --bootstrap` asks brokers for looks; the task `publish-usage` reads it,
    and makes it if it is absent."""
    looks_topic: Text = declare("looks.topic", default="__quotahost_looks", live=False)
    """Compacted topic in which the task `publish-usage` publishes who uses what, while somebody watches; made if it is
    absent."""
    shares_topic: Text = declare("shares.topic", default="__quotahost_shares", live=False)
    """Compacted topic of each broker's shares of the cluster-wide client quotas, which the pipeline writes and the
    supplier `cluster-quota` reads."""
    quotas_topic: Text = declare("quotas.topic", default="__quotahost_quotas", live=False)
    """Compacted topic of the cluster-wide client quotas, which `quotahost quotas apply` writes; the supplier
    `cluster-quota` and the task `publish-usage` read it, and the task makes it if it is absent."""
    fenced_brokers: FencedBrokers = declare("fenced.brokers", default="last-known")
    """What a fenced broker (registered, but out of service) counts for: its last known volumes, until it is back or
    unregistered; or `unknown`, the strict form: after `validity` it leads to `fallback.action`, so that one machine
    that is down stops all producers, until it is back or unregistered."""

    @property
    def record_topics(self) -> tuple[str, ...]:
        """The topics of quotahost, by whatever names they go here."""
        return tuple(getattr(self, field) for field in _TOPICS)

    @model_validator(mode="after")
    def _each_has_a_topic_of_its_own(self) -> Self:
        """Two kinds of records in one compacted topic would replace each other by key, and be refused by readers."""
        owners: dict[str, str] = {}
        for field in _TOPICS:
            topic, name = getattr(self, field), field.replace("_", ".")
            if topic in owners:
                raise ValueError(f"{owners[topic]} and {name} both name the topic {topic}; give each one of its own")
            owners[topic] = name
        return self
