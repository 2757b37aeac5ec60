"""What Kafka has stored is in force after a restart, whatever Python or a plugin thinks of quotahost's part of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node

pytestmark = pytest.mark.broker

TOPIC = "t"
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def fault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fault") / "mode"
    file.write_text("fine")
    return file


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, fault: Path) -> Iterator[KafkaNode]:
    env = {"PYTHONPATH": str(PLUGINS), "FAULT": str(fault)}
    with callback_node(tmp_path_factory.mktemp("node"), env=env) as node:
        create_topic(node, TOPIC)
        yield node


def accepts(node: KafkaNode, size: int) -> bool:
    """Whether the broker appends a record of this many bytes, which its ``message.max.bytes`` decides."""
    producer = Producer(node.client_config() | {"message.max.bytes": 20 * MEGABYTE})
    errors: list[object] = []
    producer.produce(TOPIC, os.urandom(size), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors == [None]


def restart(node: KafkaNode) -> int:
    """Restarts the node, and returns where the log of its new life begins."""
    assert node.stop() == 143
    begin = node.log.end()
    node.start()
    return begin


def store(node: KafkaNode, megabytes: int, **settings: str | None) -> None:
    """Changes ``message.max.bytes`` and settings of quotahost in one request, and waits until the former holds."""
    change = {PREFIX + name: text for name, text in settings.items()}
    alter_broker_config(node, {**change, "message.max.bytes": str(megabytes * MEGABYTE)})
    holds(node, megabytes)


def holds(node: KafkaNode, megabytes: int) -> None:
    size = megabytes * MEGABYTE - 10_000
    eventually(lambda: accepts(node, size), 30, f"message.max.bytes of {megabytes} MiB is in force")


def test_a_misspelt_name_that_kafka_has_stored_costs_no_other_property(node: KafkaNode) -> None:
    alter_broker_config(node, {PREFIX + "static.produce": "20M"})
    # Kafka doesn't ask the callback about names that it doesn't list.
    store(node, 2, **{"static.prodcue": "1M"})
    restart(node)
    holds(node, 2)
    store(node, 3)


def test_a_supplier_that_was_removed_costs_no_other_property(node: KafkaNode) -> None:
    store(node, 4, supplier="faulty")
    node.env = {"PYTHONPATH": "", "FAULT": node.env["FAULT"]}
    restart(node)
    holds(node, 4)
    store(node, 5)
    node.env = {"PYTHONPATH": str(PLUGINS), "FAULT": node.env["FAULT"]}


def test_a_supplier_that_is_slow_costs_no_other_property(node: KafkaNode, fault: Path) -> None:
    store(node, 6, **{"supplier": None, "static.fetch": "30M"})
    node.properties[PREFIX + "supplier"] = "faulty"
    fault.write_text("slow-tick")
    restart(node)
    holds(node, 6)
    store(node, 7)
