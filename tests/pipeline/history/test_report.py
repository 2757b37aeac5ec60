"""``quotahost report``: the volumes and times that it draws, and its error when there is nothing to draw."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from quotahost.base.errors import QuotahostError
from quotahost.cli.lab.curves import Question, Report
from quotahost.cli.lab.history import worst
from quotahost.cli.main import app
from tests.pipeline.support.rows import NOON, reading, written

HOUR = 3600


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days: one volume fills fast, one is nearly full and stands still, one is empty, one fell silent."""
    fast = [reading(hour * HOUR, 100 + 10 * hour, broker="1") for hour in range(48)]
    full = [reading(hour * HOUR, 880, broker="2") for hour in range(48)]
    empty = [reading(hour * HOUR, 10, broker="3", soft=None, hard=None) for hour in range(48)]
    silent = [reading(hour * HOUR, 999, broker="4", volume="/<b>&old") for hour in range(6)]
    return written(spark, fast + full + empty + silent, tmp_path_factory.mktemp("history"))


def found(spark: SparkSession, history: Path, **question: Any) -> Report:
    return worst(spark, Question(str(history), **question))


def run(history: Path, out: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["report", "--history", str(history), "--out", str(out), *options])


# The volumes and the times that are drawn.


@pytest.mark.parametrize(
    ("question", "expected", "known"),
    [
        pytest.param({}, ["2", "1", "3"], 3, id="a silent one is left out"),
        pytest.param({"recent": 40 * HOUR}, ["1", "2", "3"], 3, id="the one that fills fast, far ahead"),
        pytest.param({"worst": 1}, ["2"], 3, id="at most so many"),
        pytest.param({"volumes": ("/<b>&old",)}, ["4"], 1, id="a silent one that is asked for"),
    ],
)
def test_the_worst_are_those_that_will_be_fullest(
    spark: SparkSession, history: Path, question: dict[str, Any], expected: list[str], known: int
) -> None:
    report = found(spark, history, **question)
    assert ([curve.name.broker for curve in report.curves], report.known) == (expected, known)


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
    assert [curve.fill_rate for curve in curves] == [0, 0, pytest.approx(-0.3), 0, None], "by least squares"


def test_a_range_includes_its_first_time_and_not_its_last_and_opens_no_folders_of_other_days(
    spark: SparkSession, tmp_path: Path
) -> None:
    written(spark, [reading(at, at) for at in (-1, 0, 60, 120)], tmp_path)
    for day in ("day=2026-11-19", "day=2026-11-23"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "broken.parquet").write_text("no Parquet")
    begin = NOON.timestamp()
    report = found(spark, tmp_path, since=begin, until=begin + 120)
    assert (report.since, report.until) == (begin, begin + 60)
    assert report.curves[0].newest.last == 60


def test_a_day_is_drawn_from_at_most_500_buckets_that_keep_each_peak_and_dip(
    spark: SparkSession, tmp_path: Path
) -> None:
    day = [reading(minute * 60, {300: 100, 700: 900}.get(minute, 500)) for minute in range(24 * 60)]
    (curve,) = found(spark, written(spark, day, tmp_path)).curves
    assert 400 < len(curve.buckets) <= 500
    assert (min(bucket.low for bucket in curve.buckets), max(bucket.high for bucket in curve.buckets)) == (100, 900)
    assert curve.newest.at == (NOON + timedelta(minutes=24 * 60 - 1)).timestamp()


# Errors when there is nothing to draw.


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"clusters": ("c",), "brokers": ("7", "8")}, "no readings of c, 7, 8; "),
        ({"since": NOON.timestamp() + 9 * 24 * HOUR}, "has them from 2026-11-21 to 2026-11-23"),
    ],
)
def test_an_error_names_what_was_asked_for_and_the_days_that_there_are(
    spark: SparkSession, history: Path, question: dict[str, Any], message: str
) -> None:
    with pytest.raises(QuotahostError, match=re.escape(message)):
        found(spark, history, **question)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("folder", "message"), [("", "holds no readings"), ("absent", "doesn't exist")])
def test_no_history_ends_the_command_with_1_and_one_sentence(tmp_path: Path, folder: str, message: str) -> None:
    result = run(tmp_path / folder, tmp_path / "r.html")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "r.html").exists()


# The command.


@pytest.mark.usefixtures("spark")
def test_a_page_shows_each_volume_and_needs_nothing_else(history: Path, tmp_path: Path) -> None:
    result = run(history, tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "r.html").read_text()
    assert not re.search(r'<(script|link|img)|url\((?!#)|@import|(src|href|data|srcset)="(?!#)', text)
    assert [f"broker {n}: /d" in text for n in "123"] == [True, True, True]
    assert text.count("<section") == 3
    assert "in 1 d 9 h (2026-11-24 20:00)" in text
    assert re.search(r"broker 1: /d +570 B +1.00 kB +57.0 %", result.stdout)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "yesterday"], "for --from: 'yesterday' is no time; write it like 2026-11-21"),
        (["--to", "2026-13-01"], "for --to: '2026-13-01' is no time; write it like 2026-11-21"),
        (["--to", "9999-12-31"], "for --to: '9999-12-31' is no time"),
        (["--from", "2026-11-21", "--to", "2026-11-20"], "--to is not after --from"),
        (["--recent", "7"], "has no unit"),
        (["--worst", "0"], "Invalid value for '--worst'"),
        (["--out", "absent/r.html"], "absent/r.html must be a FILE.html in a folder that exists"),
        (["--out", "r.png"], "r.png must be a FILE.html in a folder that exists"),
    ],
)
def test_wrong_options_are_an_error_before_spark_starts(tmp_path: Path, options: list[str], message: str) -> None:
    result = run(tmp_path / "absent", tmp_path / "r.html", *options)
    assert result.exit_code == 2
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())
