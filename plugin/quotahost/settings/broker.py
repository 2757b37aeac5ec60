"""The broker's properties under ``client.quota.callback.`` as one typed, frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from pydantic import Field, SecretStr

from quotahost.model import Limit, State
from quotahost.settings.declaration import PREFIX, Frozen, Problem, SettingsError, declare, declared
from quotahost.settings.display import Models, Row, rows, table
from quotahost.settings.reader import configured_names, read
from quotahost.settings.secrets import property_names
from quotahost.settings.storage import StorageSettings
from quotahost.settings.strimzi.names import live_names
from quotahost.settings.strimzi.translation import Translation, translate
from quotahost.settings.topics import TopicSettings
from quotahost.settings.types import (
    Action,
    Combination,
    Mode,
    Name,
    Names,
    Port,
    Principals,
    QuotaTypes,
    SecondName,
    Sharing,
    SomeNames,
    Text,
)
from quotahost.units import BytesLimit, BytesPerSecond, Count, Duration, MutationsLimit, PercentLimit

__all__ = [
    "PREFIX",
    "NewcomerSettings",
    "Problem",
    "Row",
    "Settings",
    "SettingsError",
    "StaticSettings",
    "describe",
    "live_properties",
    "properties_table",
    "read_properties",
]


_CLUSTER_VOLUMES: Final = "cluster-volumes"
_READ_SNAPSHOTS: Final = ("snapshots", _CLUSTER_VOLUMES)


def _source(fields: dict[str, Any]) -> str | None:
    """This broker's own volumes where a limit is set: the least that protects them."""
    static = fields.get("static")
    return "local" if static and static.storage.any_limit else None


def _second(fields: dict[str, Any]) -> str | None:
    return "snapshots" if fields.get("factor_source") == _CLUSTER_VOLUMES else None


def _policy(fields: dict[str, Any]) -> str | None:
    return "limits" if fields.get("factor_source") else None


def _tasks(fields: dict[str, Any]) -> str:
    """What the other brokers, or the pipeline, need of this one."""
    volumes = ["publish-volumes"] * (fields.get("factor_source") in _READ_SNAPSHOTS)
    return ",".join(volumes + ["publish-usage"] * ("cluster-quota" in fields.get("supplier", ())))


def _fallback(fields: dict[str, Any]) -> str:
    """PAUSE only where a factor source exists: without one nothing about disks is unknown."""
    return State.PAUSE if fields.get("factor_source") else State.OPEN


class StaticSettings(Frozen):
    """What the supplier ``static`` gives every client."""

    produce: BytesLimit = declare(
        "static.produce", "Produce rate that the supplier `static` gives.", told="unlimited"
    )
    fetch: BytesLimit = declare("static.fetch", "Fetch rate that it gives.", told="unlimited")
    request: PercentLimit = declare(
        "static.request", "Request rate that it gives, in percent of one thread's time.", told="unlimited"
    )
    controller_mutation: MutationsLimit = declare(
        "static.controller-mutation",
        "Rate of partitions created and deleted that it gives.",
        told="unlimited",
    )
    scope: Sharing = declare(
        "static.scope",
        "Who shares one such rate: with `broker` it is one total for all clients of a broker, as with "
        "Strimzi's plugin; else each client (principal and client-id), user or client-id has one of its own.",
        default="broker",
    )
    storage: StorageSettings = Field(default_factory=StorageSettings)


class NewcomerSettings(Frozen):
    """What all clients share that are not resolved yet."""

    produce: BytesLimit = declare(
        "newcomers.produce",
        "Produce rate that all clients share whose own quota is not known yet.",
        default="100M",
    )
    fetch: BytesLimit = declare("newcomers.fetch", "Fetch rate that they share.", default="100M")
    request: PercentLimit = declare("newcomers.request", "Request rate that they share.", default="200")
    controller_mutation: MutationsLimit = declare(
        "newcomers.controller-mutation", "Mutation rate that they share.", default="100"
    )


class Settings(Frozen):
    """Everything that the broker's properties say; made by :meth:`from_properties`."""

    callback_class: str = declare(
        "class",
        "Kafka's own: the class that it loads.",
        default="org.quotahost.PythonQuotaCallback",
        live=False,
    )
    python_executable: Text = declare(
        "python.executable",
        "Interpreter of the environment that holds `quotahost` and your plugins; give the full path.",
        default="python3",
        live=False,
    )
    supplier: SomeNames = declare(
        "supplier",
        "Suppliers in the order in which they are asked; the first answer is the client's quota.",
        default="client-quotas,static",
    )
    supplier_combine: Combination = declare(
        "supplier.combine",
        "`first`: of each quota type the first supplier that has an answer gives the quota; "
        "`most-constraining`: all are asked, and the smallest rate does, unlimited being the largest.",
        default="first",
    )
    static: StaticSettings = Field(default_factory=StaticSettings)
    factor_source: Name = declare(
        "factor.source",
        "Where the state of the disks, and so the factor, comes from.",
        default=_source,
        told="local if a static.storage limit is set, else none",
    )
    factor_source_second: SecondName = declare(
        "factor.source.second",
        "The factor source that answers while no records reach `cluster-volumes`; with `none` `fallback.action` holds "
        "then.",
        default=_second,
        told="snapshots where factor.source is cluster-volumes, else none",
    )
    factor_interval: Duration = declare(
        "factor.interval", "How often the factor source is read.", default="250ms"
    )
    policy: Name = declare(
        "policy",
        "Makes a factor of each volume that the factor source reports.",
        default=_policy,
        told="limits with a factor.source, else none",
    )
    tasks: Names = declare(
        "tasks",
        "Periodic tasks to run in the broker.",
        default=_tasks,
        told="publish-volumes where factor.source reads snapshots, publish-usage with the supplier cluster-quota",
    )
    volumes_period: Duration = declare(
        "volumes.period", "How often this broker's file stores are looked at.", default="250ms"
    )
    snapshots_topic: Text = declare(
        "snapshots.topic",
        "Compacted topic of the brokers' volume snapshots; made if it is absent.",
        default="__quotahost_snapshots",
        live=False,
    )
    cluster_volumes_topic: Text = declare(
        "cluster.volumes.topic",
        "Compacted topic of the clusters' volumes, which the pipeline writes and `cluster-volumes` reads.",
        default="__quotahost_cluster_volumes",
        live=False,
    )
    snapshots_period: Duration = declare(
        "snapshots.period",
        "How often a broker publishes its snapshot at least; what is news (a thousandth of a volume's capacity, "
        "a limit crossed) is published at once.",
        default="5s",
    )
    usage_topic: Text = declare(
        "usage.topic",
        "Compacted topic of what each broker's busiest clients use, by the task `publish-usage`; made if it is "
        "absent.",
        default="__quotahost_usage",
        live=False,
    )
    usage_period: Duration = declare(
        "usage.period",
        "How often `publish-usage` looks at the clients' rates. What is news is published at once, and all of it "
        "every 5 s.",
        default="500ms",
    )
    usage_clients: Count = declare(
        "usage.clients", "How many clients it tells of at most, the busiest.", default="100"
    )
    shares_topic: Text = declare(
        "shares.topic",
        "Compacted topic of each broker's shares of the cluster-wide client quotas, which the pipeline writes and "
        "the supplier `cluster-quota` reads.",
        default="__quotahost_shares",
        live=False,
    )
    snapshots_expiry: Duration = declare(
        "snapshots.expiry",
        "How long a stopped broker is missed. After that it counts no more, as if it were unregistered.",
        default="1d",
    )
    excluded_principals: Principals = declare(
        "static.excluded.principal.name.list",
        "Principals that are never throttled, whichever supplier answers: `User:a;User:CN=b,OU=c`, "
        "separated by `;` because a distinguished name holds commas.",
        default="",
        told="",
    )
    newcomers: NewcomerSettings = Field(default_factory=NewcomerSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    clients_max: Count = declare(
        "clients.max", "How many clients have a place in the table.", default="50000", live=False
    )
    clients_idle: Duration = declare(
        "clients.idle",
        "How long a client must have been silent before its place may be given to another. Kafka keeps "
        "a client's sensors for an hour: with less, one that is throttled could get rid of its quota.",
        default="1h",
        live=False,
    )
    inbox_max: Count = declare(
        "inbox.max",
        "How many events can wait for the host; what does not fit is asked for again.",
        default="65536",
        live=False,
    )
    fallback_action: Action = declare(
        "fallback.action",
        "What holds while the state is unknown or the host does not answer. Without a factor source "
        "nothing about disks is unknown, so OPEN: the quotas that the broker remembers go on.",
        default=_fallback,
        told="PAUSE with a factor.source, else OPEN",
    )
    validity: Duration = declare(
        "validity",
        "How old the host's last sign of life, and the newest state of the disks, may be before "
        "`fallback.action` holds.",
        default="1m",
    )
    startup_grace: Duration = declare(
        "startup.grace",
        "How long after its start a broker waits for the first state of the disks.",
        default="1m",
    )
    start_timeout: Duration = declare(
        "start.timeout", "How long the start of the broker waits for the plugins.", default="30s", live=False
    )
    floor_bytes: BytesPerSecond = declare(
        "floor.bytes",
        "Byte rate that no factor takes a quota below: there Kafka's throttle times grow to hours, which "
        "no later change takes back. A quota that is itself lower stays as it was set.",
        default="35K",
    )
    max_mute: Duration = declare(
        "max.mute",
        "The longest throttle time that a step of the factor downwards may cause; a lower factor is reached in "
        "several steps, one each quota window.",
        default="30s",
    )
    factor_quota_types: QuotaTypes = declare(
        "factor.quota.types", "Quota types that the factor multiplies.", default="PRODUCE"
    )
    fence_authorizer: Text = declare(
        "fence.authorizer",
        "The authorizer behind `authorizer.class.name=org.quotahost.QuotaFence`: `none` for a cluster that "
        "had no authorizer, or the class that it had. Read by the fence itself.",
        default="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        live=False,
    )
    mode: Mode = declare(
        "mode",
        "`enforce`, or `shadow`: everything is computed and shown, nothing enforced.",
        default="enforce",
    )
    metrics_port: Port = declare("metrics.port", "Port of the Prometheus endpoint.", told="off", live=False)
    metrics_address: Text = declare(
        "metrics.address", "Address that it listens on.", default="127.0.0.1", live=False
    )
    kafka: dict[str, SecretStr] = declare(
        "kafka.*",
        "The plugins' own Kafka client, in librdkafka's names (`kafka.bootstrap.servers`). "
        "All values are secrets.",
        default=dict,
        told="this broker's inter-broker listener",
        live=False,
    )
    kafka_admin: dict[str, SecretStr] = declare(
        "static.kafka.admin.*",
        "The same as Strimzi's plugin has it, in the names of Java's Admin client; what `kafka.*` says wins. "
        "All values are secrets.",
        default=dict,
        told="",
        live=False,
    )
    plugin: dict[str, dict[str, str]] = declare(
        "plugin.NAME.*",
        "Handed to the plugin with that entry point name, checked by the model that it declares.",
        default=dict,
        told="",
        shown=False,  # they may hold secrets
    )

    @property
    def storage_soft(self) -> Limit | None:
        """The soft limit of this broker's volumes."""
        return self.static.storage.limit("soft")

    @property
    def storage_hard(self) -> Limit | None:
        """The hard limit of this broker's volumes."""
        return self.static.storage.limit("hard")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Settings:
        """Read a broker's properties, as :func:`read_properties` does, where nobody logs Strimzi's notes.

        Raises:
            SettingsError: see read_properties.
        """
        return read_properties(properties)[0]


def read_properties(properties: Mapping[str, str]) -> tuple[Settings, Translation]:
    """Read a broker's properties; those outside ``client.quota.callback.`` are ignored.

    This is the edge at which properties come in: names of Strimzi's plugin are translated here, once, and nobody
    below this call knows them.

    Returns:
        The settings, and what became of Strimzi's own names, for the log and ``doctor``.

    Raises:
        SettingsError: one or more of them are unknown or wrong; it lists all of them.
    """
    translation = translate(properties)
    return read(Settings, translation.properties, translation.problems), translation


def describe(settings: Settings, models: Models | None = None) -> list[Row]:
    """Every property as understood, with full units; secrets are ``***``.

    Args:
        settings: what to describe.
        models: the configured plugins' own settings models by name, which say what is a secret; by
            their names alone ``password``, ``secret``, ``token``, ``key`` and ``jaas`` are.
    """
    return list(rows(settings, models or {}))


def live_properties(settings: Settings, models: Models | None = None) -> list[str]:
    """Full names of all properties whose change takes effect without a restart, Strimzi's own last.

    Args:
        settings: whose plugins' own properties to list too.
        models: the configured plugins' own settings models by name.
    """
    own = [PREFIX + p.name for p in declared(Settings) if p.live and not p.is_family]
    names = dict.fromkeys(chain.from_iterable(configured_names(settings).values()))
    models = models or {}
    plugins = [f"{PREFIX}plugin.{name}.{key}" for name in names for key in property_names(models.get(name))]
    return own + plugins + live_names()


def properties_table() -> str:
    """All properties as a Markdown table, names without ``client.quota.callback.``."""
    return table(declared(Settings))
