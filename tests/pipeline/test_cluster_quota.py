"""Cluster-wide client quotas on three brokers, divided by the real pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness import QUICK_WINDOW, Cluster, eventually, settled_rate
from harness.pipeline import PipelineProcess
from tests.broker.support import gauge
from tests.broker.test_cluster_quota import QUOTA, limit, limits, load, three_brokers

pytestmark = [pytest.mark.broker, pytest.mark.driver]
PATIENCE: Final = 120.0  # seconds: a cold Spark on a busy machine


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with three_brokers(tmp_path / "cluster") as made:
        yield made


def test_a_client_reaches_its_quota_wherever_it_writes(cluster: Cluster, tmp_path: Path) -> None:
    first, second, _ = cluster.brokers
    with PipelineProcess(tmp_path / "pipeline", cluster.bootstrap, tick="1s", validity="8s") as driver:
        with load(cluster, 1) as one:
            eventually(lambda: limit(first) > 0.9 * QUOTA, PATIENCE, what="the share of one broker")
            assert settled_rate(one, QUICK_WINDOW, since=time.monotonic()) == pytest.approx(QUOTA, rel=0.1)
        moved = time.monotonic()
        with load(cluster, 2):
            eventually(lambda: limit(second) > 0.9 * QUOTA, PATIENCE, on_timeout=lambda: str(limits(cluster)))
            print(f"the share followed the load within {time.monotonic() - moved:.1f} s")
        with ExitStack() as stack:
            loads = [stack.enter_context(load(cluster, n)) for n in (1, 2, 3)]
            for node in cluster.brokers:
                eventually(lambda node=node: limit(node) == pytest.approx(QUOTA / 3, rel=0.1), PATIENCE)
            since = time.monotonic() + 3 * QUICK_WINDOW  # muted so long where the share fell to a third
            rates = [settled_rate(each, QUICK_WINDOW, since=since) for each in loads]
            assert sum(rates) == pytest.approx(QUOTA, rel=0.1)
        driver.kill()
        eventually(lambda: gauge(first, "Shares", "Stale") == 1, 60)
        eventually(lambda: limits(cluster) == [QUOTA / 3] * 3, 60)
