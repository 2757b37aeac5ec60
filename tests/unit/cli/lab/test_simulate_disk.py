"""``quotahost simulate disk``: what it prints and draws, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quotahost.cli.main import app

BAND = ("--limits", "soft=20G,hard=21G")
HEAVY = ("--demand", "3xeager", "--drain", "5M", "--every", "30s", "--windows", "2")


def simulated(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["simulate", "disk", *map(str, arguments)])


def outcome(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def place(result: Result) -> float:
    return float(outcome(result)["place"].split()[0])


@pytest.mark.parametrize(("document", "examples"), [("disks", 2), ("quotas", 1)])
def test_the_document_shows_what_the_command_prints(document: str, examples: int) -> None:
    text = (Path(__file__).parents[4] / f"docs/{document}.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ quotahost simulate disk (.*)\n((?:(?![$`]).*\n)+)", text, re.MULTILINE)
    assert len(shown) == examples
    for command, lines in shown:
        printed = simulated(*command.split()).stdout
        assert [line.rstrip() for line in printed.splitlines()] == lines.splitlines()


def test_under_a_heavy_load_setpoint_rests_further_from_hard_than_limits() -> None:
    by_limits, by_setpoint = (
        simulated(*BAND, *HEAVY, "--policy", policy, "--time", "6m") for policy in ("limits", "setpoint")
    )
    assert place(by_limits) == pytest.approx(1 - 5 / 30, abs=0.03)  # the factor at which as much comes as goes
    assert place(by_setpoint) < place(by_limits) - 0.1
    assert outcome(by_limits)["at rest after"].endswith(" s")


def test_a_disk_that_only_fills_is_not_at_rest_and_paused_once_and_hardly_beyond_hard() -> None:
    assert outcome(simulated(*BAND, "--demand", "paced:5M", "--time", "60s"))["at rest after"] == "not within this time"
    found = outcome(simulated("--limits", "hard=21G", "--used", "20.9G", "--time", "60s", "--windows", "2"))
    assert found["PAUSEs"] == "1"
    assert found["place"] == "there is no way from soft to hard"
    assert re.fullmatch(r"[\d.]+ (MB|kB|B)", found["beyond hard"])


def test_fewer_windows_make_shorter_silences() -> None:
    few, many = (simulated(*BAND, *HEAVY[:-2], "--windows", windows, "--time", "2m") for windows in (2, 11))
    assert float(outcome(few)["longest silence"].split()[0]) < float(outcome(many)["longest silence"].split()[0])


def test_a_brokers_properties_give_limits_policy_and_windows_and_options_take_their_place(tmp_path: Path) -> None:
    file, prefix = tmp_path / "server.properties", "client.quota.callback."
    lines = [f"{prefix}static.storage.soft=20G", f"{prefix}static.storage.hard=21G", f"{prefix}policy=setpoint"]
    file.write_text("\n".join([*lines, "quota.window.num=2", "log.dirs=/data"]))
    given = simulated("--properties", file, *HEAVY[:-2], "--time", "60s")
    assert given.stdout == simulated(*BAND, *HEAVY, "--policy", "setpoint", "--time", "60s").stdout
    by_limits = simulated("--properties", file, *HEAVY[:-2], "--policy", "limits", "--time", "60s")
    assert by_limits.stdout == simulated(*BAND, *HEAVY, "--policy", "limits", "--time", "60s").stdout != given.stdout
    other = simulated("--properties", file, "--limits", "soft=20%,hard=10%", "--time", "10s")
    assert outcome(other)["limits"] == "80.0 GB soft, 90.0 GB hard"


def test_writers_to_a_budget_are_slowed_from_its_soft_share_on_and_turned_back_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    own = {"budget.soft.share": "0.5", "budgets": "on", "factor.source": "snapshots"}
    file.write_text("".join(f"client.quota.callback.{name}={value}\n" for name, value in own.items()))
    options = ("--quota", "1M", "--windows", "2", "--time", "5m")
    found = outcome(simulated("--budget", "100M", "--used", "40M", "--properties", file, *options))
    assert found["limits"] == "50.0 MB soft, 100 MB hard"
    slowed, stopped = (float(found[f"{what} after"].split()[0]) for what in ("slowed", "turned back"))
    assert slowed == pytest.approx(10, abs=2)  # 10 MB at 1 MB/s
    assert stopped > slowed + 100, "half of the bytes took twice as long as at the full rate"
    assert found["PAUSEs"] == "1"
    assert "MB" not in found["beyond hard"], "a request that was let in before"
    kept = outcome(simulated("--budget", "100M", "--drain", "500K", "--policy", "setpoint", *options))
    assert (kept["turned back after"], kept["PAUSEs"]) == ("not within this time", "0")
    # A broker's file with budgets does for its disk, too.
    assert simulated(*BAND, "--properties", file, "--time", "10s").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "no limits to try"),
        (["--limits", "soft=5"], 1, "no hard limit below --capacity"),
        (["--limits", "soft=200G,hard=210G"], 1, "no hard limit below --capacity"),
        (["--limits", "soft=90G,hard=80G"], 1, "is reached before the soft limit"),
        (["--limits", "80G"], 2, "are no limits"),
        (["--limits", "soft=1G,soft=2G"], 2, "are no limits"),
        ([*BAND, "--budget", "1G"], 2, "has no other limits"),
        ([*BAND, "--demand", "fast"], 2, "write eager, paced:5M or bursty:5M"),
        ([*BAND, "--demand", "201xeager"], 2, "up to 200"),
        ([*BAND, "--policy", "nope"], 1, "there is none"),
        ([*BAND, "--time", "1s"], 2, "write 10s to 2h"),
        ([*BAND, "--windows", "101"], 2, "too many; take 100 at most"),
        ([*BAND, "--batch", "none"], 2, "must be a size"),
        ([*BAND, "--plot", "a.gif"], 2, "is no FILE.png"),
        ([*BAND, "--demand", "200xeager", "--time", "2h"], 1, "would take too long"),
        (["--properties", "/nope/server.properties"], 1, "can't be read"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[object], code: int, message: str) -> None:
    result = simulated(*arguments)
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())
    assert result.exit_code == code


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_picture_is_drawn_by_its_name(tmp_path: Path, name: str, begins: bytes) -> None:
    assert simulated(*BAND, "--time", "20s", "--plot", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_bytes().startswith(begins)
