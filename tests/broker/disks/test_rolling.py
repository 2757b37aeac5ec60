"""Three brokers that are killed, or restarted in turn with pauses longer than validity: nobody is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, cluster_with_fence, gauge, wait_for_state

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC: Final = "replicated"
SETTINGS: Final = {
    "factor.source": "snapshots",
    "fence.authorizer": "none",
    "startup.grace": "30s",
    "snapshots.period": "1s",
}


def silent_for(node: KafkaNode, broker: KafkaNode, seconds: float) -> None:
    """Waits until a broker's newest snapshot, as another broker knows it, is so old."""
    bean = f"Snapshot,name={broker.node_id}"
    eventually(lambda: gauge(node, bean, "Age") > seconds, timeout=seconds + 120, poll=0.5)


def goes_on(load: ProducerLoad) -> None:
    """Waits until a megabyte more has been acknowledged."""
    before = load.meter.bytes
    eventually(lambda: load.meter.bytes > before + 1_000_000)


@pytest.mark.proves("faults.rolling")
def test_a_restart_of_one_broker_after_the_other_with_pauses_longer_than_validity_stops_nobody(tmp_path: Path) -> None:
    validity = 8
    with cluster_with_fence(tmp_path, SETTINGS | {"validity": f"{validity}s"}) as cluster:
        wait_for_state(cluster, OPEN)
        create_topic(cluster.brokers[0], TOPIC, partitions=3, replicas=3, config={"min.insync.replicas": "2"})
        with ProducerLoad(cluster.client_config(client_id="p"), TOPIC, rate=500e3) as load:
            for node in cluster.brokers:
                others = [each for each in cluster.brokers if each is not node]
                before = [gauge(other, "Factor", "Transitions") for other in others]
                node.stop()
                for other in others:
                    silent_for(other, node, validity + 4)
                goes_on(load)
                node.start()
                eventually(lambda others=others: all(gauge(o, "Brokers", "LastKnown") == 0 for o in others))
                goes_on(load)
                assert [gauge(other, "Factor", "Transitions") for other in others] == before
                # With a fence a broker that starts turns writes back until it knows the disks of the others.
                wait_for_state(cluster, OPEN)
            assert load.drain() == 0
        assert load.errors == []


@pytest.mark.proves("faults.killed-broker")
def test_any_broker_that_is_killed_stops_nobody_by_kafkas_default_session_also_the_active_controller(
    tmp_path: Path,
) -> None:
    validity = 30
    with cluster_with_fence(tmp_path, SETTINGS | {"validity": f"{validity}s"}) as cluster:
        wait_for_state(cluster, OPEN)
        create_topic(cluster.brokers[0], TOPIC, partitions=3, replicas=3)
        with ProducerLoad(cluster.client_config(client_id="p"), TOPIC, rate=500e3) as load:
            for node in cluster.brokers[:2]:
                others = [each for each in cluster.brokers if each is not node]
                before = [gauge(other, "Factor", "Transitions") for other in others]
                node.kill()
                silent_for(others[0], node, validity + 5)
                goes_on(load)
                assert [gauge(other, "Factor", "Transitions") for other in others] == before
                assert gauge(others[0], "Factor", "LackOfData") == 0
                node.start()
                eventually(lambda others=others: all(gauge(o, "Brokers", "LastKnown") == 0 for o in others))
                wait_for_state(cluster, OPEN)
        assert load.errors == []
