"""``quotahost quotas usage``: a history that the pipeline's own queries have written gives the sums of a bill."""

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner, Result

from quotahost.cli.main import app
from quotahost.model import QuotaType
from quotahost.pipeline import shares, snapshots
from quotahost.pipeline.history import held, start_budgets, start_bytes, transfers
from quotahost.records import snapshot as snapshot_records
from quotahost.records import usage as usage_records
from quotahost.records.snapshot import Snapshot
from quotahost.records.usage import ClientKey, Usage, Used
from tests.pipeline.support.records import as_records, frame, record
from tests.pipeline.support.rows import NOON

WRITE, READ = QuotaType.PRODUCE, QuotaType.FETCH
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


def used(rate: float, user: str = "alice", client: str = "app", kind: QuotaType = WRITE) -> Used:
    """In a record that comes 10 s after the one before."""
    return Used(ClientKey(user, client, kind), rate, None, 1e6, 10 * rate)


def usage(spark: SparkSession, *records: tuple[float, str, Sequence[Used]]) -> DataFrame:
    """Records of (seconds after NOON, broker, clients), as the pipeline reads them."""
    made = [Usage(broker, NOON + timedelta(seconds=at), tuple(clients), "c") for at, broker, clients in records]
    return shares.parse(frame(spark, as_records(made, usage_records.encode)), "c")


def sizes(spark: SparkSession, *records: tuple[float, str, dict[str, int]]) -> DataFrame:
    """Snapshots of (seconds after NOON, broker, bytes by budget), as the pipeline reads them."""
    made = [
        Snapshot(broker, NOON + timedelta(seconds=at), (), cluster="c", budgets=tuple(bytes_of.items()))
        for at, broker, bytes_of in records
    ]
    return snapshots.parse(frame(spark, as_records(made, snapshot_records.encode)))


def moved(minutes: DataFrame) -> list[tuple[Any, ...]]:
    rows = (tuple(row) for row in minutes.select("user", "broker", "at", "written", "read").collect())
    return sorted((user, broker, at.minute, written, read) for user, broker, at, written, read in rows)


def test_a_minutes_bytes_are_those_that_its_records_tell_whatever_the_rates(spark: SparkSession) -> None:
    alice, bob = ClientKey("alice", "app", WRITE), ClientKey("bob", "app", READ)
    lively = [(i / 2, "1", [Used(alice, 1e6, None, 1e6, 50.0)]) for i in range(20)]
    silent = [(float(at), "1", [Used(bob, 7.0, None, 1e6, 35.0)]) for at in range(10, 60, 5)]
    older = (55.0, "1", [Used(alice, 1e6, None, 1e6)])  # a broker that doesn't tell
    assert moved(transfers(usage(spark, *lively, *silent, older), "c")) == [
        ("alice", "1", 0, 1000.0, 0.0), ("bob", "1", 0, 0.0, 350.0),
    ]  # fmt: skip


def test_writes_and_reads_of_a_client_stand_side_by_side(spark: SparkSession) -> None:
    told = [(float(at), "1", [used(10.0), used(30.0, kind=READ)]) for at in range(0, 60, 10)]
    assert moved(transfers(usage(spark, *told), "c")) == [("alice", "1", 0, 600.0, 1800.0)]


def test_a_wrong_list_of_budgets_counts_as_none(spark: SparkSession) -> None:
    value = snapshot_records.encode(Snapshot("1", NOON, (), cluster="c", budgets=(("good", 5),)))
    wrong = ['[["a b",1]]', '[["a",-1]]', '[["a",1,2]]', '[["a"]]', f'[["a",{10**20}]]', '"a"', '[["a\\n",1]]']
    values = [value, *(value.replace(b'[["good",5]]', listed.encode()) for listed in wrong)]
    assert len(set(values)) == 1 + len(wrong)
    given = snapshots.parse(frame(spark, [record(n, "1", each, NOON) for n, each in enumerate(values)]))
    assert [(row["budget"], row["bytes"]) for row in held(given).collect()] == [("good", 5.0)]


# ---- from records to the table ---------------------------------------------------------------------


def _stream(spark: SparkSession, source: Path, rows: DataFrame, start: Callable[[DataFrame], StreamingQuery]) -> None:
    """What the pipeline's query makes of these rows."""
    # The rows that come last are read once more: a batch writes the parts that had passed before it.
    last = rows.orderBy("offset", ascending=False).limit(1)
    rows.coalesce(1).write.parquet(str(source))
    query = start(spark.readStream.schema(rows.schema).parquet(str(source)))
    try:
        query.processAllAvailable()
        last.write.mode("append").parquet(str(source))
        query.processAllAvailable()
    finally:
        query.stop()


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of the 21st of November, by the pipeline's own queries: several clients, two budgets, two brokers."""
    folder = tmp_path_factory.mktemp("usage")
    clients = [used(10.0), used(20.0, client="bulk"), used(40.0, kind=READ), used(5.0, "mallory"), used(1.0, "eve")]
    told = [(float(at), "1", clients) for at in range(0, 3600, 10)]
    told += [(float(at), "2", [used(10.0)]) for at in range(0, 3600, 10)]
    # The last record moves the watermark past the hour; one that names nobody would not.
    later = (2 * 3600.0, "1", [used(1.0)])
    stored = [(60.0 * i, "1", {"orders.*": 100 if i < 30 else 300, "logs": 7}) for i in range(60)]
    stored += [(60.0 * i, "2", {"orders.*": 50}) for i in range(60)]
    place = str(folder / "history")
    _stream(spark, folder / "u", usage(spark, *told, later), lambda rows: start_bytes(rows, "c", place, SOON))
    _stream(
        spark,
        folder / "s",
        sizes(spark, *stored, (7200.0, "1", {"logs": 7})),
        lambda rows: start_budgets(rows, place, SOON),
    )
    return folder / "history"


def run(folder: Path, history: Path, *options: str) -> Result:
    file = folder / "quotas.yaml"
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
    assert "2026-11-01 (0 of 24 hours)" in result.stdout
    assert "and 20 more days" in result.stdout


def test_another_cluster_or_month_is_an_error_that_says_what_to_turn_on(history: Path, tmp_path: Path) -> None:
    for options in ((*MONTH, "--cluster", "other"), ("--month", "2026-10")):
        result = run(tmp_path, history, *options)
        assert result.exit_code == 1
        assert "nothing is recorded" in result.stderr
        assert "publish-usage" in result.stderr
    assert run(tmp_path, history, "--month", "november").exit_code == 2


def test_a_folder_without_usage_is_an_error_that_says_what_to_turn_on(tmp_path: Path, spark: SparkSession) -> None:
    result = run(tmp_path, tmp_path / "nothing", *MONTH)
    assert result.exit_code == 1
    assert "--history DIR" in result.stderr


def test_a_month_is_one_of_utc_wherever_spark_runs(history: Path, tmp_path: Path, spark: SparkSession) -> None:
    late = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    place = tmp_path / "history"
    told = [((late - NOON).total_seconds() + 10 * i, "1", [used(1.0)]) for i in range(12)]
    transfers(usage(spark, *told), "c").write.partitionBy("day").parquet(f"{place}-bytes")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        for month in ("2026-11", "2026-12"):
            out = tmp_path / f"{month}.csv"
            assert run(tmp_path, place, "--month", month, "--csv", str(out)).exit_code == 0
            (row,) = csv.DictReader(out.read_text().splitlines())
            assert (row["bytes_in"], row["hours_recorded"]) == ("60", "1")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
