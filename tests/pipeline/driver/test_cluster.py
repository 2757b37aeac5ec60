"""Three brokers and the pipeline: a full disk of one stops producers on all, and a budget or a quota is one for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import alter_broker_config, create_topic, unregister_broker
from harness.kafka.cluster import Cluster
from harness.system.pipeline import PipelineProcess
from harness.system.waiting import eventually
from quotahost.kafka.commands import CompactedTopic
from quotahost.model.budgets import Budget
from quotahost.records.budgets import encode, key_of
from tests.broker.disks.test_disks import HARD, SETTINGS, disk_of_broker_1_is_full
from tests.broker.quotas.test_cluster_quota import check_quota_on_every_broker, three_brokers, wait_for_equal_parts
from tests.broker.support.node import cluster_with_fence
from tests.broker.support.numbers import attempt, settled_ends
from tests.broker.support.pipeline import RECORD_SOURCE, SNAPSHOT_SOURCE, wait_for_source
from tests.broker.support.quotas import QUOTAS
from tests.broker.support.seen import OPEN, PAUSE, gauge, transitions, wait_for_state
from tests.pipeline.topics import latest, published

pytestmark = pytest.mark.driver
VALIDITY: Final = "8s"
EXPIRY: Final = "20s"
PATIENCE: Final = 240.0  # seconds: a cold Spark on a busy machine


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    own = {"factor.source": RECORD_SOURCE, "validity": VALIDITY, "budgets": "on"}
    with cluster_with_fence(tmp_path, SETTINGS | own) as made:
        yield made


@pytest.mark.proves("faults.pipeline-silent", "faults.full-disk")
def test_a_full_disk_stops_all_a_used_up_budget_its_writers_and_spark_may_come_and_go(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = cluster.client_config(client_id="p")
    create_topic(cluster.brokers[0], "orders.eu")
    fill_topic(config, "orders.eu", 60_000)
    quotas = CompactedTopic(config, QUOTAS, "quotahost-quotas")
    assert quotas.write({key_of("orders"): encode(Budget("orders", ("orders.*",), 50_000))}) == {}
    (log,) = (file for node in cluster.brokers for file in node.data_dirs[0].glob("orders.eu-0/*.log"))
    size = log.stat().st_size
    driver = PipelineProcess(tmp_path / "pipeline", cluster.bootstrap, tick="1s", validity=VALIDITY)
    with ProducerLoad(config, "t", rate=1e6) as load, driver:
        wait_for_source(cluster, RECORD_SOURCE, PATIENCE)
        wait_for_state(cluster, OPEN)
        eventually(lambda: (told := latest(cluster.bootstrap)) and told.budgets == (("orders", size, 0),), PATIENCE)
        eventually(lambda: all(gauge(node, "Budget,name=orders", "Used") == size for node in cluster.brokers))
        assert attempt(config, "orders.eu") == "NOT_ENOUGH_REPLICAS"
        eventually(lambda: load.meter.bytes > 1_000_000)
        disk_of_broker_1_is_full(cluster)
        ends, before = settled_ends(cluster), transitions(*cluster.brokers)
        driver.kill()
        wait_for_source(cluster, SNAPSHOT_SOURCE)
        driver.start()
        wait_for_source(cluster, RECORD_SOURCE, PATIENCE)
        assert transitions(*cluster.brokers) == before, "no broker left PAUSE, not even for a moment"
        assert settled_ends(cluster) == ends
        alter_broker_config(cluster.brokers[0], {HARD: None}, broker=1)
        wait_for_state(cluster, OPEN)
        sent = load.meter.bytes
        eventually(lambda: load.meter.bytes > sent + 1_000_000)


@pytest.mark.proves("faults.killed-broker")
def test_by_sparks_record_a_broker_down_stops_nobody_and_its_full_disk_counts(cluster: Cluster, tmp_path: Path) -> None:
    first, third = cluster.brokers[0], cluster.brokers[2]
    with PipelineProcess(tmp_path / "pipeline", cluster.bootstrap, tick="1s", validity=VALIDITY, expiry=EXPIRY):
        wait_for_source(cluster, RECORD_SOURCE, PATIENCE)
        wait_for_state(cluster, OPEN)
        before = gauge(first, "Factor", "Transitions")
        third.stop()
        eventually(lambda: gauge(first, "Brokers", "LastKnown") == 1, PATIENCE)
        assert gauge(first, "Factor", "Transitions") == before
        third.start()
        alter_broker_config(first, {HARD: "1"}, broker=3)
        wait_for_state(cluster, PAUSE)
        third.stop()
        eventually(lambda: gauge(first, "Brokers", "LastKnown") == 1, PATIENCE)
        wait_for_state(cluster, PAUSE, but=third)
        eventually(lambda: records_without_broker_3(cluster) > 3, PATIENCE, "the pipeline lists no broker 3")
        assert gauge(first, "Brokers", "LastKnown") == 1
        wait_for_state(cluster, PAUSE, but=third)
        assert gauge(first, f"FactorSource,name={RECORD_SOURCE}", "Answers") == 1
        unregister_broker(first, 3)
        wait_for_state(cluster, OPEN, but=third)


def records_without_broker_3(cluster: Cluster) -> int:
    """The number of the latest records that have the volumes of broker 3, and don't list the broker as stale."""
    last = published(cluster.bootstrap)[-5:]
    return sum(each.stale == 0 and any(one.volume.broker == "3" for one in each.silent) for each in last)


def test_a_client_reaches_its_quota_wherever_it_writes(tmp_path: Path) -> None:
    with three_brokers(tmp_path / "cluster") as cluster:
        with PipelineProcess(tmp_path / "pipeline", cluster.bootstrap, tick="1s", validity=VALIDITY):
            check_quota_on_every_broker(cluster)
        wait_for_equal_parts(cluster)
