"""quotahost's topics: what each topic carries, which rights each role needs, and how each topic is configured.

A client that may write to one of these topics can change other clients' quotas, or stop all producers of a cluster. So
each topic is declared once, here, for docs/security.md, for ``quotahost doctor``, and for brokers
(:mod:`quotahost.kafka.admin`) and the pipeline, which create missing topics.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

#: The beginning of all names, unless ``topics.prefix`` sets another one.
PREFIX: Final = "__quotahost_"
#: This overrides the brokers' default: if two of three replicas are down, a record on one broker is better than none.
WRITABLE: Final = {"min.insync.replicas": "1"}
COMPACTED: Final = WRITABLE | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",  # only closed segments are compacted
    "segment.bytes": "16777216",
    "message.timestamp.type": "LogAppendTime",  # Kafka's one clock, in place of the writers' clocks
}

# ---- rights ----------------------------------------------------------------------------------------

#: An operation as Kafka's ACLs name it. Read and Write include Describe (``StandardAuthorizer``).
Operation = Literal["Read", "Write", "Create", "Describe", "DescribeConfigs"]


class AclRole(Enum):
    """The roles that use the topics, each with a principal of its own. No other client needs any right."""

    PLUGINS = "brokers"  # the Kafka client of the plugins and tasks inside the brokers (``kafka.*``)
    PIPELINE = "pipeline"  # the Spark pipeline (``--kafka-config``)
    WATCHERS = "watchers"  # the users of ``quotahost top --bootstrap`` (``--client-config``)
    OPERATORS = "operators"  # the users of ``quotahost quotas`` (``--client-config``)


_READS: Final[tuple[Operation, ...]] = ("Read",)
_MAKES: Final[tuple[Operation, ...]] = ("Create", "DescribeConfigs")
_WRITES: Final[tuple[Operation, ...]] = ("Write", *_MAKES)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic."""

    name: str  # the default name
    carries: str  # what its records are, for a table
    danger: str  # what an attacker with the right to write does
    brokers: tuple[Operation, ...]  # the operations that the brokers' plugins need; the other roles' fields follow
    pipeline: tuple[Operation, ...] = ()
    watchers: tuple[Operation, ...] = ()
    operators: tuple[Operation, ...] = ()

    def named(self, prefix: str) -> str:
        return prefix + self.name.removeprefix(PREFIX)

    def operations(self, role: AclRole) -> tuple[Operation, ...]:
        return getattr(self, role.value)  # type: ignore[no-any-return]  # each role's value is the name of its field


SNAPSHOTS: Final = Topic(
    "__quotahost_snapshots",
    "each broker's volumes, by `publish-volumes`",
    "stops all producers with an invented full volume, or hides a full one",
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
    "moves other clients' cluster-wide quotas to one broker",
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
    "ticks, which let time pass in the pipeline while no record arrives",
    "keeps the pipeline busy",
    (), (*_READS, *_WRITES),
)  # fmt: skip
WATCH: Final = Topic(
    "__quotahost_watch",
    "requests for looks, by `quotahost top`",
    "makes brokers publish who uses what, every two seconds, and list the files of a volume",
    (*_READS, *_MAKES), watchers=("Write",),
)  # fmt: skip
LOOKS: Final = Topic(
    "__quotahost_looks",
    "who uses what, and what fills the volumes that are opened, by `publish-usage` while somebody watches",
    "shows invented clients to watchers",
    _WRITES, watchers=_READS,
)  # fmt: skip
QUOTAS: Final = Topic(
    "__quotahost_quotas",
    "the cluster-wide client quotas and the budgets of storage, by `quotahost quotas apply`",
    "sets or removes every cluster-wide quota and every budget",
    (*_READS, *_MAKES), operators=(*_READS, *_WRITES),
)  # fmt: skip
TOPICS: Final = (SNAPSHOTS, CLUSTER_VOLUMES, USAGE, SHARES, REFUSED, TICKS, WATCH, LOOKS, QUOTAS)


def config_of(name: str) -> dict[str, str]:
    """Return the configuration of a compacted topic; ``name`` may begin with any prefix."""
    # The history reads the usage every five minutes. If Kafka compacted it before, a bill would lack bytes.
    return COMPACTED | ({"min.compaction.lag.ms": "600000"} if name.endswith(USAGE.named("")) else {})


#: The topic of tiered storage's default metadata manager (TopicBasedRemoteLogMetadataManagerConfig).
TIERING: Final = "__remote_log_metadata"
#: The topics in which Kafka keeps its own state: those of ``Topic.isInternal`` (org.apache.kafka.common.internals), the
#: log of the controllers, and tiered storage's. Topic quotas turn back no request to these topics by default. They are
#: whole names: a client chooses the names of its topics, so a rule for two underscores would spare any topic.
KAFKAS_OWN: Final = (
    "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", TIERING,
)  # fmt: skip

#: The beginning of the plugins' groups. librdkafka demands a group's name and asks for its coordinator, but the
#: plugins' consumers never join the group and commit nothing. The pipeline's consumers have no group at the brokers.
GROUPS: Final = "quotahost-"
