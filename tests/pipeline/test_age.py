"""The rule of age in SQL equals the one in Python, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from pyspark.sql import SparkSession

from quotahost.pipeline.frames import seen_at
from quotahost.records.fields import MAX_DELAY_MS, delay_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = 1_700_000_000_000
VALIDITY = timedelta(seconds=15, milliseconds=1)

Row = tuple[int | None, datetime | None, datetime]


def rows() -> list[Row]:
    random = Random(35)
    offsets = [0, 1, -1, 999, 1000, 7_499, 7_500, 7_501, 10**6, -(10**6), 10**12]
    found: list[Row] = []
    for stated in [None, None, 0, 1, 30_000, MAX_DELAY_MS, MAX_DELAY_MS + 1, 2**63 - 1]:
        for offset in offsets:
            written = EPOCH + timedelta(milliseconds=WRITTEN + random.randint(0, 10**6))
            captured = written - timedelta(milliseconds=offset, microseconds=random.randint(0, 999))
            found += [(stated, captured, written), (stated, None, written)]
    return found


def test_the_rule_in_sql_equals_the_rule_in_python(spark: SparkSession) -> None:
    given = rows()
    frame = spark.createDataFrame(given, "stated BIGINT, captured TIMESTAMP, written TIMESTAMP")
    seen = f"unix_micros({seen_at('stated', 'captured', 'written', VALIDITY)}) AS seen"
    found = frame.selectExpr("stated", "unix_micros(captured) AS c", "unix_millis(written) AS w", seen).collect()
    for stated, captured_us, written_ms, seen_us in found:
        # A tombstone states nothing and was captured when it was written.
        captured = EPOCH + timedelta(microseconds=written_ms * 1000 if captured_us is None else captured_us)
        delay = delay_ms(stated, captured, written_ms, VALIDITY // timedelta(milliseconds=1))
        assert seen_us == (written_ms - delay) * 1000, (stated, captured_us, written_ms)
    assert len(found) == len(given)
