"""What two brokers show of the cluster is on the dashboard: snapshots, records, shares and rules in shadow."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest
from confluent_kafka import Producer

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.cluster import Cluster
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.records.topics import COMPACTED
from tests.broker.support.node import callback_properties
from tests.broker.support.pipeline import SHARES, TOPIC, FakePipeline, FakeShares
from tests.broker.support.prometheus import Server, empty, firing, health, prometheus
from tests.broker.support.quotas import set_cluster_quota
from tests.broker.support.seen import gauge

VALIDITY: Final = 8.0  # seconds
SETTINGS: Final = {
    "supplier": "overrides,cluster-quota,client-quotas",
    "plugin.overrides.quota.producer.override": "p:100K",
    "shadow": "supplier.overrides",
    "factor.source": "cluster-volumes",
    "validity": f"{VALIDITY:g}s",
    "startup.grace": "20s",
    "snapshots.period": "1s",
    "static.storage.soft": "999T",
    "static.storage.hard": "1000T",
    "tasks": "publish-volumes,publish-usage,cordon",
}
#: The MBeans of a full disk (test_prometheus.py fills one), of budgets and of the load.
NOT_SHOWN: Final = {"Cause", "TurnedBack", "Budget", "TypedFactor", "Load"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    properties = callback_properties(SETTINGS) | dict(QUICK_QUOTAS) | FENCE
    made = Cluster(tmp_path_factory.mktemp("cluster"), 2, classpath=[JAR], properties=properties, probe=True)
    for node in made.brokers:
        node.properties = node.properties | {PREFIX + "metrics.port": str(free_port())}  # each has its own
    with made:
        create_topic(made.brokers[0], "t", partitions=2)
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Server]:
    ports = (node.properties[PREFIX + "metrics.port"] for node in cluster.brokers)
    with prometheus(tmp_path_factory.mktemp("prometheus"), *ports) as server:
        yield server


def test_every_panel_shows_what_brokers_know_of_the_cluster(cluster: Cluster, server: Server) -> None:
    since = time.time()
    eventually(lambda: {"QuotahostPipelineSilent", "QuotahostSharesStale"} <= firing(server).keys())
    config = cluster.client_config(client_id="pipeline") | {"allow.auto.create.topics": False}
    create_topic(cluster.brokers[0], SHARES, config=COMPACTED)
    set_cluster_quota(config, client_id="p", produce=1e6)
    create_topic(cluster.brokers[0], TOPIC, config={"cleanup.policy": "compact"})
    stranger = Producer(config)
    stranger.produce(TOPIC, key=cluster.brokers[0].cluster_id, value=b"no record")
    stranger.flush(10)
    with ExitStack() as running:
        running.enter_context(FakePipeline(cluster, VALIDITY))
        running.enter_context(FakeShares(config))
        running.enter_context(ProducerLoad(cluster.client_config(client_id="p"), "t"))
        eventually(lambda: all(gauge(node, "Shares", "Stale") == 0 for node in cluster.brokers))
        shown_nothing = partial(empty, server, since, NOT_SHOWN)
        eventually(lambda: not shown_nothing(), on_timeout=lambda: str(shown_nothing()))
        assert set(health(server).values()) == {"ok"}
        eventually(lambda: not {"QuotahostPipelineSilent", "QuotahostSharesStale"} & firing(server).keys())
