"""Dead letters: copies of the refused snapshots and usage records, in a topic of their own, with the reason of each.

An operator reads there what a broker, or a stranger, published wrongly. The query judges every record a second time,
apart from the queries that use the good ones: so it writes a dead letter at least once (Spark's checkpoint proceeds
only after the sink), and neither holds up the other. A record that is read again gives a dead letter with the same
key.

The second reading costs little. A driver that was just started takes 53 CPU seconds instead of 45 for a backlog of
200,000 snapshots and their dead letters, and 71 % instead of 70 % of a core while 1,000 snapshots arrive in a second
(10,000 brokers, one each 10 s), measured one after the other with the form that remembered which offsets were good.
Meanwhile the volumes go first by Spark's pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotahost.pipeline.spark.resources import sql

#: The name of the query, in the checkpoint and in the label ``query`` of the metrics.
DEAD_LETTERS: Final = "refused"
#: Bytes of a refused record's value and of its key that its dead letter keeps.
MAX_VALUE: Final = 64 * 1024
MAX_KEY: Final = 1024


def dead_letters(snapshots: DataFrame, usage: DataFrame) -> DataFrame:
    """The dead letters of the records that have an ``error``: key, value and headers, as Kafka's sink takes them.

    Args:
        snapshots: as ``volumes.parse.parse`` returns them.
        usage: as ``shares.parse`` returns them.
    """
    text = sql("refused", value_bytes=MAX_VALUE, key_bytes=MAX_KEY)
    found = snapshots.sparkSession.sql(text, parsed=snapshots, usage=usage)
    # Spark reports this count with the batch's progress, for the metric: no second pass counts them.
    return found.observe(DEAD_LETTERS, F.count("key").alias(DEAD_LETTERS))


def refused(progress: Mapping[str, Any]) -> int:
    """How many dead letters a batch of the query had, by its progress."""
    return int(progress["observedMetrics"].get(DEAD_LETTERS, {DEAD_LETTERS: 0})[DEAD_LETTERS])
