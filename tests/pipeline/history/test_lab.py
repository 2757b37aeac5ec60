"""``quotahost report`` and ``quotahost replay`` read a history in Parquet, and refuse what doesn't make sense."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from harness.system.process import children
from harness.system.process import command as program
from harness.system.waiting import eventually
from quotahost.base.errors import QuotahostError
from quotahost.cli.lab.curves import Question, Report
from quotahost.cli.lab.history import budget_uses, everything, worst
from quotahost.cli.lab.history import stored as stored_rows
from quotahost.cli.main import app
from quotahost.pipeline import snapshots
from quotahost.pipeline.history import COLUMNS, folder, held
from quotahost.records import snapshot as snapshot_records
from quotahost.records.snapshot import Snapshot
from tests.pipeline.records import NOON, frame, reading, sent, written

# ---- report ----

HOUR = 3600


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days: one volume fills fast, one is nearly full and stands still, one is empty, one fell silent."""
    fast = [reading(hour * HOUR, 100 + 10 * hour, broker="1") for hour in range(48)]
    full = [reading(hour * HOUR, 880, broker="2") for hour in range(48)]
    empty = [reading(hour * HOUR, 10, broker="3", soft=None, hard=None) for hour in range(48)]
    silent = [reading(hour * HOUR, 999, broker="4", volume="/<b>&old") for hour in range(6)]
    return written(spark, fast + full + empty + silent, tmp_path_factory.mktemp("history"))


#: Markup by which a page would load another file.
FETCHES = re.compile(r'<(script|link|img)|url\((?!#)|@import|(src|href|data|srcset)="(?!#)')


def found(spark: SparkSession, history: Path, **question: Any) -> Report:
    return worst(spark, Question(str(history), **question))


def report(history: Path, out: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["report", "--history", str(history), "--out", str(out), *options])


@pytest.mark.parametrize(
    ("question", "expected", "known"),
    [
        pytest.param({}, ["2", "1", "3"], 3, id="a silent volume is left out"),
        pytest.param({"recent": 40 * HOUR}, ["1", "2", "3"], 3, id="over 40 hours the volume that fills fast is first"),
        pytest.param({"worst": 1}, ["2"], 3, id="worst=1 shows one volume"),
        pytest.param({"volumes": ("/<b>&old",)}, ["4"], 1, id="a silent volume is shown if it is asked for"),
    ],
)
def test_the_worst_are_those_that_will_be_fullest(
    spark: SparkSession, history: Path, question: dict[str, Any], expected: list[str], known: int
) -> None:
    made = found(spark, history, **question)
    assert ([curve.name.broker for curve in made.curves], made.reported) == (expected, known)


def test_a_volume_counts_by_its_hard_limit_or_else_its_capacity_and_one_that_empties_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    used = {"no room": [5] * 4, "limited": [400] * 4, "emptying": [760] * 3 + [700], "still": [650] * 4, "once": [600]}
    hard = dict.fromkeys(used) | {"no room": 0, "limited": 500}
    rows = [
        reading(60 * (4 - len(each) + n), bytes, volume=name, hard=hard[name])
        for name, each in used.items() for n, bytes in enumerate(each)
    ]  # fmt: skip
    curves = found(spark, written(spark, rows, tmp_path), recent=180).curves
    assert [curve.name.volume for curve in curves] == [*used]
    assert [curve.fill_rate for curve in curves] == [0, 0, pytest.approx(-0.3), 0, None], "rates are by least squares"


def test_a_range_has_its_first_time_not_its_last_and_opens_no_other_days_of_which_a_damaged_one_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    written(spark, [reading(at, at) for at in (-1, 0, 60, 120)], tmp_path)
    for day in ("day=2026-11-19", "day=2026-11-23"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "broken.parquet").write_text("no Parquet")
    begin = NOON.timestamp()
    made = found(spark, tmp_path, since=begin, until=begin + 120)
    assert (made.since, made.until) == (begin, begin + 60)
    assert made.curves[0].latest.last == 60
    every = report(tmp_path, tmp_path / "r.html")
    assert (every.exit_code, "broken.parquet" in every.stderr, "\n  -> if a file" in every.stderr) == (2, True, True)
    assert "\tat org" not in every.stderr


def test_a_file_that_can_not_be_opened_is_an_error_because_a_bill_would_lack_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = stored_rows(spark, COLUMNS, str(written(spark, [reading(0, 1)], tmp_path)), Question(str(tmp_path)))
    (file,) = tmp_path.glob("day=*/*.parquet")
    file.unlink()
    with pytest.raises(Py4JError, match=file.name):
        rows.collect()


@pytest.mark.parametrize("step", ["Starting Spark", "Looking for the oldest"])
def test_ctrl_c_ends_command_and_jvm_without_a_stack(history: Path, tmp_path: Path, step: str) -> None:
    command = [sys.executable, "-m", "quotahost", "report", f"--history={history}", f"--out={tmp_path}/r.html"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stderr is not None
        while step not in process.stderr.readline():
            pass
        eventually(lambda: any("pyspark-shell" in program(each) for each in children(process.pid)))
        os.killpg(process.pid, signal.SIGINT)
        left = process.stderr.read()  # until the JVM has ended, too
    assert (process.returncode, "Traceback" in left, "\tat " in left) == (-signal.SIGINT, False, False), left


def test_a_day_is_drawn_by_at_most_500_buckets_that_keep_each_peak_and_dip(spark: SparkSession, tmp_path: Path) -> None:
    day = [reading(minute * 60, {300: 100, 700: 900}.get(minute, 500)) for minute in range(24 * 60)]
    (curve,) = found(spark, written(spark, day, tmp_path)).curves
    assert 400 < len(curve.buckets) <= 500
    assert (min(bucket.low for bucket in curve.buckets), max(bucket.high for bucket in curve.buckets)) == (100, 900)
    assert curve.latest.at == (NOON + timedelta(minutes=24 * 60 - 1)).timestamp()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"clusters": ("c",), "brokers": ("7", "8")}, "no such readings of c, 7, 8; "),
        ({"since": NOON.timestamp() + 9 * 24 * HOUR}, "has others from 2026-11-21 to 2026-11-23"),
    ],
)
def test_an_error_names_what_was_asked_for_and_the_days_that_there_are(
    spark: SparkSession, history: Path, question: dict[str, Any], message: str
) -> None:
    with pytest.raises(QuotahostError, match=re.escape(message)):
        found(spark, history, **question)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("place", ["", "absent"])
def test_an_empty_history_ends_the_command_with_1_and_one_sentence(tmp_path: Path, place: str) -> None:
    result = report(tmp_path / place, tmp_path / "r.html")
    assert result.exit_code == 1
    assert "shows this user no readings; run `quotahost pipeline` with" in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "r.html").exists()


@pytest.mark.usefixtures("spark")
def test_a_page_shows_each_volume_and_needs_nothing_else(history: Path, tmp_path: Path) -> None:
    result = report(history, tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "r.html").read_text()
    assert FETCHES.search(text) is None
    assert [f"broker {n}: /d" in text for n in "123"] == [True, True, True]
    assert text.count("<section") == 3
    assert "in 1 d 9 h (2026-11-24 20:00)" in text
    assert re.search(r"broker 1: /d +570 B +1.00 kB +57.0 %", result.stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "yesterday"], "for --from: 'yesterday' is not a time; write it like 2026-11-21"),
        (["--to", "9999-12-31"], "for --to: '9999-12-31' is not a time"),
        (["--from", "2026-11-21", "--to", "2026-11-20"], "--to is not after --from"),
        (["--recent", "7"], "has no unit"),
        (["--worst", "0"], "Invalid value for '--worst'"),
        (["--out", "r.png"], "r.png must be a FILE.html in a folder that exists"),
    ],
)
def test_wrong_options_are_an_error_before_spark_starts(tmp_path: Path, options: list[str], message: str) -> None:
    result = report(tmp_path / "absent", tmp_path / "r.html", *options)
    assert result.exit_code == 2
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())


# ---- replay ----

PREFIX = "client.quota.callback."
SAME = {"factor.source": "snapshots", "static.storage.soft": "800", "static.storage.hard": "900"}


@pytest.fixture(scope="module")
def hour(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Within an hour one volume fills to its hard limit and is freed; the other one stands still."""
    filling = [reading(60 * i, min(910, 700 + 5 * i) if i < 50 else 600, broker="1") for i in range(60)]
    still = [reading(60 * i, 100, broker="2") for i in range(60)]
    return written(spark, filling + still, tmp_path_factory.mktemp("hour"))


def replay(history: Path, folder: Path, own: dict[str, str], *options: str) -> Result:
    file = folder / "server.properties"
    file.write_text("".join(f"{PREFIX}{name}={text}\n" for name, text in own.items()))
    return CliRunner().invoke(app, ["replay", str(history), str(file), *options])


def test_the_same_settings_give_what_was_recorded(hour: Path, tmp_path: Path) -> None:
    result = replay(hour, tmp_path, SAME, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (factor,) = found["factors"]
    assert (factor["cluster"], factor["broker"]) == ("c", None)
    assert factor["then"] == factor["new"]
    assert factor["new"]["pauses"] == 1
    assert factor["new"]["pause_s"] == pytest.approx(10 * 60, abs=2)  # 900 bytes from minute 40, freed at minute 50
    first, second = found["volumes"]
    assert (first["broker"], first["then"]["peak"], first["new"]["peak"]) == ("1", 910, 910)
    assert (second["broker"], second["new"]["lowest"]) == ("2", 1.0)


def test_tables_and_page_show_then_and_with_these_settings(hour: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = replay(hour, tmp_path, SAME | {"static.storage.hard": "1000"}, "--out", str(page))
    assert result.exit_code == 0, result.output
    assert re.search(r"^cluster c  .*\bthen\b", result.stdout, re.MULTILINE)
    volume = next(line for line in result.stdout.splitlines() if line.startswith("broker 1: /d"))
    assert "10 min → –" in volume  # noqa: RUF001
    text = page.read_text()
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Factor of cluster c", "broker 1: /d", "broker 2: /d"]
    assert text.count("<svg role") == 3
    assert [each for each in ("What server.properties would have done", "estimated") if each not in text] == []
    assert FETCHES.search(text) is None
    assert "#1f6feb" not in text.partition("</style>")[2], "only the page's style names colours"


def test_more_readings_than_fit_are_thinned_out(spark: SparkSession, hour: Path) -> None:
    question = Question(str(hour))
    every, some = (everything(spark, question, most=most) for most in (1000, 20))
    assert [len(curve.buckets) for curve in every.curves] == [60, 60]
    assert all(8 <= len(curve.buckets) <= 11 for curve in some.curves)
    assert [curve.latest for curve in some.curves] == [curve.latest for curve in every.curves]
    assert some.since == min(curve.buckets[0].at for curve in some.curves), "no replay begins with a gap"


# ---- budgets of storage ----

WITH_BUDGETS = SAME | {"budgets": "on"}


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour in which two brokers hold 700 bytes of a budget, 900 from its middle on, and invent bytes of another."""
    made = [
        Snapshot(broker, NOON + timedelta(minutes=at), (), cluster="c", budgets=(("orders.*", used), ("x", 2**63 - 1)))
        for at in range(60)
        for broker, used in (("1", 300 if at < 30 else 500), ("2", 400))
    ]
    place = written(spark, [reading(60 * i, 100) for i in range(60)], tmp_path_factory.mktemp("stored") / "history")
    rows = held(snapshots.parse(frame(spark, sent(made, snapshot_records.encode))))
    rows.write.partitionBy("day").parquet(folder(str(place), "budgets"))
    return place


def quotas(file: Path, size: str) -> str:
    file.write_text(f"budgets:\n  - {{topics: [orders.*], bytes: {size}}}\n  - {{topics: [new], bytes: 1G}}\n")
    return str(file)


def test_a_budget_is_judged_by_what_all_brokers_held(stored: Path, tmp_path: Path) -> None:
    options = ("--quotas", quotas(tmp_path / "new.yaml", "800"))
    then = ("--quotas-then", quotas(tmp_path / "then.yaml", "1K"))
    result = replay(stored, tmp_path, WITH_BUDGETS, *options, *then, "--json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["budgets"]
    assert found == {
        "cluster": "c", "budget": "orders.*", "sizes": [1000, 800], "peak": 900,
        "peak_at": (NOON + timedelta(minutes=30)).timestamp(), "unknown_s": 0.0,
        "then": {"held_s": 0.0, "used_up_s": 0.0}, "new": {"held_s": 1800.0, "used_up_s": 1800.0},
    }  # fmt: skip
    shown = replay(stored, tmp_path, WITH_BUDGETS, *options)
    assert "budgets not judged, because the history has no bytes of them: new" in shown.stdout
    assert "replay assumes that these budgets were in force then" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if line.startswith("orders.*")]
    assert re.split(r"\s{2,}", row.strip()) == ["orders.*", "30 min", "30 min", "900 B of 800 B", "2026-11-21 12:30"]


def test_of_more_means_than_fit_the_largest_of_each_part_is_left(spark: SparkSession, stored: Path) -> None:
    made = everything(spark, Question(str(stored)))
    every, some = (budget_uses(spark, made, ["orders.*"], most)[0] for most in (100, 3))
    assert [bytes for _, bytes in every.parts] == [700] * 3 + [900] * 3
    assert (some.width, [bytes for _, bytes in some.parts]) == (1800, [700, 900])
    (invented,) = budget_uses(spark, made, ["x"], 1)
    assert {bytes for _, bytes in invented.parts} == {2**63 - 1}, "a sum beyond Java's long is no damaged history"


@pytest.mark.parametrize(
    ("own", "lines", "says"),
    [(SAME, "budgets: [{topics: [a], bytes: 1G}]", "budgets=on"), (WITH_BUDGETS, "quotas: []", "declares no budgets")],
)
def test_where_no_budget_would_hold_no_spark_starts(tmp_path: Path, own: dict[str, str], lines: str, says: str) -> None:
    (tmp_path / "quotas.yaml").write_text(lines)
    result = replay(tmp_path, tmp_path, own, "--quotas", str(tmp_path / "quotas.yaml"))
    assert result.exit_code == 1
    assert says in result.stderr
    assert replay(tmp_path, tmp_path, own, "--quotas-then", "x.yaml").exit_code == 2
