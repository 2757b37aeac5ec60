"""``quotahost simulate quota``: its table, and that a request within the rate is admitted by every form."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from quotahost.cli.lab.simulate_quota import Request, parse_requests, run
from quotahost.cli.main import app


def simulated(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["simulate", "quota", *map(str, arguments)])


def rows(result: Result) -> list[list[str]]:
    """The table's cells, header first."""
    return [re.split(r"\s{2,}", line.strip()) for line in result.stdout.strip().splitlines()]


def test_the_document_shows_what_the_command_prints() -> None:
    text = (Path(__file__).parents[4] / "docs/quotas.md").read_text(encoding="utf-8")
    command, shown = re.findall(r"^\$ quotahost simulate quota (.*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[0]
    printed = simulated(*command.split()).stdout
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()


def test_version_15s_burst_stands_for_the_samples() -> None:
    requests = ["560@0", "1@0", "1@11", "1@12"]
    by_samples = simulated("--rate", 5, "--samples", 100, *requests)
    assert simulated("--rate", 5, "--burst", 500, *requests).stdout == by_samples.stdout
    assert rows(simulated("--rate", 5, "--burst", 500, "500@0", "1@0"))[-1][-1] == "refused for 0.000 s"


def test_kip_13s_example_is_delayed_by_2_s() -> None:
    result = simulated("--rate", "5M", "--samples", 10, "5M@0..8/1", "15M@9")
    assert rows(result)[-1][2] == "delayed by 2.000 s"
    assert [row[2] for row in rows(result)[1:-1]] == ["admitted"] * 9


def test_a_pattern_is_many_requests_and_all_come_in_order_of_time() -> None:
    assert parse_requests("15K@0..1/0.5") == [Request(15e3, 0), Request(15e3, 500), Request(15e3, 1000)]
    assert parse_requests("2@0..0.9/0.5") == [Request(2, 0), Request(2, 500)]
    result = simulated("--rate", 5, "1@3", "2@0..4/2")
    assert [row[0] for row in rows(result)[1:]] == ["0 s", "2 s", "3 s", "4 s"]


@given(st.lists(st.tuples(st.floats(0.1, 1000), st.integers(0, 60_000)), max_size=30), st.floats(0.1, 100))
def test_requests_within_the_rate_are_never_throttled(given_: list[tuple[float, int]], rate: float) -> None:
    requests = sorted((Request(*each) for each in given_), key=lambda r: r.ms)
    outcomes = run(requests, rate, 11, 1000)
    assert len(outcomes) == len(requests)
    assert all(0 <= o.seconds < 1e9 for each in outcomes for o in each)
    if sum(r.amount for r in requests) <= rate * 10:  # Kafka's window is 10 s at least
        assert all(str(o) == "admitted" for each in outcomes for o in each)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", 5, "x@0"], "is not a number"),
        (["--rate", 5, "5"], "is no request"),
        (["--rate", 5, "5@2..1/1"], "FROM must not exceed TO"),
        (["--rate", 5, "5@0..1000/0.001"], "too many requests"),
        (["--rate", 5, "5@0..1/0"], "STEP be 0.001 or more"),
        (["--rate", 0, "5@0"], "above 0"),
        (["--rate", 5, "--window", "1", "5@0"], "has no unit"),
        (["--rate", 5, "--samples", "0", "5@0"], "above 0"),
        (["--rate", 5, "--samples", "1M", "5@0"], "too many; take 100,000 at most"),
        (["--rate", 5, "--burst", "1M", "5@0"], "too many; take 100,000 at most"),
        (["--rate", 5, "--burst", "0", "5@0"], "above 0"),
        (["--rate", 5, "--burst", "500", "--samples", "100", "5@0"], "leave one of them out"),
    ],
)
def test_a_wrong_argument_is_named_and_ends_with_2(arguments: list[object], message: str) -> None:
    result = simulated(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


def test_a_picture_is_drawn_where_matplotlib_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.png"
    assert simulated("--rate", 5, "--plot", file, "9@0..9/1").exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = simulated("--rate", 5, "--plot", file, "9@0")
    assert refused.exit_code == 2
    assert "pip install matplotlib" in refused.output
