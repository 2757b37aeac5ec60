"""A broker and the pipeline together: Spark makes a record of the broker's snapshots, and the broker reads it."""

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from harness.clients.producer import fill_topic
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX
from harness.system.waiting import eventually
from quotahost.kafka.commands import CompactedTopic
from quotahost.model.budgets import Budget
from quotahost.records.budgets import encode, key_of
from tests.broker.support.node import callback_node
from tests.broker.support.numbers import attempt
from tests.broker.support.quotas import QUOTAS
from tests.broker.support.seen import OPEN, PAUSE, gauge, state
from tests.pipeline.test_job import PATIENCE, Running
from tests.pipeline.topics import latest

pytestmark = pytest.mark.driver  # two minutes: a broker and a driver
HARD: Final = PREFIX + "static.storage.hard"
# A batch of a cold Spark on a busy machine may take a good part of a minute. With a shorter validity its records would
# be late, and the standby source would answer.
VALIDITY: Final = "120s"
SETTINGS: Final = {
    "factor.source": "cluster-volumes", "fence.authorizer": "none", "validity": VALIDITY, "snapshots.period": "1s",
    "budgets": "on",
}  # fmt: skip


@pytest.mark.proves("faults.full-disk")
def test_a_full_disk_and_a_used_up_budget_stop_producers_by_sparks_record(spark: SparkSession, tmp_path: Path) -> None:
    with callback_node(tmp_path / "node", SETTINGS, properties=FENCE) as node:
        create_topic(node, "orders.eu")
        fill_topic(node.client_config(), "orders.eu", 60_000)
        quotas = CompactedTopic(node.client_config(), QUOTAS, "quotahost-quotas")
        assert quotas.write({key_of("orders"): encode(Budget("orders", ("orders.*",), 50_000))}) == {}
        # Until Spark answers, the standby source does, so the broker is in service.
        eventually(lambda: state(node) == OPEN, PATIENCE)
        with Running(spark, node, tmp_path / "pipeline", VALIDITY):
            for hard, factor, expected in ((None, None, OPEN), ("1", 0.0, PAUSE), (None, None, OPEN)):
                alter_broker_config(node, {HARD: hard}, broker=1)
                eventually(lambda factor=factor: _record_says(node, factor), PATIENCE)
                eventually(lambda expected=expected: _by_the_record(node) and state(node) == expected, PATIENCE)
            record = latest(node.bootstrap)
            size = (tmp_path / "node" / "data-1" / "orders.eu-0" / f"{0:020}.log").stat().st_size
            assert size > 50_000
            assert (record and record.budgets) == (("orders", size, 0),)
            assert gauge(node, "Budget,name=orders", "Used") == size
            assert attempt(node.client_config(), "orders.eu") == "NOT_ENOUGH_REPLICAS"


def _record_says(node: KafkaNode, factor: float | None) -> bool:
    record = latest(node.bootstrap)
    return record is not None and record.reporting == 1 and record.smallest_factor == factor


def _by_the_record(node: KafkaNode) -> bool:
    return gauge(node, "FactorSource,name=cluster-volumes", "Answers") == 1
