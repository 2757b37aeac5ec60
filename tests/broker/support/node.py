"""Makes nodes that run quotahost's callback, and changes their settings."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from harness.clients.consumer import ConsumerLoad
from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import CALLBACK, FENCE, JAR, PREFIX, plugin_properties
from harness.system.waiting import eventually
from tests.broker.support.seen import gauge

PLUGINS: Final = Path(__file__).parents[1] / "plugins"
#: The id of a node that commands find by its id; no other broker on this machine has this id.
OWN_ID: Final = 1_000_000 + os.getpid()
FACTOR: Final = PREFIX + "plugin.fixed.factor"
#: Settings of a broker whose factor tests set by hand.
FIXED: Final = {"factor.source": "fixed", "factor.interval": "100ms", "plugin.fixed.factor": "1"}
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def callback_properties(settings: dict[str, str] | None = None, name: str = CALLBACK) -> dict[str, str]:
    """Broker properties that load the callback; the settings have no prefix."""
    return plugin_properties({"static.scope": "client", **(settings or {})}, name)


def callback_node(directory: Path, settings: dict[str, str] | None = None, **more: Any) -> KafkaNode:
    """A node with the callback and the quota probe; it is not started."""
    properties = callback_properties(settings) | more.pop("properties", {})
    return KafkaNode(directory, classpath=[JAR], properties=properties, probe=True, **more)


def listener_properties(node: KafkaNode, name: str, protocol: str, port: int, advertised: int) -> dict[str, str]:
    """Broker properties that add a listener to those of the node."""
    placement = node.placement()
    own = f"{name}://127.0.0.1"
    clients = [each for each in placement["listeners"].split(",") if not each.startswith("CONTROLLER")]
    return {
        "listeners": f"{placement['listeners']},{own}:{port}",
        "advertised.listeners": ",".join([*clients, f"{own}:{advertised}"]),
        "listener.security.protocol.map": f"{placement['listener.security.protocol.map']},{name}:{protocol}",
    }


@contextmanager
def cluster_with_fence(directory: Path, settings: dict[str, str]) -> Iterator[Cluster]:
    """Runs three brokers with callback, fence and quick quotas, and a topic t of three partitions."""
    properties = callback_properties(settings) | dict(QUICK_QUOTAS) | FENCE
    with Cluster(directory, brokers=3, classpath=[JAR], properties=properties, probe=True) as cluster:
        create_topic(cluster.brokers[0], "t", partitions=3)
        yield cluster


def topic_of(node: KafkaNode, request: pytest.FixtureRequest, **config: str) -> str:
    """Creates a topic with the test's name, a dash for each character that topics don't allow; returns its name."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)
    create_topic(node, name, config=config)
    return name


def tell(file: Path, text: str) -> None:
    """Replaces a plugin's file in one step, because the plugin may read it at any moment."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(text)
    new.replace(file)


def check_serves(node: KafkaNode, client_id: str) -> None:
    """Checks that a client with this client-id produces to topic t and consumes, faster than a muted client could."""
    config = node.client_config(client_id=client_id)
    with ProducerLoad(config, "t") as producer, ConsumerLoad(config, "t") as consumer:
        eventually(lambda: producer.meter.bytes > 2_000_000, what="the client has produced")
        eventually(lambda: consumer.meter.bytes > 2_000_000, what="the client has consumed")
    assert producer.errors == consumer.errors == []


@contextmanager
def changed(node: KafkaNode, settings: Mapping[str, str]) -> Iterator[None]:
    """Changes settings, which have no prefix, live for the time of a ``with`` block."""
    alter_broker_config(node, {PREFIX + name: text for name, text in settings.items()})
    try:
        yield
    finally:
        alter_broker_config(node, dict.fromkeys(PREFIX + name for name in settings))


def set_factor(node: KafkaNode, factor: float) -> None:
    """Sets the factor of a broker with FIXED settings, and waits until host and fence use it."""
    alter_broker_config(node, {FACTOR: f"{factor:g}"})
    eventually(lambda: gauge(node, "QuotaTable", "Factor") == factor)
    eventually(lambda: gauge(node, "Fence", "Closed") == (factor == 0))
