"""A pipeline whose topics get another prefix, with the checkpoint that it had."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.model import QuotaType
from quotahost.records import shares
from quotahost.records.usage import Used
from tests.pipeline.support.records import volume
from tests.pipeline.support.topics import Snapshots, published, read_all
from tests.pipeline.test_job import PATIENCE, Running

pytestmark = pytest.mark.driver  # a minute


def test_after_the_topics_have_got_another_prefix_no_broker_is_listed_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A broker would look stale as well, by what the checkpoint has of the topic of before: all brokers would pause."""
    with KafkaNode(tmp_path / "node") as node:
        # Long enough for what came by the first topics to be stale.
        for prefix, seconds in (("first.", 0), ("second.", 20)):
            running = Running(spark, node, tmp_path / "pipeline", prefix=prefix)
            try:
                _report_for(node, prefix, seconds)
            finally:
                running.end()
            assert {each.stale for each in published(node.bootstrap, f"{prefix}cluster_volumes")} == {0}


def _report_for(node: KafkaNode, prefix: str, seconds: float) -> None:
    """Report as broker 1 for so many seconds at least, until records and shares follow; all shares can be read."""
    used = Used("alice", "app", QuotaType.PRODUCE, 1.0, None, 1e6)
    brokers, begun = Snapshots(node.bootstrap, prefix), time.monotonic()

    def told() -> bool:
        brokers.publish("1", [volume("/a", 100, 1)])
        brokers.use("1", used)
        records = published(node.bootstrap, f"{prefix}cluster_volumes")
        written = read_all(node.bootstrap, f"{prefix}shares")
        given = [shares.decode(each.key(), each.value() or b"").clients for each in written]
        return time.monotonic() - begun > seconds and bool(records and records[-1].reporting and given and given[-1])

    eventually(told, PATIENCE, poll=1)
