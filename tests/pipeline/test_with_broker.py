"""A broker with quotahost and the pipeline together: how full its disk is comes back as a record that Spark makes."""

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from harness.kafka.admin import alter_broker_config
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, PAUSE, callback_node, gauge, state
from tests.pipeline.support.topics import newest
from tests.pipeline.test_job import PATIENCE, Running

pytestmark = [pytest.mark.broker, pytest.mark.driver]  # two minutes: a broker and a driver
HARD: Final = PREFIX + "static.storage.hard"
# A batch of a cold Spark on a busy machine may take a good part of a minute. With a shorter validity its records would
# be late, and the standby source would answer.
VALIDITY: Final = "120s"
SETTINGS: Final = {
    "factor.source": "cluster-volumes", "fence.authorizer": "none", "validity": VALIDITY, "snapshots.period": "1s",
}  # fmt: skip


@pytest.mark.proves("faults.full-disk")
def test_a_disk_at_its_hard_limit_stops_producers_by_the_record_that_spark_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    with callback_node(tmp_path / "node", SETTINGS) as node:
        # Until Spark answers the standby source does, so the broker is in service.
        eventually(lambda: state(node) == OPEN, PATIENCE)
        running = Running(spark, node, tmp_path / "pipeline", VALIDITY)
        try:
            for hard, factor, expected in ((None, None, OPEN), ("1", 0.0, PAUSE), (None, None, OPEN)):
                alter_broker_config(node, {HARD: hard}, broker=1)
                eventually(lambda factor=factor: _record_says(node, factor), PATIENCE)
                eventually(lambda expected=expected: _by_the_record(node) and state(node) == expected, PATIENCE)
        finally:
            running.end()


def _record_says(node: KafkaNode, factor: float | None) -> bool:
    record = newest(node.bootstrap)
    return record is not None and record.reporting == 1 and record.smallest_factor == factor


def _by_the_record(node: KafkaNode) -> bool:
    return gauge(node, "FactorSource,name=cluster-volumes", "Answers") == 1
