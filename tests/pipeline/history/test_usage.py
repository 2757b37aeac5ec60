"""``quotahost quotas usage``: a history that the pipeline's own queries have written gives the sums of a bill."""

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner, Result

from harness.rollup import Record
from quotahost.cli.main import app
from quotahost.pipeline import shares, snapshots
from quotahost.pipeline.history import OF_USAGE, USAGE_COLUMNS, append, folder, held, transfers
from quotahost.records import snapshot as snapshot_records
from quotahost.records import usage as usage_records
from quotahost.records.snapshot import Snapshot
from quotahost.records.usage import ClientKey, Used
from tests.pipeline.support.records import Log, as_records, frame, record
from tests.pipeline.support.rows import NOON, READ, WRITE, told, used

MONTH = ("--month", "2026-11")
SOON = timedelta(milliseconds=50)
LABELS = """
cluster-quotas:
  - {user: alice, produce: 1M, label: team-a}
  - {user: alice, client-id: bulk, produce: 1M}
  - {user: eve, produce: 1M, label: "=HYPERLINK(1)\\e[31m"}
budgets:
  - {topics: [orders.*], bytes: 1G, label: team-a}
  - {topics: [logs], bytes: 1G}
"""


def usage(*records: tuple[float, str, Sequence[Used]]) -> list[Record]:
    return as_records(told(*records), usage_records.encode)


def sizes(*records: tuple[float, str, dict[str, int]]) -> list[Record]:
    """Snapshots of (seconds after NOON, broker, bytes by budget)."""
    made = [
        Snapshot(broker, NOON + timedelta(seconds=at), (), cluster="c", budgets=tuple(bytes_of.items()))
        for at, broker, bytes_of in records
    ]
    return as_records(made, snapshot_records.encode)


def test_a_minutes_bytes_are_those_that_its_records_tell_whatever_the_rates(spark: SparkSession) -> None:
    alice, bob = ClientKey("alice", "app", WRITE), ClientKey("bob", "app", READ)
    lively = [(i / 2, "1", [Used(*alice, 1e6, None, 1e6, 50.0)]) for i in range(20)]
    silent = [(float(at), "1", [Used(*bob, 7.0, None, 1e6, 35.0)]) for at in range(10, 60, 5)]
    older = (55.0, "1", [Used(*alice, 1e6, None, 1e6)])  # a broker that doesn't tell
    both = [(float(at), "1", [used(10.0, "eve"), used(30.0, "eve", kind=READ)]) for at in range(0, 60, 10)]
    parsed = shares.parse(frame(spark, usage(*lively, *silent, older, *both)), "c")
    rows = transfers(parsed).orderBy("user").collect()
    assert [(row["user"], row["at"].minute, row["written"], row["read"]) for row in rows] == [
        ("alice", 0, 1000.0, 0.0), ("bob", 0, 0.0, 350.0), ("eve", 0, 600.0, 1800.0),
    ]  # fmt: skip


def test_a_wrong_list_of_budgets_counts_as_none(spark: SparkSession) -> None:
    value = snapshot_records.encode(Snapshot("1", NOON, (), cluster="c", budgets=(("good", 5),)))
    wrong = ['[["a b",1]]', '[["a",-1]]', '[["a",1,2]]', '[["a"]]', f'[["a",{10**20}]]', '"a"', '[["a\\n",1]]']
    values = [value, *(value.replace(b'[["good",5]]', listed.encode()) for listed in wrong)]
    assert len(set(values)) == 1 + len(wrong)
    given = snapshots.parse(frame(spark, [record(n, "1", each, NOON) for n, each in enumerate(values)]))
    assert [(row["budget"], row["bytes"]) for row in held(given).collect()] == [("good", 5.0)]


# ---- from records to the table ---------------------------------------------------------------------


def _stream(log: Log, records: Sequence[Record], start: Callable[[], list[StreamingQuery]]) -> None:
    """What the pipeline's queries make of these records."""
    queries = start()
    try:
        # The last one moves the watermark past the others, and is read twice: a batch writes what had passed before it.
        for written in (records, records[-1:]):
            log.write(*written)
            for query in queries:
                query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of the 21st of November, by the pipeline's own queries: several clients, two budgets, two brokers."""
    at = tmp_path_factory.mktemp("usage")
    place, snapshots_log, usage_log = str(at / "history"), Log(at / "snapshots"), Log(at / "usage")
    clients = [used(10.0), used(20.0, client="bulk"), used(40.0, kind=READ), used(5.0, "mallory"), used(1.0, "eve")]
    uses = [(10.0 * n, "1", clients) for n in range(360)] + [(10.0 * n, "2", [used(10.0)]) for n in range(360)]
    stored = [(60.0 * i, "1", {"orders.*": 100 if i < 30 else 300, "logs": 7}) for i in range(60)]
    stored += [(60.0 * i, "2", {"orders.*": 50}) for i in range(60)]

    def of_usage() -> list[StreamingQuery]:
        parsed = shares.parse(usage_log.stream(spark), "c")
        return [append(parsed, part, place, SOON) for part in OF_USAGE]

    def of_snapshots() -> list[StreamingQuery]:
        return [append(snapshots.parse(snapshots_log.stream(spark), {"snapshots": "c"}), "budgets", place, SOON)]

    _stream(usage_log, usage(*uses, (2 * 3600.0, "1", [used(1.0)])), of_usage)
    _stream(snapshots_log, sizes(*stored, (7200.0, "1", {"logs": 7})), of_snapshots)
    return at / "history"


def test_the_minutes_that_have_passed_are_written_once(history: Path, spark: SparkSession) -> None:
    rows = spark.read.schema(USAGE_COLUMNS).parquet(folder(str(history), "usage")).collect()
    minutes = sorted(row["at"].minute for row in rows if row["user"] == "eve")
    assert minutes == list(range(60))
    assert {row["rate"] for row in rows if row["client"] == "bulk"} == {20.0}


def run(directory: Path, history: Path, *options: str) -> Result:
    file = directory / "quotas.yaml"
    file.write_text(LABELS)
    return CliRunner().invoke(app, ["quotas", "usage", str(file), "--history", str(history), *options])


def test_the_bill_of_a_history_that_the_pipeline_wrote(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "bill.csv"
    result = run(tmp_path, history, *MONTH, "--csv", str(out))
    assert result.exit_code == 0, result.output
    rows = {row["label"]: row for row in csv.DictReader(out.read_text().splitlines())}
    amounts = ("bytes_in", "bytes_out", "stored_byte_hours", "stored_bytes_mean", "stored_bytes_last")
    # alice's client bulk is named without a label, so that of alice counts; brokers 1 and 2 are added up.
    assert [int(rows["team-a"][key]) for key in amounts] == [40 * 3600, 40 * 3600, 250, 250, 350]
    assert [int(rows[""][key]) for key in amounts] == [5 * 3600, 0, 7, 7, 7]
    assert {(row["cluster"], row["month"], row["hours_recorded"], row["hours_of_month"]) for row in rows.values()} == {
        ("c", "2026-11", "1", "720")
    }
    # A spreadsheet sees no formula, a terminal no command.
    assert [label for label in rows if "HYPERLINK" in label] == ["'=HYPERLINK(1)\\x1b[31m"]
    assert "\x1b" not in result.stdout
    assert "(no label)" in result.stdout
    assert "Incomplete, cluster c: 1 of 720 hours are recorded" in result.stdout


def test_where_nothing_is_recorded_the_error_says_what_to_turn_on(history: Path, tmp_path: Path) -> None:
    for place, options, says in ((history, ("--cluster", "other"), "publish-usage"), (tmp_path, (), "--history DIR")):
        result = run(tmp_path, place, *MONTH, *options)
        assert result.exit_code == 1
        assert says in result.stderr
    assert run(tmp_path, history, "--month", "november").exit_code == 2


def test_a_month_is_one_of_utc_wherever_spark_runs(history: Path, tmp_path: Path, spark: SparkSession) -> None:
    late = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    place = tmp_path / "history"
    records = usage(*(((late - NOON).total_seconds() + 10 * i, "1", [used(1.0)]) for i in range(12)))
    transfers(shares.parse(frame(spark, records), "c")).write.partitionBy("day").parquet(f"{place}-bytes")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        for month in ("2026-11", "2026-12"):
            out = tmp_path / f"{month}.csv"
            assert run(tmp_path, place, "--month", month, "--csv", str(out)).exit_code == 0
            (row,) = csv.DictReader(out.read_text().splitlines())
            assert (row["bytes_in"], row["hours_recorded"]) == ("60", "1")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
