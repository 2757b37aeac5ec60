"""A checkpoint whose state another version of quotahost has written: Spark refuses it, and the query begins anew."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harness.system.waiting import eventually
from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as parse
from quotahost.pipeline.frames import bring_forward, sql
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.queries import place
from quotahost.pipeline.supervisor import Supervisor, set_checkpoint_aside
from tests.pipeline.support.records import Log, told, volume

PATIENCE = 120.0  # seconds


def query(spark: SparkSession, topic: Log, checkpoint: Path, publish: Callable[[DataFrame, int], None]) -> Any:
    good = parse.parse(topic.stream(spark)).where("error IS NULL")
    volumes = aggregate.state(good, timedelta(minutes=1))
    writer = volumes.writeStream.outputMode("complete").foreachBatch(publish)
    return writer.queryName("volumes").option("checkpointLocation", place(str(checkpoint), "volumes")).start()


def of_another_version(name: str, **fields: Any) -> str:
    """The query's text, as a version had it that kept one field less of each snapshot."""
    text = sql(name, **fields)
    assert text.count(", s.offlineLogDirs AS offline") == 1
    return text.replace(", s.offlineLogDirs AS offline", "").replace("s.offline", "array()")


@pytest.mark.proves("faults.checkpoint")
def test_at_the_first_failure_it_is_set_aside_and_the_same_is_rebuilt_from_the_topic(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, checkpoint = Log(tmp_path / "topic"), tmp_path / "checkpoint"
    topic.write(*(told(str(n), 9, volume("/a", 100, n)) for n in range(3)))
    with monkeypatch.context() as older:
        older.setattr(aggregate, "sql", of_another_version)
        began: StreamingQuery = query(spark, topic, checkpoint, lambda rows, _: bring_forward(rows))
        began.processAllAvailable()
        began.stop()

    topic.write(told("0", 1, volume("/a", 100, 50)))
    found: dict[str, int] = {}
    starts: list[StreamingQuery] = []

    def publish(rows: DataFrame, _: int) -> None:
        found.update({row["broker"]: row["consumed"] for row in rows.collect()})

    def start() -> StreamingQuery:
        starts.append(query(spark, topic, checkpoint, publish))
        return starts[-1]

    supervisor = Supervisor(Progress(), partial(set_checkpoint_aside, spark, str(checkpoint)))
    supervisor.add("volumes", start)

    def rebuilt() -> bool:
        supervisor.look()
        return found == {"0": 50, "1": 1, "2": 2} and starts[-1].lastProgress is not None

    try:
        eventually(rebuilt, PATIENCE)
    finally:
        supervisor.close()
    assert len(starts) == 2, "it was tried again with the checkpoint that Spark had refused"
    assert "SCHEMA_NOT_COMPATIBLE" in str(starts[0].exception())
    assert [path.is_dir() for path in checkpoint.glob("volumes.set-aside-*")] == [True]
