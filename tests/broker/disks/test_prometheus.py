"""A real Prometheus is the factor source of a broker whose disk fills, and all panels and alerts have data."""

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.records.topics import COMPACTED
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.numbers import end_offset, stopped_at
from tests.broker.support.pipeline import SHARES, TOPIC, FakePipeline, FakeShares
from tests.broker.support.prometheus import Server, empty, firing, health, panels, prometheus, rules, series
from tests.broker.support.quotas import set_cluster_quota
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, gauge, state
from tests.broker.support.volumes import MEGA, small_volume

NODE_ID: Final = 1
SOFT, HARD, FULL = 600 * MEGA, 900 * MEGA, 950 * MEGA  # bytes used of a file system of 1 GiB
#: MBeans that no broker here shows: those of budgets (quotas/test_budgets.py), and of the load (quotas/test_rates.py).
ELSEWHERE: Final = {"Budget", "TypedFactor", "Load"}
#: MBeans that only a broker with a full disk shows, and MBeans that only brokers of a cluster show.
OF_A_DISK: Final = {"Cause", "TurnedBack"}
OF_A_CLUSTER: Final = {
    "Snapshot", "Brokers", "Refused", "ClusterRecord", "FactorSource", "ClusterQuotas", "Usage", "Shares", "Cordon",
    "Shadow",
}  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaNode, Server]]:
    """A broker on a volume of its own, and the server that scrapes the broker and is its factor source."""
    port, directory = free_port(), tmp_path_factory.mktemp("node")
    with (
        prometheus(tmp_path_factory.mktemp("prometheus"), port, broker=str(NODE_ID)) as server,
        small_volume(directory, 1 << 30),
        callback_node(directory, settings(server, port), properties=FENCE) as node,
    ):
        create_topic(node, "t")
        yield node, server


def settings(server: Server, port: int) -> dict[str, str]:
    own = {
        "url": server.url,
        "capacity": "quotahost_volume_capacity_bytes",
        "consumed": "quotahost_volume_consumed_bytes",
        "volume-label": "volume",
        # This label has the node.id, by which a broker recognizes its own volumes; it shows their limits.
        "broker-label": "broker",
        "expected": str(NODE_ID),
        "interval": "200ms",
    }
    return {
        "metrics.port": str(port),
        "tasks": "publish-volumes",  # shows the broker's own volumes
        "volumes.period": "200ms",
        "snapshots.period": "1s",
        "factor.source": "prometheus",
        "factor.interval": "200ms",
        "validity": "5s",
        "static.produce": "400K",
        "static.storage.soft": str(SOFT),
        "static.storage.hard": str(HARD),
    } | {f"plugin.prometheus.{name}": text for name, text in own.items()}


def fill(node: KafkaNode, used: int) -> None:
    """Fills or frees the broker's disk until about this many bytes are used, or as few as possible."""
    with (node.directory / "ballast").open("ab") as ballast:
        missing = used - shutil.disk_usage(node.directory).used
        if missing < 0:
            ballast.truncate(0)
        for _ in range(missing // MEGA):
            ballast.write(bytes(MEGA))


@pytest.mark.proves("proposal-035.other-sources", "proposal-035.properties-old")
def test_a_full_disk_pauses_by_prometheus_and_every_panel_and_alert_shows_it(scene: tuple[KafkaNode, Server]) -> None:
    node, server = scene
    alerts, since = {"QuotahostPause", "QuotahostVolumeOverSoftLimit"}, time.time()
    bound = 'quotahost_client_bound{{client_id="greedy",type="PRODUCE",by="{}"}}'.format
    eventually(lambda: gauge(node, "Factor", "Unknown") == 0 and state(node) == OPEN, what="the broker is scraped")
    eventually(lambda: "QuotahostSilent" not in firing(server))
    with ProducerLoad(node.client_config(client_id="greedy"), "t") as load:
        fill(node, (SOFT + HARD) // 2)
        # Prometheus may scrape while the disk fills, so a larger factor may come first.
        between = pytest.approx(0.5, abs=0.1)
        eventually(lambda: gauge(node, "QuotaTable", "Factor") == between and state(node) == THROTTLE)
        eventually(lambda: len(series(server, bound("factor"), since)) == 1)
        fill(node, FULL)
        eventually(lambda: gauge(node, "Fence", "Closed") == 1)
        (end,) = stopped_at(node, "t")
        eventually(lambda: len(series(server, bound("fence"), since)) == 1)
        eventually(lambda: alerts <= firing(server).keys())
        eventually(lambda: "127.0.0.1" in firing(server)["QuotahostPause"]["summary"])
        shown_nothing = partial(empty, server, since, ELSEWHERE | OF_A_CLUSTER)
        eventually(lambda: not shown_nothing(), on_timeout=lambda: str(shown_nothing()))
        for each in (*panels(), *rules()):
            series(server, each.text, since)  # raises if the expression is wrong
        assert set(health(server).values()) == {"ok"}
        fill(node, 0)
        eventually(lambda: state(node) == OPEN)
        eventually(lambda: end_offset(node, "t") > end)
        assert load.drain() == 0
    assert load.errors == []
    eventually(lambda: not alerts & firing(server).keys())


@pytest.mark.proves("proposal-035.freshness", "faults.prometheus-down")
def test_a_prometheus_that_is_down_pauses_after_validity_until_it_is_back(scene: tuple[KafkaNode, Server]) -> None:
    node, server = scene
    eventually(lambda: state(node) == OPEN)
    server.kill()
    eventually(lambda: state(node) == PAUSE, what="fallback.action applies after validity")
    eventually(lambda: gauge(node, "Factor", "LackOfData") == 1)
    node.wait_for_log("prometheus 127.0.0.1 has not answered for")
    server.start()
    eventually(lambda: state(node) == OPEN)
    assert gauge(node, "Host", "Restarts") == 0


# ---- what two brokers know of the cluster: snapshots, records, shares, rules in shadow ----

VALIDITY: Final = 8.0  # seconds
CLUSTER: Final = {
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


def test_every_panel_shows_what_brokers_know_of_the_cluster(tmp_path: Path) -> None:
    since, properties = time.time(), callback_properties(CLUSTER) | QUICK_QUOTAS | FENCE
    cluster = Cluster(tmp_path, 2, classpath=[JAR], properties=properties, probe=True)
    first, ports = cluster.brokers[0], [free_port() for _ in cluster.brokers]
    for node, port in zip(cluster.brokers, ports, strict=True):
        node.properties = properties | {PREFIX + "metrics.port": str(port)}
    with cluster, prometheus(tmp_path, *ports) as server, ExitStack() as running:
        create_topic(first, "t", partitions=2)
        eventually(lambda: {"QuotahostPipelineSilent", "QuotahostSharesStale"} <= firing(server).keys())
        # Only the standby shows this metric, and the standby is closed when the first record arrives.
        eventually(lambda: series(server, "quotahost_snapshot_age_seconds", since))
        config = cluster.client_config(client_id="pipeline") | {"allow.auto.create.topics": False}
        create_topic(first, SHARES, config=COMPACTED)
        set_cluster_quota(config, client_id="p", produce=1e6)
        create_topic(first, TOPIC, config={"cleanup.policy": "compact"})
        stranger = Producer(config)
        stranger.produce(TOPIC, key=first.cluster_id, value=b"no record")
        stranger.flush(10)
        running.enter_context(FakePipeline(cluster, VALIDITY))
        running.enter_context(FakeShares(config))
        running.enter_context(ProducerLoad(cluster.client_config(client_id="p"), "t"))
        eventually(lambda: all(gauge(node, "Shares", "Stale") == 0 for node in cluster.brokers))
        shown_nothing = partial(empty, server, since, ELSEWHERE | OF_A_DISK)
        eventually(lambda: not shown_nothing(), on_timeout=lambda: str(shown_nothing()))
        assert set(health(server).values()) == {"ok"}
        eventually(lambda: not {"QuotahostPipelineSilent", "QuotahostSharesStale"} & firing(server).keys())
