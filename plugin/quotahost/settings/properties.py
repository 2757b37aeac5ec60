"""The broker's properties, each declared once: name, type, default, whether a change is live, and meaning.

Some defaults depend on other properties, for example that of ``factor.source``. docs/reference/properties.md has the
same order, and is made from this file (``make tables``). ``settings.storage`` has the limits of volumes. To add a
property, add a field to one of these models, and nothing else.
"""

from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from quotahost.model import Quota, QuotaType, State
from quotahost.model.limits import exact
from quotahost.records.topics import KAFKAS_OWN, PREFIX, TOPICS, Topic
from quotahost.settings import types
from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.storage import StorageSettings
from quotahost.units import BytesLimit, BytesPerSecond, Count, Duration, MutationsLimit, PercentLimit
from quotahost.units.show import show_number

#: Both sources need the snapshots of all brokers; for `cluster-volumes`, the pipeline sums the snapshots up.
SNAPSHOT_READERS: Final = ("snapshots", "cluster-volumes")
_TOTAL: Final = "topics.total.bytes.in.per.sec.threshold"


def rates_of(given: "StaticSettings | NewcomerSettings") -> dict[QuotaType, float | None]:
    """The rates by quota type, from the fields with the types' names; None means unlimited or not set."""
    return {quota_type: getattr(given, quota_type.lower()) for quota_type in QuotaType}


# ---- groups of properties ----


class StaticSettings(Frozen):
    """The rates of the supplier ``static``, under Strimzi's names, and the limits of this broker's volumes."""

    produce: BytesLimit = declare("static.produce")
    """Produce rate that the supplier `static` gives."""
    fetch: BytesLimit = declare("static.fetch")
    """Fetch rate that the supplier `static` gives."""
    request: PercentLimit = declare("static.request")
    """Request rate that the supplier `static` gives, in percent of one thread's time."""
    controller_mutation: MutationsLimit = declare("static.controller-mutation")
    """Rate at which the supplier `static` lets partitions be created and deleted."""
    scope: types.Sharing = declare("static.scope", default="broker")
    """Which clients share one rate of `static`. `broker`: all clients of a broker, as with Strimzi's plugin. Else each
    client (principal and client-id), each user or each client-id has a rate of its own."""
    storage: StorageSettings = Field(default_factory=StorageSettings)

    # Cached: the host checks each Quota object only once, and 20,000 clients may be new at the same time.
    @cached_property
    def quotas(self) -> dict[QuotaType, Quota]:
        scope = types.SCOPES[self.scope]
        return {kind: Quota(rate, scope) for kind, rate in rates_of(self).items() if rate is not None}


class NewcomerSettings(Frozen):
    """The rates that newcomers share, that is, all clients that are not resolved yet."""

    # All newcomers share one quota: if each had its own, a client could invent names to get more (docs/adr/0003).
    produce: BytesLimit = declare("newcomers.produce", default="100M")
    """Produce rate shared by all unknown principals. Each known principal's unknown client-ids share another such
    rate."""
    fetch: BytesLimit = declare("newcomers.fetch", default="100M")
    """Fetch rate, shared in the same way."""
    request: PercentLimit = declare("newcomers.request", default="200")
    """Request rate, shared in the same way, in percent of one thread's time."""
    controller_mutation: MutationsLimit = declare("newcomers.controller-mutation", default="100")
    """Rate of partitions created and deleted, shared in the same way."""


class TopicSettings(Frozen):
    """The rates that a broker and its topics are expected to take in, as in "Broker side quota (V1)"."""

    total: BytesLimit = declare(_TOTAL)
    """The byte rate that this broker is expected to take in. While it takes in more, requests to topics above their
    thresholds are turned back. Needs the fence. `unlimited`: no topic quotas."""
    thresholds: types.Thresholds = declare("topics.bytes.in.per.sec.threshold", default="")
    """The byte rates that single topics are expected to take in: `important:50M,other:5M`, together at most the total.
    All other topics share the rest equally."""
    reject_error: Annotated[
        Literal["NOT_ENOUGH_REPLICAS", "THROTTLING_QUOTA_EXCEEDED", "POLICY_VIOLATION"], types.ONE_OF
    ] = declare("topics.reject.error", default="NOT_ENOUGH_REPLICAS")
    """The error for a request that is turned back. NOT_ENOUGH_REPLICAS: the producer tries again. POLICY_VIOLATION: it
    drops the records, as "Broker side quota (V1)" wants. THROTTLING_QUOTA_EXCEEDED: Kafka's own producer tries again,
    librdkafka drops."""
    spared: types.Topics = declare("topics.spared", default=",".join(KAFKAS_OWN))
    """Topics without a threshold, to which no request is ever turned back: by default Kafka's own. Write whole names.
    quotahost's own are spared in any case."""

    @property
    def wanted(self) -> float:
        """The thresholds together, in bytes/s."""
        return float(sum(exact(rate) for _, rate in self.thresholds))  # exact(): 0.1Ki three times is 0.3Ki

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.thresholds and self.total is None:
            raise ValueError(f"topics have thresholds, but the broker has none; set {_TOTAL}")
        if self.total is not None and self.wanted > self.total:
            raise ValueError(
                f"the topics' thresholds are {show_number(self.wanted)} bytes/s together, above the "
                f"{show_number(self.total)} of {_TOTAL}; lower them, or raise the total"
            )
        return self


# ---- the defaults that depend on other properties ----

# ``fields`` has the properties above the one with the default, except those that were refused.


def _sources(fields: dict[str, Any]) -> str:
    """The source ``local`` if a limit is set: it is the least that protects this broker's volumes."""
    static = fields.get("static")
    return "local" if static and static.storage.any_limit else ""


def _of_volumes(fields: dict[str, Any]) -> str | None:
    return types.of_volumes(fields.get("factor_sources", ()))


def _policy(fields: dict[str, Any]) -> str | None:
    return "limits" if _of_volumes(fields) else None


def _tasks(fields: dict[str, Any]) -> str:
    """The tasks that publish what the other brokers, or the pipeline, need from this broker."""
    volumes = ["publish-volumes"] * (_of_volumes(fields) in SNAPSHOT_READERS)
    return ",".join(volumes + ["publish-usage"] * ("cluster-quota" in fields.get("supplier", ())))


def _fallback(fields: dict[str, Any]) -> str:
    """PAUSE only if a factor source watches disks: if none does, no state of disks can be unknown."""
    return State.PAUSE if _of_volumes(fields) else State.OPEN


class Properties(Frozen):
    """All properties of a broker. A default that depends on another property must come after this property."""

    # ---- the suppliers, the factor source, the policy and the tasks, by the names of their entry points ----

    callback_class: str = declare("class", default="org.quotahost.PythonQuotaCallback", live=False)
    """The class that Kafka loads; a property of Kafka's own."""
    python_executable: types.Text = declare("python.executable", default="python3", live=False)
    """Interpreter of the environment in which `quotahost` and your plugins are installed. Give the full path."""
    python_process: Literal["broker", "child"] = declare("python.process", default="broker", live=False)
    """Where Python runs. `broker`: in the broker's own process. `child`: in a child process, which can crash without
    ending the broker, and which can be replaced without a restart of the broker."""
    python_generation: str = declare("python.generation", default="")
    """Any text. With `python.process=child` a new value starts a new Python from `python.executable`. The new Python
    replaces the old one once it has built its plugins. If it can't build them, the change is refused."""
    supplier: types.Suppliers = declare("supplier", default="client-quotas,static")
    """Suppliers in the order in which they are asked. The first answer is the client's quota."""
    supplier_combine: Annotated[Literal["first", "most-constraining"], types.ONE_OF] = declare(
        "supplier.combine", default="first"
    )
    """Which quota counts if several suppliers give one. `first`: for each quota type, that of the first supplier.
    `most-constraining`: the smallest rate of all, so that a supplier can only lower what another one gives; unlimited
    is the largest."""
    static: StaticSettings = Field(default_factory=StaticSettings)
    factor_sources: types.Names = declare(
        "factor.source", default=_sources, words="local if a static.storage limit is set, else empty"
    )
    """The plugin that reports how full the disks are. Sources for single quota types, such as `load`, follow it. While
    no records reach `cluster-volumes`, `snapshots` answers in its place."""
    factor_interval: Duration = declare("factor.interval", default="250ms")
    """How often the factor sources are read: a new state is noticed after this time at most. Keep it well below
    `validity`."""
    policy: types.Name = declare("policy", default=_policy, words="limits with a factor.source for disks, else empty")
    """The plugin that computes a factor from each volume that the factor source reports."""
    tasks: types.Names = declare(
        "tasks",
        default=_tasks,
        words="publish-volumes where factor.source reads snapshots, publish-usage with the supplier cluster-quota",
    )
    """Periodic tasks that the broker runs."""

    @property
    def factor_source(self) -> str | None:
        return types.of_volumes(self.factor_sources)

    # ---- the records that brokers and the pipeline exchange: their topics, and how often they are published ----

    volumes_period: Duration = declare("volumes.period", default="250ms")
    """How often this broker reads how full its file stores are. Raise it where a file store is on a network and each
    look is a request to a server."""
    snapshots_period: Duration = declare("snapshots.period", default="5s")
    """How often a broker publishes its snapshot at least. A change of a thousandth of a volume's capacity, or a
    crossed limit, is published at once."""
    topics_prefix: types.TopicPrefix = declare("topics.prefix", default=PREFIX, live=False)
    """Beginning of the names of quotahost's compacted topics: `snapshots`, `cluster_volumes`, `usage`, `shares`,
    `quotas`, `watch` and `looks` follow it. Set another one if several Kafka clusters are mirrored into one, or if your
    names follow a rule; then give the pipeline the same by `--topics-prefix`, and name the topics to the commands.
    Brokers with different prefixes don't see each other's disks."""
    fenced_brokers: Annotated[Literal["last-known", "unknown"], types.ONE_OF] = declare(
        "fenced.brokers", default="last-known"
    )
    """What applies to a fenced broker (registered, but out of service). `last-known`: its last known volumes, until it
    is back or unregistered. `unknown`: as proposal 035 says; after `validity` the state is unknown and
    `fallback.action` applies, so that one machine that is down stops all producers."""

    def named(self, topic: Topic) -> str:
        """The name of a topic with ``topics.prefix``."""
        return topic.named(self.topics_prefix)

    @property
    def record_topics(self) -> tuple[str, ...]:
        """The names of all quotahost topics in this cluster, including those that only the pipeline uses."""
        return tuple(map(self.named, TOPICS))

    # ---- exempt principals, newcomers, the topics that clients write to, and the tables in the broker ----

    listed_principals: types.Principals = declare("static.excluded.principal.name.list", default="")
    """Principals that are never throttled, whichever supplier answers: `User:a;User:CN=b,OU=c`, separated by `;`
    because a distinguished name contains commas."""
    # KafkaClusterSpec.FORBIDDEN_PREFIXES of Strimzi's operator contains the name above.
    exempt_principals: types.Principals = declare("exempt.principals", default="")
    """More such principals, for brokers that Strimzi's operator runs: the operator drops
    `static.excluded.principal.name.list` from `spec.kafka.config`, and keeps this property."""
    newcomers: NewcomerSettings = Field(default_factory=NewcomerSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    clients_max: Count = declare("clients.max", default="50000", live=False)
    """How many places the table of clients has. A principal takes one place. So does each of its clients beyond the
    first whose quota depends on the client-id. The last tenth is for principals alone."""
    clients_idle: Duration = declare("clients.idle", default="1h", live=False)
    """How long a client must be silent before another may have its place. Kafka keeps a client's sensors for an hour:
    with less than that, a throttled client could get rid of its quota."""

    @property
    def excluded_principals(self) -> tuple[str, ...]:
        return *self.listed_principals, *self.exempt_principals

    @property
    def spared_topics(self) -> tuple[str, ...]:
        """The topics that are never turned back, and quotahost's own, whose records brokers would otherwise miss."""
        return *self.topics.spared, *self.record_topics

    # ---- the fallback and the times until it applies, the bounds of a factor's effect, the fence, rules in shadow ----

    fallback_action: types.Action = declare(
        "fallback.action", default=_fallback, words="PAUSE with a factor.source for disks, else OPEN"
    )
    """What applies while the state of the disks is unknown or the host does not answer. With OPEN, the quotas that the
    broker remembers stay in force."""
    validity: types.Validity = declare("validity", default="1m")
    """How old the host's last sign of life, and the latest state of the disks, may be before `fallback.action`
    applies. At least `1s`."""
    startup_grace: Duration = declare("startup.grace", default="1m")
    """How long after its start a broker waits for the first state of the disks."""
    # At 35K, a batch of 1 MiB (Kafka's default of message.max.bytes) delays its producer for 30 s, which is
    # the default of max.mute. Strimzi's limit of 1 byte/s muted producers for hours.
    floor_bytes: BytesPerSecond = declare("floor.bytes", default="35K")
    """The smallest byte rate to which a factor lowers a quota. Below it Kafka's throttle times grow to hours, which no
    later change takes back. A quota that is itself lower stays as it was set."""
    max_mute: Duration = declare("max.mute", default="30s")
    """The longest throttle time that one step of the factor downwards may cause. quotahost reaches a lower factor in
    several steps, one each quota window."""
    pause_resume_free_share: types.Part = declare("pause.resume.free-share", default="0.1")
    """How much of the way from a volume's hard limit back to its soft one must be free before its PAUSE ends, 0.0 to
    1.0. At 0.0 a PAUSE ends with the first byte below the hard limit. For a volume without a soft limit the way is a
    twentieth of the hard one."""
    factor_quota_types: types.QuotaTypes = declare("factor.quota.types", default="PRODUCE")
    """Quota types that the factor multiplies. With CONTROLLER_MUTATION, a client that owes tokens waits longer, even
    beyond `max.mute`; this also delays a client that deletes topics to free a disk."""
    factor_scope: Annotated[Literal["cluster", "topics"], types.ONE_OF] = declare("factor.scope", default="cluster")
    """Which clients a factor of volumes applies to. `cluster`: all clients, as proposal 035 says. `topics`: only
    clients that write to topics with a replica on a volume above its soft limit. `topics` needs the fence, which sees
    who writes where. Without the fence, and where a source doesn't know the topics, all clients are slowed."""
    budgets: Annotated[Literal["off", "on"], types.ONE_OF] = declare("budgets", default="off")
    """Whether this broker slows clients that write to topics that use up a budget of storage (`quotahost quotas
    apply`), and turns their requests back. Needs the fence and `factor.source=snapshots` or `cluster-volumes`. The
    plugins' client then reads the topic of the cluster-wide quotas."""
    budget_soft_share: types.Part = declare("budget.soft.share", default="0.9")
    """The part of a budget's bytes, 0.0 to 1.0, from which clients that write to its topics are slowed. When the whole
    budget is used, their requests are turned back."""
    # With the default, existing ACLs stay in force. With `none`, everybody may do everything.
    fence_authorizer: types.Text = declare(
        "fence.authorizer", default="org.apache.kafka.metadata.authorizer.StandardAuthorizer", live=False
    )
    """The authorizer behind `authorizer.class.name=org.quotahost.QuotaFence`: the class that the cluster had, or `none`
    for a cluster without an authorizer. The fence itself reads this property."""
    pause_creation: Annotated[Literal["refuse", "allow"], types.ONE_OF] = declare("pause.creation", default="refuse")
    """Whether topics and partitions may be created in a PAUSE. `refuse`: while a volume is known to be at its hard
    limit, all clients except those that pass the fence get POLICY_VIOLATION. This needs the fence as the controllers'
    authorizer, and controllers that know the factor: a node that is broker and controller knows it, any other one
    needs `static.kafka.admin.bootstrap.servers`."""
    shadow: types.Shadowed = declare("shadow", default="")
    """Rules that quotahost computes and shows and doesn't enforce: `all` of them, or single ones, while it enforces the
    others: `supplier.NAME` (the suppliers behind it answer instead), `factor` (with the fence), `topics` (all
    thresholds of topics) or `topic.NAME` (the threshold of one)."""

    # ---- the metrics' port, and the three families of properties whose names others define ----

    metrics_endpoint: types.Endpoint = declare("metrics.port", live=False)
    """Port of the Prometheus endpoint, which listens on 127.0.0.1; or `ADDRESS:PORT`, such as `0.0.0.0:9404`."""
    metrics_clients: types.Few = declare("metrics.clients", default="200", live=False)
    """How many clients, or scopes that clients share, the metrics show with rate, quota, delay and what limits them:
    those that are held back, then the busiest. Prometheus keeps a series for each. `0` shows none."""
    kafka: dict[str, SecretStr] = declare(
        "kafka.*", default=dict, words="this broker's inter-broker listener", live=False
    )
    """The plugins' own Kafka client, in librdkafka's names (`kafka.bootstrap.servers`). Its `client.id` is
    `quotahost-` and the node's id in any case. All values are secrets."""
    kafka_admin: dict[str, SecretStr] = declare("static.kafka.admin.*", default=dict, live=False)
    """The same client under Strimzi's names, those of Java's Admin client. `kafka.*` wins where both are given. With
    `bootstrap.servers` a controller that is no broker follows `snapshots` or `cluster-volumes`, and refuses new topics
    in a PAUSE. All values are secrets."""
    plugin: dict[str, dict[str, str]] = declare("plugin.NAME.*", default=dict, repr=False)  # may be secrets
    """Properties of the plugin with that entry point name, checked by the model that the plugin declares."""
