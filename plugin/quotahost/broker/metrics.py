"""This catalogue lists every metric; JMX, Prometheus and the table in the documents use it.

The host and the plugins publish numbers by MBean type and attribute (``quotahost.api.Metrics``); Java publishes others
itself. ``broker.host.exporter`` exports all of them to Prometheus under the names given here, and ``tools/tables.py``
writes them to docs/reference/metrics.md. To add a metric, add an entry, or a row to the bean of its type; a test
compares all names in the code with this list.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: The kinds of metrics; the value is the suffix of the Prometheus name. A gauge goes up and down, a counter only up.
GAUGE, COUNTER = "", "_total"


@dataclass(frozen=True, slots=True)
class Described:
    """One metric."""

    type: str  # the MBean's type
    attribute: str  # the MBean's attribute
    prometheus: str  # the Prometheus name, without ``quotahost_`` and the suffix of its kind
    kind: str  # GAUGE or COUNTER
    help: str  # the meaning
    #: The Prometheus label for the MBean's name; "" if the type has only one MBean. For the type ``CLIENTS`` there are
    #: several labels, which are columns in JMX.
    label: str = ""
    shown_by: str = ""  # the plugins, or the part of the broker, that publish the metric; "" for every broker


def _bean(
    type: str, *, label: str = "", shown_by: str = "", rows: Iterable[tuple[str, str, str, str]]
) -> list[Described]:
    """The metrics of one MBean type; each row is its attribute, Prometheus name, kind and help."""
    return [Described(type, *row, label, shown_by) for row in rows]


#: The type of the metrics for single clients. In JMX these metrics are not gauges, but the columns of one table.
CLIENTS: Final = "Clients"
#: The types of gauges that plugins or the disk monitor publish and remove. If an earlier host was killed, nobody has
#: removed its gauges, so a new host removes all gauges of these types.
OF_PLUGINS: Final = (
    "Brokers", "ClusterQuotas", "ClusterRecord", "Connection", "Cordon", "Load", "LogDirs", "Shares", "Snapshot",
    "Usage",
)  # fmt: skip

_BY_CLIENT: Final = "user, client_id, scope, type"
_DISKS: Final = "a factor source (except `load`), `publish-volumes`"
_TOPICS: Final = (
    "`snapshots`, `cluster-volumes`, `publish-volumes`, `publish-usage` (and `publish-usage-looks`, "
    "`publish-usage-watch`, `publish-usage-quotas`), `cluster-quota` (and `cluster-quota-quotas`)"
)
_CLUSTER: Final = "`cluster-volumes`"
_READERS: Final = "`snapshots`, `cluster-volumes`, `cluster-quota`, `publish-usage`"

# One line for each row is easier to read than ruff's seven lines.
# fmt: off
CATALOGUE: Final = (
    # Java publishes the MBeans from here up to Plugin (StandardGauges); the host's Guard counts for Plugin.
    *_bean("QuotaTable", rows=(
        ("Clients", "clients", GAUGE, "Places taken in the table, by principals and clients."),
        ("ClientsMax", "clients_max", GAUGE, "Places in the table (clients.max)."),
        ("Misses", "misses", COUNTER, "Lookups that found neither the client nor a quota of its whole principal."),
        ("Unadmitted", "unadmitted", COUNTER, "Misses for which the table had no place left."),
        ("Evicted", "evicted", COUNTER, "Clients forgotten after clients.idle of silence."),
        ("Changes", "changes", COUNTER, "Clients whose new answers differed from the ones before."),
        ("Factor", "factor", GAUGE, "The factor in force, 0..1."),
        ("LimitFactor", "limit_factor", GAUGE,
         "The number by which produce limits are multiplied now: it moves to the factor, or the fence holds it."),
        ("State", "state", GAUGE, "0 OPEN, 1 THROTTLE, 2 PAUSE."),
        ("AffectedTopics", "affected_topics", GAUGE,
         "Topics to whose writers alone the factor applies (factor.scope=topics); 0 while it applies to all clients."),
        ("Marked", "marked", GAUGE, "Clients that are marked as writers of such topics."),
        ("Resolved", "resolved", COUNTER, "New clients resolved."),
        ("ResolveTimeP50", "resolve_time_p50_seconds", GAUGE,
         "Time from the first sight of a client to its quota in the table: the median since the start."),
        ("ResolveTimeP99", "resolve_time_p99_seconds", GAUGE,
         "The 99th percentile of the same time; both are rounded up to the next step of a histogram."),
    )),
    *_bean(CLIENTS, label=_BY_CLIENT, shown_by="every broker, for at most `metrics.clients`", rows=(
        ("Rate", "client_rate", GAUGE,
         "What Kafka measures for a client, or for all clients that share its quota, in the unit of the quota type "
         "(bytes/s, percent of a thread, mutations/s): clients that are held back, then the busiest of each type."),
        ("Quota", "client_quota", GAUGE, "Their quota before factor and floor; no value while it is unlimited."),
        ("Limit", "client_limit", GAUGE, "The limit that Kafka gets; no value while it is unlimited."),
        ("DelayMs", "client_delay_seconds", GAUGE,
         "Mean delay of the responses that Kafka has delayed in the last 30 to 60 s."),
    )),
    Described(CLIENTS, "Bound", "client_bound", GAUGE,
        "1 for each client that is held back now, by its `quota`, the `factor`, the `floor`, the `fence` or a "
        "`topic quota`, or that a rule in shadow would hold back (`shadow: RULE`).",
        label=f"{_BY_CLIENT}, by", shown_by="every broker, for at most `metrics.clients`"),
    *_bean("Budget", label="budget", shown_by="`budgets=on`", rows=(
        ("Bytes", "budget_bytes", GAUGE, "How much the topics of a budget of storage may take in the cluster."),
        ("Used", "budget_used_bytes", GAUGE, "How much they take, as this broker knows it."),
        ("Factor", "budget_factor", GAUGE,
         "The factor for clients that write to these topics, 0..1; at 0 their requests are turned back."),
    )),
    *_bean("Fence", rows=(
        ("Installed", "fence_installed", GAUGE,
         "1 if this broker's authorizer is the fence: without it PAUSE only slows producers."),
        ("Closed", "fence_closed", GAUGE,
         "1 while produce requests are turned back, or would be if the factor were not in shadow."),
        ("Rejections", "fence_rejections", COUNTER, "Produce requests turned back."),
        ("Shadowed", "fence_shadowed", COUNTER,
         "Produce requests that the fence would have turned back, had the factor not been in shadow."),
        ("RejectedBytes", "fence_rejected_bytes", COUNTER,
         "Bytes of record batches that were turned back; 0 if this Kafka doesn't report the sizes of requests."),
        ("Mutes", "fence_mutes", COUNTER,
         "How often a connection was muted for a quota window because its client went on sending too much that was "
         "turned back, by the fence or by topic quotas."),
        ("CreationsRefused", "creations_refused", COUNTER,
         "Requests to create topics or partitions that this controller has refused in a PAUSE (pause.creation)."),
        ("CreationsShadowed", "creations_shadowed", COUNTER,
         "Requests to create topics or partitions that this controller would have refused, were the factor enforced."),
    )),
    *_bean("TopicQuotas", rows=(
        ("Threshold", "topic_quotas_threshold_bytes", GAUGE,
         "Bytes/s that this broker is expected to take in; 0 without topic quotas."),
        ("Rate", "topic_quotas_rate_bytes", GAUGE,
         "Bytes/s that this broker takes in, by its one-minute rate; 0 without topic quotas."),
        ("Share", "topic_quotas_share_bytes", GAUGE, "Bytes/s expected of each topic without a threshold of its own."),
        ("Over", "topic_quotas_over", GAUGE, "Topics to which requests are turned back, or would be without shadow."),
        ("Rejections", "topic_quotas_rejections", COUNTER, "Produce requests turned back by topic quotas."),
        ("Shadowed", "topic_quotas_shadowed", COUNTER,
         "Produce requests that topic quotas would have turned back, had the thresholds not been in shadow."),
        ("RejectedBytes", "topic_quotas_rejected_bytes", COUNTER,
         "Bytes of record batches that topic quotas have turned back; 0 if this Kafka doesn't report the sizes of "
         "requests."),
        ("Failed", "failed_appends", COUNTER,
         "Appends that failed for any other reason (Kafka's FailedProduceRequestsPerSec)."),
        ("FailedBytes", "failed_appends_bytes", COUNTER,
         "Bytes of records that were too large (Kafka's BytesRejectedPerSec)."),
    )),
    Described("TurnedBack", "Bytes", "turned_back_bytes", COUNTER,
        "Bytes of record batches for a topic that were turned back, by the fence or by topic quotas; `<several "
        "topics>`: of requests to several topics, `<other topics>`: beyond 1,000 names.",
        label="topic", shown_by="the fence, once it has turned something back"),
    *_bean("Shadow", label="rule", shown_by="every broker, once a rule was in shadow (`shadow`)", rows=(
        ("Over", "shadow_over", GAUGE,
         "Scopes of clients, or topics, that take more now than the rule would let through; the factor, each topic and "
         "each supplier is a rule."),
        ("Unmeasured", "shadow_unmeasured", GAUGE,
         "Scopes whose use is unknown because Kafka measures them together with others."),
        ("Seconds", "shadow_seconds", COUNTER, "For how many seconds each scope or topic was over the rule, added up."),
        ("Bytes", "shadow_bytes", COUNTER,
         "Bytes beyond what the rule would have let through; for quotas, of produce and fetch."),
    )),
    *_bean("Inbox", rows=(
        ("Depth", "inbox_depth", GAUGE, "New clients that wait for the host."),
        ("Overflow", "inbox_overflow", COUNTER,
         "New clients that were not posted because 65,536 of them waited already."),
    )),
    *_bean("Lease", rows=(
        ("Age", "lease_age_seconds", GAUGE, "Time since the host's last sign of life."),
        ("Expired", "fallback", GAUGE, "1 while fallback.action holds because the host is silent."),
        ("FallbackApplied", "fallback_applied", COUNTER,
         "How often fallback.action began to hold because the host was silent."),
    )),
    *_bean("Host", rows=(
        ("Restarts", "host_restarts", COUNTER, "How often the host ended by itself and was started again."),
        ("ConfigRefused", "config_refused", GAUGE,
         "1 while properties that Kafka has stored are not in force here: the host refused or ignored them."),
        ("EventErrors", "event_errors", COUNTER,
         "Events of the broker that the host could not handle, and went on without."),
    )),
    Described("Watch", "Errors", "watch_errors", COUNTER,
        "Failures of the threads that go on without Python; each is tried again."),
    Described("ImpatientClients", "Connections", "impatient_connections", GAUGE,
        "Connections of clients whose library gives up within a minute of a PAUSE by default, by the client software "
        "name (KIP-511); `unknown`: clients that send no name, like kafka-go, kafkajs, aiokafka and "
        "kafka-python 2, and brokers that copy replicas. A listener for brokers alone does not count. As of at most a "
        "minute ago.", label="software"),
    Described("Internals", "Missing", "internals_missing", GAUGE,
        "1 if this Kafka lacks a non-public API that quotahost uses, or has another form of it; the broker's log says "
        "which feature is limited.", label="internal"),
    Described("Plugin", "Errors", "plugin_errors", COUNTER, "Failures of a plugin.", label="plugin"),
    # The host and the plugins publish the following MBeans.
    *_bean("Factor", rows=(
        ("Transitions", "transitions", COUNTER, "Changes between OPEN, THROTTLE and PAUSE."),
        ("LackOfData", "lack_of_data", GAUGE, "1 while lack of data lowers the factor in force (proposal 035)."),
        ("Unknown", "unknown", GAUGE,
         "1 while the state of a broker or volume is unknown or not yet known, even if the factor doesn't change."),
    )),
    # The value of a metric is a number, so the cause is the name of the MBean.
    Described("Cause", "Factor", "cause", GAUGE,
        "The factor, while it is below 1, by its cause: broker and volume, or what is unknown.",
        label="cause", shown_by="a factor source"),
    Described("TypedFactor", "Factor", "typed_factor", GAUGE,
        "The factor of this source for its quota types, 0..1; for each type the smallest of all factors applies.",
        label="source", shown_by="a factor source for single quota types, such as `load`"),
    *_bean("Load", shown_by="`load`", rows=(
        ("HandlersIdle", "load_handlers_idle", GAUGE,
         "The share of the last interval, 0..1, in which this broker's request handlers were idle."),
        ("NetworkIdle", "load_network_idle", GAUGE, "The same for its network threads."),
        ("Queued", "load_queued_requests", GAUGE, "Requests that wait for a handler."),
    )),
    *_bean("Volume", label="volume", shown_by=_DISKS, rows=(
        ("Capacity", "volume_capacity_bytes", GAUGE, "The size of a volume of this broker."),
        ("Consumed", "volume_consumed_bytes", GAUGE, "The bytes of it that are used."),
    )),
    Described("VolumeLimits", "Factor", "volume_factor", GAUGE, "The policy's factor for a volume of this broker.",
        label="volume", shown_by="a policy"),
    *_bean("VolumeLimits", label="volume", shown_by="`limits`, `setpoint`, a policy that can be asked", rows=(
        ("Soft", "volume_soft_limit_bytes", GAUGE,
         "The bytes used of that volume above which the policy may lower the factor (proposal 035, getSoftLimit)."),
        ("Hard", "volume_hard_limit_bytes", GAUGE,
         "The bytes used of that volume at which the factor is 0 (proposal 035, getHardLimit)."),
        ("Breached", "volume_limit_breached", GAUGE,
         "Which limit that volume breaches: 0 neither, 1 the soft one, 2 the hard one (proposal 035)."),
    )),
    Described("LogDirs", "Offline", "log_dirs_offline", GAUGE,
        "Log directories of this broker that are offline or can't be read.", shown_by=_DISKS),
    Described("Cordon", "LogDirs", "cordoned_log_dirs", GAUGE,
        "Log directories of this broker that are cordoned by the task.", shown_by="`cordon`"),
    Described("Connection", "Connected", "connected", GAUGE,
        "1 while the plugin's own client reaches its topic in the cluster (proposal 035); 0 also before it exists.",
        label="plugin", shown_by=_TOPICS),
    Described("Publication", "Errors", "publication_errors", COUNTER,
        "Snapshots, and records of usage, that could not be published (proposal 035).",
        shown_by="`publish-volumes`, `publish-usage`"),
    Described("Usage", "Clients", "usage_clients", GAUGE,
        "Clients with a cluster-wide quota whose usage this broker publishes.", shown_by="`publish-usage`"),
    *_bean("ClusterQuotas", shown_by="`cluster-quota`, `publish-usage`", rows=(
        ("Entities", "cluster_quotas", GAUGE, "Entities with a cluster-wide quota, as this broker has read them."),
        ("Read", "cluster_quotas_read", GAUGE,
         "1 once all cluster-wide quotas have been read; until then no client has one on this broker."),
    )),
    *_bean("Shares", shown_by="`cluster-quota`", rows=(
        ("Age", "shares_age_seconds", GAUGE, "Age of this broker's latest shares of the cluster-wide quotas."),
        ("Stale", "shares_stale", GAUGE,
         "1 while no shares are newer than validity: then each broker gives an equal part."),
        ("Clients", "shares_clients", GAUGE, "Clients that have such a share."),
        ("Brokers", "shares_brokers", GAUGE,
         "Registered brokers, among which a quota is divided where there is no share."),
    )),
    Described("Snapshot", "Age", "snapshot_age_seconds", GAUGE,
        "Age of another broker's latest snapshot.", label="broker", shown_by="`snapshots`"),
    *_bean("Brokers", shown_by="`snapshots`, `cluster-volumes`", rows=(
        ("Missing", "brokers_missing", GAUGE, "Brokers in service without a snapshot."),
        ("Stale", "brokers_stale", GAUGE, "Brokers in service whose latest snapshot is older than validity."),
        ("LastKnown", "brokers_last_known", GAUGE,
         "Brokers whose last known volumes count because they are fenced or have just come back."),
    )),
    Described("Refused", "Records", "refused_records", COUNTER,
        "Records of a topic that a reader refused, by reason; `late`: a newer one was read before; `other-pipeline`: "
        "two pipelines run; `behind`: the pipeline is behind; `ahead`: its run begins in the future; `stranger`: the "
        "broker isn't registered; `cluster`: it is of another cluster; `crowd`: more than 16 watchers, so the one not "
        "heard for the longest time is dropped.",
        label="reason", shown_by=_READERS),
    *_bean("ClusterRecord", shown_by=_CLUSTER, rows=(
        ("Age", "cluster_record_age_seconds", GAUGE,
         "Time since the latest record of this cluster's volumes was computed."),
        ("Run", "cluster_record_run", GAUGE,
         "When the pipeline that published that record was launched, in ms since the epoch."),
        ("Sequence", "cluster_record_sequence", GAUGE, "The number of that record in its run."),
    )),
    *_bean("FactorSource", label="source", shown_by=_CLUSTER, rows=(
        ("Answers", "factor_source_answers", GAUGE,
         "1 for the factor source that answers now, 0 for the other: the standby answers while no records come."),
        ("Switches", "factor_source_switches", COUNTER,
         "How often a factor source began to answer in place of the other."),
    )),
)
# fmt: on
