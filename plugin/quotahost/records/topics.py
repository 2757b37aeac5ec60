"""The topics of quotahost: what each carries, who needs which rights to it, and how it is configured.

Whoever may write to one of them decides about other clients' quotas, or stops the producers of a cluster. So each is
declared here once, for docs/security.md, ``quotahost doctor``, and whoever makes a missing one first: brokers
(:mod:`quotahost.kafka.admin`) or the pipeline.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

#: Beginning of all names unless ``topics.prefix`` sets another one.
PREFIX: Final = "__quotahost_"
#: If two of three replicas are down, a record that one broker keeps is better than none, whatever the brokers' default.
WRITABLE: Final = {"min.insync.replicas": "1"}
COMPACTED: Final = WRITABLE | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",  # only closed segments are compacted
    "segment.bytes": "16777216",
    "message.timestamp.type": "LogAppendTime",  # one clock, Kafka's, however those of its clients go
}

# ---- rights ----------------------------------------------------------------------------------------

#: An operation as Kafka's ACLs name it. Read and Write include Describe (``StandardAuthorizer``).
Operation = Literal["Read", "Write", "Create", "Describe", "DescribeConfigs"]


class AclRole(Enum):
    """Who works with the topics; each connects as a principal of its own. Nobody else needs any right."""

    PLUGINS = "brokers"  # the Kafka client of the plugins and tasks inside the brokers (``kafka.*``)
    PIPELINE = "pipeline"  # the Spark pipeline (``--kafka-config``)
    WATCHERS = "watchers"  # who runs ``quotahost top --bootstrap`` (``--client-config``)
    OPERATORS = "operators"  # who runs ``quotahost quotas`` (``--client-config``)


_READS: Final[tuple[Operation, ...]] = ("Read",)
_MAKES: Final[tuple[Operation, ...]] = ("Create", "DescribeConfigs")
_WRITES: Final[tuple[Operation, ...]] = ("Write", *_MAKES)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic."""

    name: str  # the default name
    carries: str  # what its records are, for a table
    danger: str  # what a stranger does who may write to it
    brokers: tuple[Operation, ...]  # the operations that the brokers' plugins need; likewise the others
    pipeline: tuple[Operation, ...] = ()
    watchers: tuple[Operation, ...] = ()
    operators: tuple[Operation, ...] = ()

    def named(self, prefix: str) -> str:
        return prefix + self.name.removeprefix(PREFIX)

    def operations(self, role: AclRole) -> tuple[Operation, ...]:
        return getattr(self, role.value)  # type: ignore[no-any-return]  # each role bears its field's name


SNAPSHOTS: Final = Topic(
    "__quotahost_snapshots",
    "each broker's volumes, by `publish-volumes`",
    "stops all producers by a volume that is full, or hides one",
    (*_READS, *_WRITES), (*_READS, *_MAKES),
)  # fmt: skip
CLUSTER_VOLUMES: Final = Topic(
    "__quotahost_cluster_volumes",
    "all volumes of the cluster, by the pipeline",
    "stops all producers, or hides every full disk; a high run makes the pipeline stand by",
    _READS, (*_READS, *_WRITES),
)  # fmt: skip
USAGE: Final = Topic(
    "__quotahost_usage",
    "what each broker's busiest clients use, by `publish-usage`",
    "draws other clients' cluster-wide quotas to one broker",
    _WRITES, (*_READS, *_MAKES),
)  # fmt: skip
SHARES: Final = Topic(
    "__quotahost_shares",
    "each broker's shares of the cluster-wide quotas, by the pipeline",
    "takes a client's quota away, or gives all of it on every broker",
    _READS, _WRITES,
)  # fmt: skip
REFUSED: Final = Topic(
    "__quotahost_refused",
    "dead letters: copies of the records that the pipeline refused",
    "hides real faults among invented ones",
    (), _WRITES,
)  # fmt: skip
TICKS: Final = Topic(
    "__quotahost_ticks",
    "by it time passes in the pipeline while no other record arrives",
    "keeps the pipeline busy",
    (), (*_READS, *_WRITES),
)  # fmt: skip
WATCH: Final = Topic(
    "__quotahost_watch",
    "that somebody watches, by `quotahost top`",
    "has brokers publish who uses what, every two seconds, and list the files of a volume",
    (*_READS, *_MAKES), watchers=("Write",),
)  # fmt: skip
LOOKS: Final = Topic(
    "__quotahost_looks",
    "who uses what, and what fills the volumes that are opened, by `publish-usage` while somebody watches",
    "shows those who watch invented clients",
    _WRITES, watchers=_READS,
)  # fmt: skip
QUOTAS: Final = Topic(
    "__quotahost_quotas",
    "the cluster-wide client quotas and the budgets of storage, by `quotahost quotas apply`",
    "sets or removes every cluster-wide quota and every budget",
    (*_READS, *_MAKES), operators=(*_READS, *_WRITES),
)  # fmt: skip
TOPICS: Final = (SNAPSHOTS, CLUSTER_VOLUMES, USAGE, SHARES, REFUSED, TICKS, WATCH, LOOKS, QUOTAS)

#: The topic of tiered storage's default metadata manager (TopicBasedRemoteLogMetadataManagerConfig).
TIERING: Final = "__remote_log_metadata"
#: The topics in which Kafka keeps its own state: those of ``Topic.isInternal`` (org.apache.kafka.common.internals), the
#: log of the controllers, and tiered storage's. By default topic quotas turn back no request to them. Whole names: who
#: may create a topic chooses its name, so two underscores at its beginning would free anybody of topic quotas.
KAFKAS_OWN: Final = (
    "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", TIERING,
)  # fmt: skip

#: The plugins' consumers give a group's name, because librdkafka demands one, and ask for its coordinator; they never
#: join it and commit nothing. The pipeline's consumers have no group at the brokers.
GROUPS: Final = "quotahost-"
