"""A new or restarted cluster treats nobody worse than a stock one, and a disk that is full stays untouched."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness.kafka.admin import create_topic, creates
from harness.kafka.cluster import Cluster
from harness.plugin import FENCE, JAR
from harness.system.background import Background
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.numbers import attempt, end_offset
from tests.broker.support.seen import OPEN, PAUSE, gauge, state, transitions


class FirstRequests(Background):
    """Creates topics and writes to them from before the brokers listen until each broker has taken some."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self._config = config | {"log_level": 0, "reconnect.backoff.max.ms": 100}
        self.refusals: list[str] = []
        self.created = 0

    def _run(self) -> None:
        tries = 0
        while not self._stopping.is_set():
            topic, tries = f"first-{tries}", tries + 1
            if creates(self._config, topic, 3, 1, self.refusals):
                self.created += 1
                for partition in range(3):
                    if (error := attempt(self._config, topic, partition)) is not None:
                        self.refusals.append(f"record: {error}")


@pytest.mark.parametrize("source", ["cluster-volumes", pytest.param("snapshots", marks=pytest.mark.long)])
@pytest.mark.proves("faults.cold-start")
def test_topics_and_records_of_the_first_moment_are_taken_as_by_a_stock_cluster(tmp_path: Path, source: str) -> None:
    settings = {"factor.source": source, "fence.authorizer": "none", "static.storage.hard.min-free-bytes": "1"}
    settings["validity"] = "20s"  # of a record that never comes; then the standby answers
    properties = callback_properties(settings) | FENCE
    cluster = Cluster(tmp_path, brokers=3, classpath=[JAR], properties=properties)
    with FirstRequests(cluster.client_config(client_id="first")) as first, cluster:
        eventually(lambda: first.created > 5)
        assert first.refusals == []
        assert transitions(*cluster.brokers) == [0, 0, 0]
        eventually(lambda: [gauge(node, "Factor", "Unknown") for node in cluster.brokers] == [0, 0, 0])
        assert first.refusals == []
        for node in cluster.brokers:
            assert state(node) == OPEN
            assert "-> PAUSE" not in node.log_text()
            assert "The fence is closed" not in node.log_text()
        first.stop()  # while somebody answers it


@pytest.mark.proves("faults.full-at-start")
def test_a_broker_whose_disk_is_full_when_it_starts_appends_no_byte(tmp_path: Path) -> None:
    settings = {"factor.source": "local", "fence.authorizer": "none"}
    with callback_node(tmp_path, settings, properties=FENCE) as node:
        create_topic(node, "t")
        assert attempt(node.client_config(client_id="p"), "t") is None
        before = end_offset(node, "t")
        node.stop()
    node.properties |= callback_properties(settings | {"static.storage.hard": "1"})

    producer = Producer(
        node.client_config(client_id="p") | {"log_level": 0, "reconnect.backoff.max.ms": 100, "linger.ms": 0}
    )
    for _ in range(500):
        producer.produce("t", bytes(1000))
    with node:
        eventually(lambda: gauge(node, "Fence", "Rejections") > 0)
        assert state(node) == PAUSE
        assert end_offset(node, "t") == before
        refusals = list[str]()
        assert not creates(node.client_config(), "u", 1, 1, refusals)
        assert [refusal.partition(":")[0] for refusal in refusals] == ["POLICY_VIOLATION"]
        producer.purge()
        producer.flush(10)
