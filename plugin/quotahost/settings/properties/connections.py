"""What reaches beyond the broker's host: Prometheus' endpoint, the plugins' Kafka client, the plugins' own sections."""

from __future__ import annotations

from pydantic import SecretStr

from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.types import Few, Port, Text


class ConnectionSettings(Frozen):
    """The metrics' port, and the three families of properties whose names others define."""

    metrics_port: Port = declare("metrics.port", live=False)
    """Port of the Prometheus endpoint."""
    metrics_clients: Few = declare("metrics.clients", default="200", live=False)
    """Of how many clients, or scopes that clients share, the metrics show rate, quota, delay and what binds: those that
    are held back, then the busiest. `0` shows none."""
    # Loopback by default, because the endpoint serves everyone who can connect.
    metrics_address: Text = declare("metrics.address", default="127.0.0.1", live=False)
    """Address that it listens on."""
    kafka: dict[str, SecretStr] = declare(
        "kafka.*", default=dict, words="this broker's inter-broker listener", live=False
    )
    """The plugins' own Kafka client, in librdkafka's names (`kafka.bootstrap.servers`). All values are secrets."""
    kafka_admin: dict[str, SecretStr] = declare("static.kafka.admin.*", default=dict, live=False)
    """The same as Strimzi's plugin has it, in the names of Java's Admin client; `kafka.*` wins where both are given.
    With `bootstrap.servers` among them a controller that is no broker follows `snapshots` or `cluster-volumes`, and
    refuses new topics in a PAUSE. All values are secrets."""
    plugin: dict[str, dict[str, str]] = declare("plugin.NAME.*", default=dict, repr=False)  # may be secrets
    """Handed to the plugin with that entry point name, checked by the model that it declares."""
