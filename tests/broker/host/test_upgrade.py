"""Three brokers go from one version of quotahost to the next, one at a time and under load, and back again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, PAUSE, callback_properties, gauge, wait_for_state
from tests.broker.support.older import Build, older

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC: Final = "replicated"
VALIDITY: Final = 20  # seconds: for longer no change of one broker may stop producers
SETTINGS: Final = {
    "factor.source": "snapshots",
    "fence.authorizer": "none",
    "startup.grace": "30s",
    "snapshots.period": "1s",
    "validity": f"{VALIDITY}s",
    "static.produce": "5M",
}
# What the older version doesn't know.
NEW: Final = {
    "factor.scope": "topics",
    "pause.resume.free-share": "0.5",
    "pause.creation": "allow",
    "exempt.principals": "User:x",
}
HARD: Final = PREFIX + "static.storage.hard"


@pytest.fixture(scope="module")
def builds() -> tuple[Build, Build]:
    return older(), Build(JAR, sys.executable)


@pytest.fixture
def cluster(tmp_path: Path, builds: tuple[Build, Build]) -> Iterator[Cluster]:
    properties = callback_properties(SETTINGS) | dict(QUICK_QUOTAS) | FENCE
    made = Cluster(tmp_path, brokers=3, properties=properties, probe=True)
    for node in made.brokers:
        choose(node, builds[0])
    with made:
        yield made


def choose(node: KafkaNode, build: Build) -> None:
    """The node runs this build from its next start on."""
    node.classpath = [build.jar]
    node.properties = node.properties | {PREFIX + "python.executable": build.python}


def goes_on(load: ProducerLoad) -> None:
    """Waits until a megabyte more has been acknowledged."""
    before = load.meter.bytes
    eventually(lambda: load.meter.bytes > before + 1_000_000)


def change_over(cluster: Cluster, build: Build, load: ProducerLoad) -> None:
    """One broker after the other runs the build; each change ends when all know of all again."""
    for node in cluster.brokers:
        node.stop()
        choose(node, build)
        node.start()
        eventually(lambda: all(gauge(each, "Brokers", "LastKnown") == 0 for each in cluster.brokers))
        wait_for_state(cluster, OPEN)
        goes_on(load)
        a_full_disk_stops_all(cluster, node)
        goes_on(load)


def a_full_disk_stops_all(cluster: Cluster, node: KafkaNode) -> None:
    """The snapshots of a broker of one version tell those of the other that its disk is full, and that it isn't."""
    alter_broker_config(node, {HARD: "1"}, broker=node.node_id)
    wait_for_state(cluster, PAUSE)
    alter_broker_config(node, {HARD: None}, broker=node.node_id)
    wait_for_state(cluster, OPEN)


def no_faults(cluster: Cluster) -> bool:
    """Whether no plugin and no thread has failed on any broker since its start."""
    beans = ("Plugin,name=snapshots", "Plugin,name=publish-volumes", "Watch")
    return all(gauge(node, bean, "Errors") == 0 for node in cluster.brokers for bean in beans)


def longest_silence(load: ProducerLoad) -> float:
    """For how many seconds nothing was acknowledged, at most."""
    return max(later - earlier for earlier, later in pairwise(load.meter._times))


@pytest.mark.proves("faults.two-versions")
def test_brokers_of_both_versions_serve_together_on_the_way_up_and_down(
    cluster: Cluster, builds: tuple[Build, Build]
) -> None:
    wait_for_state(cluster, OPEN)
    create_topic(cluster.brokers[0], TOPIC, partitions=3, replicas=3, config={"min.insync.replicas": "2"})
    with ProducerLoad(cluster.client_config(client_id="p"), TOPIC, rate=500e3) as load:
        change_over(cluster, builds[1], load)
        assert no_faults(cluster)
        alter_broker_config(cluster.brokers[0], {PREFIX + name: value for name, value in NEW.items()})
        assert all(gauge(node, "Host", "ConfigRefused") == 0 for node in cluster.brokers)
        change_over(cluster, builds[0], load)
        assert no_faults(cluster)
        for node in cluster.brokers:
            assert gauge(node, "Host", "ConfigRefused") == 1
            assert "factor.scope: unknown property" in node.log_text(), "it is left out, and named"
        assert load.drain() == 0
    assert load.errors == []
    assert longest_silence(load) < VALIDITY
