"""The history has each volume of each snapshot, the clients' usage and the budgets' bytes; a bill has their sums.

A restart neither loses nor repeats a reading. ``quotahost quotas usage`` makes the bill from a history that the
pipeline's own queries have written.
"""

import csv
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner, Result

from harness.rollup import Record
from harness.system.waiting import eventually
from quotahost.base.background import start_daemon
from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import everything
from quotahost.cli.lab.history import stored as of_folder
from quotahost.cli.main import app
from quotahost.model import QuotaType
from quotahost.pipeline import shares, snapshots
from quotahost.pipeline.history import COLUMNS, USAGE, append, folder, held, readings, uses
from quotahost.records import snapshot as snapshot_records
from quotahost.records import usage as usage_records
from quotahost.records.snapshot import Snapshot
from quotahost.records.usage import ClientKey, Usage, Used
from tests.pipeline.records import NOON, Log, Planned, frame, limit, reading, record, sent, snapshot, volume, written

SOON = timedelta(milliseconds=50)
WRITE, READ = QuotaType.PRODUCE, QuotaType.FETCH
parsed = partial(snapshots.parse, clusters={"snapshots": "c"})
READINGS = Planned(lambda given: readings(parsed(given)))


def test_each_volume_of_a_snapshot_is_a_row_with_the_bytes_at_which_its_limits_are_reached(spark: SparkSession) -> None:
    own = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreeBytes", 50)}
    disks = [volume("/a", 1000, 600, **own), volume("/b", 10, 3, softLimit={})]
    broker = {"softLimit": limit("ConsumedBytes", 7)}
    good = snapshot("3", NOON, disks, **broker)
    # A removed broker, one without volumes, and a refused record leave no row.
    given = [record(9, "3", good, NOON), record(10, "3", None, NOON), record(11, "4", snapshot("4", NOON, []), NOON)]
    first, second = READINGS(spark, [*given, record(12, "5", good, NOON)])
    assert (first["cluster"], first["broker"], first["volume"], first["consumed"]) == ("c", "3", "/a", 600)
    assert (first["soft"], first["hard"], first["capacity"]) == (800, 950, 1000)
    assert (first["topic"], first["partition"], first["offset"]) == ("snapshots", 0, 9)
    assert (second["volume"], second["soft"], second["hard"]) == ("/b", 7, None)


def test_restarts_lose_and_repeat_no_reading_and_a_batch_is_one_file_a_day(spark: SparkSession, tmp_path: Path) -> None:
    """The driver is killed before each batch has ended, and each time the topic is compacted and the history moved."""
    log, history = Log(tmp_path / "in"), tmp_path / "history [{a,b}]*"

    def stored() -> list[tuple[int, int]]:
        """Offset and day of each row; each volume of each broker has a row."""
        rows = of_folder(spark, COLUMNS, str(history), Question(str(history))).collect()
        return sorted((row["offset"], row["day"].day) for row in rows)

    for number in range(3):
        for days in (number, number + 1):
            at = NOON + timedelta(days=days)
            disks = [volume("/a", 10, 5), volume("/b", 10, 5)]
            log.write(*(record(number, broker, snapshot(broker, at, disks), at) for broker in "12"))
        query = append(parsed(log.stream(spark)), "history", str(history), every=SOON)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        for file in (history / "_checkpoint/commits").glob(f"*{number}*"):
            file.unlink()
        for file in (tmp_path / "in").glob("*.json"):
            file.write_text(file.read_text().splitlines()[-1])
        history = history.rename(tmp_path / f"history [{number}]")
    assert stored() == sorted(4 * [(0, 21), (0, 22), (1, 22), (1, 23), (2, 23), (2, 24)])
    files = Counter(file.parent.name for file in history.glob("day=*/*.parquet"))
    assert files == {"day=2026-11-21": 1, "day=2026-11-22": 2, "day=2026-11-23": 2, "day=2026-11-24": 1}
    # If an operator deletes a day, the history has no rows of this day any more.
    shutil.rmtree(history / "day=2026-11-22")
    assert stored() == sorted(4 * [(0, 21), (1, 23), (2, 23), (2, 24)])


# ---- usage -----------------------------------------------------------------------------------------


def used(
    rate: float, user: str = "alice", client: str = "app", kind: QuotaType = WRITE, demand: float | None = None
) -> Used:
    """A client's usage in a record that comes 10 s after the one before."""
    return Used(user, client, kind, rate, demand, 1e6, 10 * rate)


def usage(*records: tuple[float, str, Sequence[Used]]) -> list[Record]:
    """Records of (seconds after NOON, broker, clients)."""
    told = [Usage(broker, NOON + timedelta(seconds=at), tuple(clients), "c") for at, broker, clients in records]
    return sent(told, usage_records.encode)


def test_a_minute_of_a_client_has_its_mean_rate_and_its_largest_demand(spark: SparkSession) -> None:
    given = usage(
        (0, "1", [used(100.0, demand=200.0), used(5.0, kind=READ)]), (30, "1", [used(300.0, demand=400.0)]),
        (40, "2", [used(7.0)]), (60, "1", [used(1.0, demand=1.0)]),
    )  # fmt: skip
    rows = uses(shares.parse(frame(spark, given), "c")).orderBy("at", "broker").collect()
    expected = [("1", 200.0, 400.0), ("2", 7.0, None), ("1", 1.0, 1.0)]
    assert [(r["broker"], r["rate"], r["demand"]) for r in rows] == expected
    assert {(r["cluster"], r["user"], r["client"], r["quota"]) for r in rows} == {("c", "alice", "app", 1e6)}


def test_a_replay_reads_the_busiest_clients_of_its_time(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [reading(60 * i, 100) for i in range(10)], tmp_path / "history")
    question = Question(str(history))
    assert everything(spark, question).clients == ()
    clients = [used(10.0), used(5.0, "bob", demand=6.0), used(9.0, "eve", kind=READ)]
    given = usage(*((60 * i, "1", clients) for i in range(20)))
    minutes = uses(shares.parse(frame(spark, given), "c"))
    minutes.write.partitionBy("day").parquet(folder(str(history), "usage"))
    alice, bob = everything(spark, question).clients
    assert (alice.user, bob.user, alice.client, alice.width) == ("alice", "bob", "app", 60.0)
    assert [use.at - NOON.timestamp() for use in alice.uses] == [60.0 * i for i in range(10)]
    assert alice.uses[0][1:] == ("1", 10.0, None, 1e6)
    assert bob.uses[0][1:] == ("1", 5.0, 6.0, 1e6)
    few = everything(spark, question, most=8).clients
    assert [(len(each.uses), each.width) for each in few] == [(4, 180.0), (4, 180.0)]


def test_a_minutes_bytes_are_those_that_its_records_tell_whatever_the_rates(spark: SparkSession) -> None:
    alice, bob = ClientKey("alice", "app", WRITE), ClientKey("bob", "app", READ)
    lively = [(i / 2, "1", [Used(*alice, 1e6, None, 1e6, 50.0)]) for i in range(20)]
    silent = [(float(at), "1", [Used(*bob, 7.0, None, 1e6, 35.0)]) for at in range(10, 60, 5)]
    older = (55.0, "1", [Used(*alice, 1e6, None, 1e6)])  # an older broker, whose records have no bytes
    both = [(float(at), "1", [used(10.0, "eve"), used(30.0, "eve", kind=READ)]) for at in range(0, 60, 10)]
    rows = uses(shares.parse(frame(spark, usage(*lively, *silent, older, *both)), "c")).orderBy("user").collect()
    assert [(row["user"], row["at"].minute, row["written"], row["read"]) for row in rows] == [
        ("alice", 0, 1000.0, 0.0), ("bob", 0, 0.0, 350.0), ("eve", 0, 600.0, 1800.0),
    ]  # fmt: skip


def test_a_wrong_budget_counts_for_nothing(spark: SparkSession) -> None:
    value = snapshot_records.encode(Snapshot("1", NOON, (), cluster="c", budgets=(("good", 5),)))
    wrong = ['[["a b",1]]', '[["a",-1]]', '[["a"]]', f'[["a",{10**20}]]', '"a"', '[["a\\n",1]]', "[[]]", "[null]"]
    values = [value, *(value.replace(b'[["good",5]]', listed.encode()) for listed in wrong)]
    assert len(set(values)) == 1 + len(wrong)
    given = snapshots.parse(frame(spark, [record(n, "1", each, NOON) for n, each in enumerate(values)]))
    assert [(row["budget"], row["bytes"]) for row in held(given).collect()] == [("good", 5.0)]


# ---- from records to a bill ------------------------------------------------------------------------

MONTH = ("--month", "2026-11")
LABELS = """
cluster-quotas:
  - {user: alice, produce: 1M, label: team-a}
  - {user: alice, client-id: bulk, produce: 1M}
  - {user: eve, produce: 1M, label: "=HYPERLINK(1)\\e[31m"}
budgets:
  - {topics: [orders.*], bytes: 1G, label: team-a}
  - {topics: [logs], bytes: 1G}
"""


def sizes(*records: tuple[float, str, dict[str, int]]) -> list[Record]:
    """Snapshots of (seconds after NOON, broker, bytes by budget)."""
    made = [
        Snapshot(broker, NOON + timedelta(seconds=at), (), cluster="c", budgets=tuple(bytes_of.items()))
        for at, broker, bytes_of in records
    ]
    return sent(made, snapshot_records.encode)


def _stream(log: Log, records: Sequence[Record], query: StreamingQuery) -> None:
    """Runs one of the pipeline's queries over these records."""
    try:
        # The last record moves the watermark past the others, though nobody uses anything then. It comes twice, because
        # only the next batch goes by that.
        for written in (records, records[-1:]):
            log.write(*written)
            query.processAllAvailable()
    finally:
        query.stop()


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of November 21 that the pipeline's own queries write: several clients, two budgets, two brokers."""
    at = tmp_path_factory.mktemp("usage")
    place, snapshots_log, usage_log = str(at / "history"), Log(at / "snapshots"), Log(at / "usage")
    clients = [used(10.0), used(20.0, client="bulk"), used(40.0, kind=READ), used(5.0, "mallory"), used(1.0, "eve")]
    uses = [(10.0 * n, "1", clients) for n in range(360)] + [(10.0 * n, "2", [used(10.0)]) for n in range(360)]
    stored = [(60.0 * i, "1", {"orders.*": 100 if i < 30 else 300, "logs": 7}) for i in range(60)]
    stored += [(60.0 * i, "2", {"orders.*": 50}) for i in range(60)]
    of_clients, of_volumes = shares.parse(usage_log.stream(spark), "c"), parsed(snapshots_log.stream(spark))
    _stream(usage_log, usage(*uses, (2 * 3600.0, "1", [])), append(of_clients, USAGE, place, SOON))
    _stream(snapshots_log, sizes(*stored, (7200.0, "1", {})), append(of_volumes, "budgets", place, SOON))
    return at / "history"


def test_a_disk_that_hangs_takes_one_core_and_the_volumes_keep_another(spark: SparkSession, tmp_path: Path) -> None:
    log, pipe = Log(tmp_path / "in"), str(tmp_path / "pipe")
    log.write(*sizes((0.0, "1", {"logs": 1})))
    os.mkfifo(pipe)  # no process writes into it, so a task that reads it hangs
    hangs = F.udf(lambda _: Path(pipe).read_text() == "", "BOOLEAN", useArrow=False)("topic")
    told = snapshots.parse(log.stream(spark)).where(hangs)
    queries = [append(told, part, str(tmp_path / "history"), SOON) for part in ("history", "budgets")]
    stopping = list[Thread]()

    def stopped() -> bool:
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
        return not any(each.is_alive() for each in stopping)

    try:
        tracker = spark.sparkContext.statusTracker()
        eventually(lambda: any(map(tracker.getStageInfo, tracker.getActiveStageIds())))
        for _ in range(10):
            (volumes := Thread(target=spark.range(9).count, daemon=True)).start()
            volumes.join(20)
            assert not volumes.is_alive()
    finally:
        stopping += [start_daemon("stop", query.stop) for query in queries]
        eventually(stopped)


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
    # alice's client bulk has an entry without a label, so alice's label counts. Brokers 1 and 2 are added up.
    assert [int(rows["team-a"][key]) for key in amounts] == [40 * 3600, 40 * 3600, 250, 250, 350]
    assert [int(rows[""][key]) for key in amounts] == [5 * 3600, 0, 7, 7, 7]
    assert {(row["cluster"], row["month"], row["hours_recorded"], row["hours_of_month"]) for row in rows.values()} == {
        ("c", "2026-11", "1", "720")
    }
    # No label is a formula for a spreadsheet, or a command for a terminal.
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
    uses(shares.parse(frame(spark, records), "c")).write.partitionBy("day").parquet(f"{place}-usage")
    Path(f"{place}-budgets").mkdir()  # the pipeline has never written a budget
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        for month in ("2026-11", "2026-12"):
            out = tmp_path / f"{month}.csv"
            result = run(tmp_path, place, "--month", month, "--csv", str(out))
            assert (result.exit_code, "Not recorded: bytes stored: set budgets" in result.stdout) == (0, True)
            (row,) = csv.DictReader(out.read_text().splitlines())
            assert (row["bytes_in"], row["hours_recorded"]) == ("60", "1")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
