"""Three brokers that read one record about the cluster: it stops producers everywhere, also after the last record."""

import time
from collections.abc import Iterator
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.cluster import Cluster
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from tests.broker.support.commands import explain_client
from tests.broker.support.node import cluster_with_fence, restart_stopped
from tests.broker.support.numbers import appended, attempt, settled_ends
from tests.broker.support.pipeline import TOPIC, FakePipeline
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, gauge, transitions, wait_for_state

VALIDITY: Final = 8.0  # seconds
HARD: Final = PREFIX + "static.storage.hard"
SETTINGS: Final = {
    "factor.source": "cluster-volumes",
    "fence.authorizer": "none",
    "validity": f"{VALIDITY:g}s",
    "startup.grace": "20s",
    "snapshots.period": "1s",
}
RECORD_SOURCE, SNAPSHOT_SOURCE = "cluster-volumes", "snapshots"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """At first there is no topic of records, so the standby source answers."""
    with cluster_with_fence(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        wait_for_state(made, OPEN)
        wait_for_source(made, SNAPSHOT_SOURCE)
        create_topic(made.brokers[0], TOPIC, replicas=3, config={"cleanup.policy": "compact"})
        yield made


@pytest.fixture(autouse=True)
def _open_and_empty(cluster: Cluster) -> Iterator[None]:
    yield
    restart_stopped(cluster)
    limits_of_broker_1(cluster, hard=None)
    wait_for_source(cluster, SNAPSHOT_SOURCE)
    wait_for_state(cluster, OPEN)


def wait_for_source(cluster: Cluster, source: str, timeout: float = 120) -> None:
    bean = f"FactorSource,name={source}"
    eventually(
        lambda: all(gauge(node, bean, "Answers") == 1 for node in cluster.brokers),
        timeout=timeout,
        what=f"{source} answers on all",
    )


def limits_of_broker_1(cluster: Cluster, hard: str | None) -> None:
    """For the others, a limit below what is used is a full disk."""
    alter_broker_config(cluster.brokers[0], {HARD: hard}, broker=1)


@pytest.mark.proves("faults.pipeline-silent")
def test_a_full_disk_stops_producers_on_all_brokers_by_the_record_and_by_the_standby_while_records_are_missing(
    cluster: Cluster,
) -> None:
    with ProducerLoad(cluster.client_config(client_id="p"), "t", rate=1e6) as load:
        eventually(lambda: load.meter.bytes > 1_000_000)
        with FakePipeline(cluster, VALIDITY):
            wait_for_source(cluster, RECORD_SOURCE)
            limits_of_broker_1(cluster, hard="1")
            wait_for_state(cluster, PAUSE)
            ends, before = settled_ends(cluster), transitions(*cluster.brokers)
        wait_for_source(cluster, SNAPSHOT_SOURCE)
        keep_reading(cluster, SNAPSHOT_SOURCE)
        with FakePipeline(cluster, VALIDITY):
            wait_for_source(cluster, RECORD_SOURCE)
            keep_reading(cluster, RECORD_SOURCE)
            eventually(lambda: all(gauge(node, "ClusterRecord", "Age") < VALIDITY for node in cluster.brokers))
        assert transitions(*cluster.brokers) == before, "the state did not change, not even for a moment"
        assert appended(cluster) == ends
        for partition in range(3):
            assert attempt(cluster.client_config(client_id="q"), "t", partition) == "NOT_ENOUGH_REPLICAS"
        limits_of_broker_1(cluster, hard=None)
        eventually(lambda: all(now > was for now, was in zip(appended(cluster), ends, strict=True)))
        assert load.drain() == 0
    assert load.errors == [], "nothing is lost"
    silent = f"no record of this cluster in {TOPIC} within validity (8 s): factor source {SNAPSHOT_SOURCE} answers"
    for node in cluster.brokers:
        log = node.log_text()
        assert "broker 1, volume" in log.rsplit("OPEN -> PAUSE", 1)[1].splitlines()[0]
        assert silent in log
        assert f"factor source {RECORD_SOURCE} answers again" in log


def keep_reading(cluster: Cluster, source: str) -> None:
    """Waits until the source has been read several times."""
    end = time.monotonic() + 2
    eventually(lambda: time.monotonic() > end)
    wait_for_source(cluster, source)


def test_without_records_the_standby_protects_and_explain_names_it(cluster: Cluster) -> None:
    limits_of_broker_1(cluster, hard="1")
    wait_for_state(cluster, PAUSE)
    node = cluster.brokers[1]
    output = explain_client(node, ANYONE, "p")[1]
    assert f"{SNAPSHOT_SOURCE} answers as the standby, since no record reaches {RECORD_SOURCE}" in output
    limits_of_broker_1(cluster, hard=None)
    wait_for_state(cluster, OPEN)
