"""Cluster-wide client quotas on three brokers, divided by the real pipeline."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.kafka.cluster import Cluster
from harness.system.pipeline import PipelineProcess
from tests.broker.quotas.test_cluster_quota import check_quota_on_every_broker, three_brokers, wait_for_equal_parts

pytestmark = [pytest.mark.broker, pytest.mark.driver]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with three_brokers(tmp_path / "cluster") as made:
        yield made


def test_a_client_reaches_its_quota_wherever_it_writes(cluster: Cluster, tmp_path: Path) -> None:
    with PipelineProcess(tmp_path / "pipeline", cluster.bootstrap, tick="1s", validity="8s"):
        check_quota_on_every_broker(cluster)
    wait_for_equal_parts(cluster)
