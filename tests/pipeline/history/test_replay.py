"""``quotahost replay`` from a history in Parquet: its tables, its JSON, and what it refuses."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import everything
from quotahost.cli.main import app
from tests.pipeline.support.rows import reading, written

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
