"""Every metric, in one catalogue: the README's table, JMX and Prometheus follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """A gauge goes up and down, a counter only up; the value ends the Prometheus name."""

    GAUGE = ""
    COUNTER = "_total"


@dataclass(frozen=True, slots=True)
class Described:
    """One metric: MBean type and attribute, Prometheus name without ``quotahost_``, what it tells.

    ``label`` is Prometheus' name for what the MBean's name says, "" where there is one bean of the type;
    ``shown_by`` names the plugins that show it, "" for every broker.
    """

    type: str
    attribute: str
    prometheus: str
    kind: Kind
    help: str
    label: str = ""
    shown_by: str = ""


_LOCAL: Final = "`local`, `snapshots`, `cluster-volumes`, `publish-volumes`"
_TOPIC: Final = "`snapshots`, `cluster-volumes`, `publish-volumes`, `publish-usage`, `cluster-quota`"
_CLUSTER: Final = "`cluster-volumes`"
_BOTH: Final = "`snapshots`, `cluster-volumes`"

CATALOGUE: Final = (
    Described("QuotaTable", "Clients", "clients", Kind.GAUGE, "Clients that have a place in the table."),
    Described("QuotaTable", "ClientsMax", "clients_max", Kind.GAUGE, "How many can have one (clients.max)."),
    Described(
        "QuotaTable",
        "Misses",
        "misses",
        Kind.COUNTER,
        "Lookups that didn't find their client and got the newcomers' answer.",
    ),
    Described(
        "QuotaTable",
        "Unadmitted",
        "unadmitted",
        Kind.COUNTER,
        "Misses for which the table had no place left.",
    ),
    Described(
        "QuotaTable", "Evicted", "evicted", Kind.COUNTER, "Clients forgotten after clients.idle of silence."
    ),
    Described(
        "QuotaTable", "Changes", "changes", Kind.COUNTER, "Clients whose answers differed from those before."
    ),
    Described("QuotaTable", "Factor", "factor", Kind.GAUGE, "The factor in force, 0..1."),
    Described(
        "QuotaTable",
        "LimitFactor",
        "limit_factor",
        Kind.GAUGE,
        "What the limits are multiplied by: on its way down to the factor (max.mute), or held by the fence.",
    ),
    Described("QuotaTable", "State", "state", Kind.GAUGE, "0 OPEN, 1 THROTTLE, 2 PAUSE."),
    Described("QuotaTable", "Resolved", "resolved", Kind.COUNTER, "New clients resolved."),
    Described(
        "QuotaTable",
        "ResolveTimeP50",
        "resolve_time_p50_seconds",
        Kind.GAUGE,
        "First sight of a client to its quota in the table: median since the start.",
    ),
    Described(
        "QuotaTable",
        "ResolveTimeP99",
        "resolve_time_p99_seconds",
        Kind.GAUGE,
        "The same, 99th percentile; both to the next step of a histogram.",
    ),
    Described(
        "Fence",
        "Installed",
        "fence_installed",
        Kind.GAUGE,
        "1 if this broker's authorizer is the fence: without it PAUSE only slows producers.",
    ),
    Described(
        "Fence",
        "Closed",
        "fence_closed",
        Kind.GAUGE,
        "1 while produce requests are turned back; with mode=shadow, while they would be.",
    ),
    Described("Fence", "Rejections", "fence_rejections", Kind.COUNTER, "Produce requests turned back."),
    Described(
        "Fence",
        "Shadowed",
        "fence_shadowed",
        Kind.COUNTER,
        "Produce requests that it would have turned back, but for mode=shadow.",
    ),
    Described(
        "TopicQuotas",
        "Threshold",
        "topic_quotas_threshold_bytes",
        Kind.GAUGE,
        "Bytes/s that this broker is expected to take in; 0 without topic quotas.",
    ),
    Described(
        "TopicQuotas",
        "Rate",
        "topic_quotas_rate_bytes",
        Kind.GAUGE,
        "Bytes/s that it takes in, by Kafka's one-minute rate carried forward; 0 without topic quotas.",
    ),
    Described(
        "TopicQuotas",
        "Share",
        "topic_quotas_share_bytes",
        Kind.GAUGE,
        "Bytes/s expected of each topic without a threshold of its own.",
    ),
    Described(
        "TopicQuotas", "Over", "topic_quotas_over", Kind.GAUGE, "Topics that producers are turned back from."
    ),
    Described(
        "TopicQuotas",
        "Rejections",
        "topic_quotas_rejections",
        Kind.COUNTER,
        "Produce requests turned back by topic quotas.",
    ),
    Described(
        "TopicQuotas",
        "Shadowed",
        "topic_quotas_shadowed",
        Kind.COUNTER,
        "Produce requests that they would have turned back, but for mode=shadow.",
    ),
    Described(
        "TopicQuotas",
        "Failed",
        "failed_appends",
        Kind.COUNTER,
        "Appends that failed for any other reason (Kafka's FailedProduceRequestsPerSec).",
    ),
    Described(
        "TopicQuotas",
        "FailedBytes",
        "failed_appends_bytes",
        Kind.COUNTER,
        "Bytes of records that were too large (Kafka's BytesRejectedPerSec).",
    ),
    Described("Inbox", "Depth", "inbox_depth", Kind.GAUGE, "New clients that wait for the host."),
    Described(
        "Inbox",
        "Overflow",
        "inbox_overflow",
        Kind.COUNTER,
        "New clients not posted since inbox.max waited already.",
    ),
    Described("Lease", "Age", "lease_age_seconds", Kind.GAUGE, "Time since the host's last sign of life."),
    Described(
        "Lease",
        "Expired",
        "fallback",
        Kind.GAUGE,
        "1 while fallback.action holds because the host is silent.",
    ),
    Described("Lease", "FallbackApplied", "fallback_applied", Kind.COUNTER, "How often that has begun."),
    Described(
        "Host",
        "Restarts",
        "host_restarts",
        Kind.COUNTER,
        "How often the host ended by itself and was started again.",
    ),
    Described("Plugin", "Errors", "plugin_errors", Kind.COUNTER, "Failures of a plugin.", "plugin"),
    Described(
        "Factor",
        "Transitions",
        "transitions",
        Kind.COUNTER,
        "Changes between OPEN, THROTTLE and PAUSE.",
    ),
    Described(
        "Factor",
        "LackOfData",
        "lack_of_data",
        Kind.GAUGE,
        "1 while fallback.action holds because a broker or volume is unknown (proposal 035).",
    ),
    Described(
        "Cause",
        "Factor",
        "cause",
        Kind.GAUGE,
        "The factor, while it is below 1, by what causes it: broker and volume, or what is unknown.",
        "cause",
        "a factor source",
    ),
    Described(
        "Volume",
        "Capacity",
        "volume_capacity_bytes",
        Kind.GAUGE,
        "A volume of this broker.",
        "volume",
        _LOCAL,
    ),
    Described(
        "Volume", "Consumed", "volume_consumed_bytes", Kind.GAUGE, "What is used of it.", "volume", _LOCAL
    ),
    Described(
        "LogDirs",
        "Offline",
        "log_dirs_offline",
        Kind.GAUGE,
        "Log directories of this broker that are offline or can't be read.",
        shown_by=_LOCAL,
    ),
    Described(
        "Connection",
        "Connected",
        "connected",
        Kind.GAUGE,
        "1 while the plugin's own client reaches the cluster (proposal 035).",
        "plugin",
        _TOPIC,
    ),
    Described(
        "Publication",
        "Errors",
        "publication_errors",
        Kind.COUNTER,
        "Snapshots, and records of usage, that could not be published (proposal 035).",
        shown_by="`publish-volumes`, `publish-usage`",
    ),
    Described(
        "Usage",
        "Clients",
        "usage_clients",
        Kind.GAUGE,
        "Clients with a cluster-wide quota whose use this broker tells the pipeline.",
        shown_by="`publish-usage`",
    ),
    Described(
        "Shares",
        "Age",
        "shares_age_seconds",
        Kind.GAUGE,
        "How old this broker's newest shares of the cluster-wide quotas are.",
        shown_by="`cluster-quota`",
    ),
    Described(
        "Shares",
        "Stale",
        "shares_stale",
        Kind.GAUGE,
        "1 while there are none that are newer than validity: each broker gives an equal part.",
        shown_by="`cluster-quota`",
    ),
    Described(
        "Shares",
        "Clients",
        "shares_clients",
        Kind.GAUGE,
        "Clients that have such a share.",
        shown_by="`cluster-quota`",
    ),
    Described(
        "Shares",
        "Brokers",
        "shares_brokers",
        Kind.GAUGE,
        "Registered brokers, among which a quota is divided where there is no share.",
        shown_by="`cluster-quota`",
    ),
    Described(
        "Snapshot",
        "Age",
        "snapshot_age_seconds",
        Kind.GAUGE,
        "How old another broker's newest snapshot is.",
        "broker",
        "`snapshots`",
    ),
    Described(
        "Brokers",
        "Missing",
        "brokers_missing",
        Kind.GAUGE,
        "Registered brokers without a snapshot.",
        shown_by=_BOTH,
    ),
    Described(
        "Brokers",
        "Stale",
        "brokers_stale",
        Kind.GAUGE,
        "Registered brokers whose newest snapshot is older than validity.",
        shown_by=_BOTH,
    ),
    Described(
        "Refused",
        "Records",
        "refused_records",
        Kind.COUNTER,
        "Records of a topic that were not taken, by the reason; `other-pipeline`: two pipelines run; `behind`: "
        "the pipeline is.",
        "reason",
        "`snapshots`, `cluster-volumes`, `cluster-quota`",
    ),
    Described(
        "ClusterRecord",
        "Age",
        "cluster_record_age_seconds",
        Kind.GAUGE,
        "Time since the newest record of this cluster's volumes.",
        shown_by=_CLUSTER,
    ),
    Described(
        "ClusterRecord",
        "Run",
        "cluster_record_run",
        Kind.GAUGE,
        "When the pipeline that made it was launched, in ms since the epoch.",
        shown_by=_CLUSTER,
    ),
    Described(
        "ClusterRecord",
        "Sequence",
        "cluster_record_sequence",
        Kind.GAUGE,
        "Its number in that run.",
        shown_by=_CLUSTER,
    ),
    Described(
        "FactorSource",
        "Answers",
        "factor_source_answers",
        Kind.GAUGE,
        "1 for the one that answers now, 0 for the other: the second one answers while no records come.",
        "source",
        _CLUSTER,
    ),
    Described(
        "FactorSource",
        "Switches",
        "factor_source_switches",
        Kind.COUNTER,
        "How often it has begun to answer in the place of the other.",
        "source",
        _CLUSTER,
    ),
    Described(
        "FactorSource",
        "Failures",
        "factor_source_failures",
        Kind.COUNTER,
        "How often the second one could not be built or read.",
        "source",
        _CLUSTER,
    ),
)


def table() -> str:
    """The catalogue as a Markdown table."""
    lines = ["| JMX (`quotahost:type=...`) | Prometheus | meaning | shown by |", "|---|---|---|---|"]
    for m in CATALOGUE:
        bean = f"`{m.type}{f',name={m.label.upper()}' if m.label else ''}`, `{m.attribute}`"
        name = f"`quotahost_{m.prometheus}{m.kind.value}`" + (f" by `{m.label}`" if m.label else "")
        lines.append(f"| {bean} | {name} | {m.help} | {m.shown_by or 'every broker'} |")
    return "\n".join(lines)
