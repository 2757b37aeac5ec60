"""Reads and changes dynamic properties of one broker by the Admin API.

The task ``cordon`` does so, as the plugins' own client. Lists are changed by Kafka's operations append and subtract, so
that nobody else's entries are lost, whoever else changes them at the same moment (KIP-339).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from quotahost.errors import QuotahostError

_WAIT: Final = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Listed:
    """A property that is a list.

    Attributes:
        entries: its entries, of whatever source.
        elsewhere: it has a value in server.properties, or for all brokers of the cluster, which one for this broker
            alone would hide.
    """

    entries: tuple[str, ...] = ()
    elsewhere: bool = False


class Unreachable(QuotahostError):
    """The cluster gives no answer, refuses the change, or the right to it is missing."""


class BrokerConfig:
    """The dynamic properties of one broker. Every call waits for the cluster, 10 s at most."""

    def __init__(self, config: Mapping[str, Any], broker: int) -> None:
        """Not connected yet.

        Args:
            config: librdkafka's.
            broker: its id.
        """
        self._config, self._broker = dict(config), str(broker)
        self._admin: AdminClient | None = None

    def listed(self, name: str) -> Listed | None:
        """A property's value, None if this Kafka doesn't know the property.

        Raises:
            Unreachable: there is no answer, or the right is missing (DescribeConfigs on the cluster).
        """
        resource = ConfigResource(ResourceType.BROKER, self._broker)
        entry = _answer(self._client().describe_configs([resource], request_timeout=_WAIT)).get(name)
        if entry is None:
            return None
        entries = tuple(part for part in (entry.value or "").split(",") if part)
        own = {ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value}
        return Listed(entries, bool(entries) and int(entry.source) not in own)

    def change(
        self,
        append: Mapping[str, Iterable[str]] | None = None,
        subtract: Mapping[str, Iterable[str]] | None = None,
        put: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change several properties at once: all or none.

        Args:
            append: entries that lists get, unless they have them.
            subtract: entries that lists lose.
            put: new values; None takes the property away.

        Raises:
            Unreachable: there is no answer, or the right is missing (AlterConfigs on the cluster).
        """
        operations = AlterConfigOpType
        entries = [_entry(name, ",".join(values), operations.APPEND) for name, values in (append or {}).items()]
        entries += [_entry(name, ",".join(values), operations.SUBTRACT) for name, values in (subtract or {}).items()]
        entries += [
            _entry(name, value or "", operations.DELETE if value is None else operations.SET)
            for name, value in (put or {}).items()
        ]
        resource = ConfigResource(ResourceType.BROKER, self._broker, incremental_configs=entries)
        _answer(self._client().incremental_alter_configs([resource], request_timeout=_WAIT))

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._config)
        return self._admin


def _answer(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(_WAIT)
    except (KafkaException, TimeoutError) as error:
        raise Unreachable(str(error) or "no answer") from None


def _entry(name: str, value: str, operation: AlterConfigOpType) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=operation)
