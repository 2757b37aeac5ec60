"""``quotahost replay`` from a history in Parquet: its tables, its JSON, and what it refuses."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import budget_uses, everything
from quotahost.cli.main import app
from quotahost.pipeline import snapshots
from quotahost.pipeline.history import folder, held
from quotahost.records import snapshot as snapshot_records
from quotahost.records.snapshot import Snapshot
from tests.pipeline.support.records import as_records, frame
from tests.pipeline.support.rows import NOON, reading, written

PREFIX = "client.quota.callback."
SAME = {"factor.source": "snapshots", "static.storage.soft": "800", "static.storage.hard": "900"}


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Within an hour one volume fills to its hard limit and is freed; the other one stands still."""
    filling = [reading(60 * i, min(910, 700 + 5 * i) if i < 50 else 600, broker="1") for i in range(60)]
    still = [reading(60 * i, 100, broker="2") for i in range(60)]
    return written(spark, filling + still, tmp_path_factory.mktemp("history"))


def run(history: Path, file: Path, own: dict[str, str], *options: str) -> Result:
    file.write_text("".join(f"{PREFIX}{name}={text}\n" for name, text in own.items()))
    return CliRunner().invoke(app, ["replay", str(history), str(file), *options])


def test_the_same_settings_give_what_was_recorded(history: Path, tmp_path: Path) -> None:
    result = run(history, tmp_path / "server.properties", SAME, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (factor,) = found["factors"]
    assert (factor["cluster"], factor["broker"]) == ("c", None)
    assert factor["then"] == factor["new"]
    assert factor["new"]["pauses"] == 1
    assert factor["new"]["pause_s"] == pytest.approx(10 * 60, abs=2)  # 900 bytes are there after 40 min, freed at 50
    first, second = found["volumes"]
    assert (first["broker"], first["then"]["peak"], first["new"]["peak"]) == ("1", 910, 910)
    assert (second["broker"], second["new"]["lowest"]) == ("2", 1.0)


def test_the_tables_show_then_and_with_these_settings(history: Path, tmp_path: Path) -> None:
    result = run(history, tmp_path / "server.properties", SAME | {"static.storage.hard": "1000"})
    assert result.exit_code == 0, result.output
    lines = [line.split("  ") for line in result.stdout.splitlines()]
    assert any(line[0] == "cluster c" and "then" in line for line in lines)
    volume = next(line for line in result.stdout.splitlines() if line.startswith("broker 1: /d"))
    assert "10 min → –" in volume  # noqa: RUF001


def test_more_readings_than_fit_are_thinned_out(spark: SparkSession, history: Path) -> None:
    question = Question(str(history))
    every, some = (everything(spark, question, most=most) for most in (1000, 20))
    assert [len(curve.buckets) for curve in every.curves] == [60, 60]
    assert all(8 <= len(curve.buckets) <= 11 for curve in some.curves)
    assert [curve.newest for curve in some.curves] == [curve.newest for curve in every.curves]


def test_wrong_settings_end_it_before_spark_starts(tmp_path: Path) -> None:
    result = run(tmp_path, tmp_path / "server.properties", {"factor.sauce": "local"})
    assert result.exit_code != 0
    assert "factor.sauce" in result.output


# ---- budgets of storage ----

WITH_BUDGETS = SAME | {"budgets": "on"}


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour in which two brokers hold 700 bytes of a budget together, and 900 from its middle on."""
    made = [
        Snapshot(broker, NOON + timedelta(minutes=at), (), cluster="c", budgets=(("orders.*", used), ("logs", 5)))
        for at in range(60)
        for broker, used in (("1", 300 if at < 30 else 500), ("2", 400))
    ]
    place = written(spark, [reading(60 * i, 100) for i in range(60)], tmp_path_factory.mktemp("stored") / "history")
    rows = held(snapshots.parse(frame(spark, as_records(made, snapshot_records.encode))))
    rows.write.partitionBy("day").parquet(folder(str(place), "budgets"))
    return place


def quotas(file: Path, size: str) -> str:
    file.write_text(f"budgets:\n  - {{topics: [orders.*], bytes: {size}}}\n  - {{topics: [new], bytes: 1G}}\n")
    return str(file)


def test_a_budget_is_judged_by_what_all_brokers_held(stored: Path, tmp_path: Path) -> None:
    own, options = tmp_path / "server.properties", ("--quotas", quotas(tmp_path / "new.yaml", "800"))
    then = ("--quotas-then", quotas(tmp_path / "then.yaml", "1K"))
    result = run(stored, own, WITH_BUDGETS, *options, *then, "--json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["budgets"]
    assert found == {
        "cluster": "c", "budget": "orders.*", "sizes": [1000, 800], "peak": 900,
        "peak_at": (NOON + timedelta(minutes=30)).timestamp(), "unknown_s": 0.0,
        "then": {"held_s": 0.0, "used_up_s": 0.0}, "new": {"held_s": 1800.0, "used_up_s": 1800.0},
    }  # fmt: skip
    shown = run(stored, own, WITH_BUDGETS, *options)
    assert "budgets not judged, since the history has no bytes of them: new" in shown.stdout
    assert "taken for those that were in force then" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if line.startswith("orders.*")]
    assert re.split(r"\s{2,}", row.strip()) == ["orders.*", "30 min", "30 min", "900 B of 800 B", "2026-11-21 12:30"]


def test_of_more_means_than_fit_the_largest_of_each_part_is_left(spark: SparkSession, stored: Path) -> None:
    report = everything(spark, Question(str(stored)))
    every, some = (budget_uses(spark, report, ["orders.*"], most)[0] for most in (100, 3))
    assert [bytes for _, bytes in every.parts] == [700] * 3 + [900] * 3
    assert (some.width, [bytes for _, bytes in some.parts]) == (1800, [700, 900])


@pytest.mark.parametrize(
    ("own", "lines", "says"),
    [(SAME, "budgets: [{topics: [a], bytes: 1G}]", "budgets=on"), (WITH_BUDGETS, "quotas: []", "declares no budgets")],
)
def test_where_no_budget_would_hold_anybody_it_ends_before_spark_starts(
    tmp_path: Path, own: dict[str, str], lines: str, says: str
) -> None:
    (tmp_path / "quotas.yaml").write_text(lines)
    result = run(tmp_path, tmp_path / "server.properties", own, "--quotas", str(tmp_path / "quotas.yaml"))
    assert result.exit_code == 1
    assert says in result.stderr
    assert run(tmp_path, tmp_path / "server.properties", own, "--quotas-then", "x.yaml").exit_code == 2
