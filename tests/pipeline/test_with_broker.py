"""A broker with quotahost and the pipeline together: how full its disk is comes back as a record that Spark makes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from harness.kafka.admin import alter_broker_config
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, PAUSE, callback_node, gauge, state
from tests.pipeline.test_job import PATIENCE, Running

pytestmark = [pytest.mark.broker, pytest.mark.driver]  # two minutes: a broker and a driver
HARD: Final = PREFIX + "static.storage.hard"
SETTINGS: Final = {
    "factor.source": "cluster-volumes", "fence.authorizer": "none", "validity": "15s", "snapshots.period": "1s",
}  # fmt: skip


def test_a_disk_at_its_hard_limit_stops_producers_by_the_record_that_spark_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    with callback_node(tmp_path / "node", SETTINGS) as node:
        # Until Spark answers the standby source does, so the broker is in service.
        eventually(lambda: state(node) == OPEN, PATIENCE)
        running = Running(spark, node, tmp_path / "pipeline")
        try:
            for hard, expected in ((None, OPEN), ("1", PAUSE), (None, OPEN)):
                alter_broker_config(node, {HARD: hard}, broker=1)
                eventually(lambda: gauge(node, "FactorSource,name=cluster-volumes", "Answers") == 1, PATIENCE)
                eventually(lambda expected=expected: state(node) == expected, PATIENCE)
        finally:
            running.end()
