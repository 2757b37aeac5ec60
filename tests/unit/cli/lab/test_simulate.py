"""Tests ``quotahost simulate``: what it prints and draws for disks and quotas, and what it refuses."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from quotahost.cli.lab.simulate import Request, parse_requests
from tests.unit.cli.commands import properties_file, run

DISK = ("disk", "--limits", "soft=20G,hard=21G")
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"
EAGER = ("--demand", "3xeager", "--drain", "5M", "--every", "30s")
HEAVY = (*EAGER, "--windows", "2")


def simulated(*arguments: object) -> Result:
    return run("simulate", *arguments)


@pytest.mark.parametrize(
    ("what", "document", "examples"), [("disk", "disks", 2), ("disk", "quotas", 1), ("quota", "quotas", 1)]
)
def test_the_document_shows_what_the_command_prints(what: str, document: str, examples: int) -> None:
    text = (Path(__file__).parents[4] / f"docs/{document}.md").read_text(encoding="utf-8")
    shown = re.findall(rf"^\$ quotahost simulate ({what} .*)\n((?:(?![$`]).*\n)+)", text, re.MULTILINE)
    assert len(shown) == examples
    for command, lines in shown:
        printed = simulated(*command.split()).stdout
        assert [line.rstrip() for line in printed.splitlines()] == lines.splitlines()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["disk"], 1, "no limits to try"),
        (["disk", "--limits", "soft=5"], 1, "no hard limit below --capacity"),
        (["disk", "--limits", "soft=90G,hard=80G"], 1, "is reached before the soft limit"),
        (["disk", "--limits", "80G"], 2, "soft=20%,hard=5%"),
        (["disk", "--limits", "soft=1G,soft=2G"], 2, "are not limits"),
        ([*DISK, "--budget", "1G"], 2, "can't be combined with --limits"),
        (["disk", "--budget", ""], 2, "'' is not a number"),  # from a variable that is not set
        ([*DISK, "--used", "101G"], 2, "is more than --capacity"),
        ([*DISK, "--demand", "fast"], 2, "write eager, paced:5M or bursty:5M"),
        ([*DISK, "--policy", "nope"], 1, "no such plugin"),
        ([*DISK, "--time", "1s"], 2, "write 10s or more"),
        ([*DISK, "--plot", "a.gif"], 2, "must be a FILE.png or FILE.svg"),
        ([*DISK, "--demand", "200xeager", "--time", "2h"], 1, "would take too long"),
        ([*DISK, "--quota", "1K", "--time", "30d"], 1, "take a larger --batch, a shorter --time, or fewer clients"),
        (["quota", "--rate", 5, "x@0"], 2, "is not a number"),
        (["quota", "--rate", 5, "5"], 2, "is not a request"),
        (["quota", "--rate", 5, "5@2..1/1"], 2, "FROM must not exceed TO"),
        (["quota", "--rate", 5, "5@0..1/0"], 2, "STEP must be 0.001 or more"),
        (["quota", "--rate", 5, "--window", "1", "5@0"], 2, "has no unit"),
        (["quota", "--rate", 5, "--burst", "0", "5@0"], 2, "above 0"),
        (["quota", "--rate", 5, "--samples", "200", "5@0..99999/1"], 2, "20,000,000 requests times samples would take"),
        (["quota", "--rate", "1e-300", "--burst", "1e300", "5@0"], 2, "2,147,483,648 requests times samples would"),
        (["quota", "--rate", 5, "--burst", "500", "--samples", "100", "5@0"], 2, "can't be combined with --samples"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[object], code: int, message: str) -> None:
    result = simulated(*arguments)
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())
    assert result.exit_code == code


def test_a_policy_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quotahost.broker.plugins.policies.limits.Limits.quota_factor", lambda *_: float("nan"))
    assert "policy 'limits' failed" in simulated(*DISK, "--time", "10s").output


def test_a_picture_is_drawn_by_its_name_where_matplotlib_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, begins in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert simulated(*DISK, "--time", "20s", "--plot", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert simulated("quota", "--rate", 5, "--plot", tmp_path / "quota.png", "9@0..9/1").exit_code == 0
    assert (tmp_path / "quota.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for arguments in (DISK, ("quota", "--rate", 5, "9@0")):
        refused = simulated(*arguments, "--plot", tmp_path / "a.png")
        assert refused.exit_code == 2
        assert "needs matplotlib: pip install matplotlib\n" in refused.output, "drawing needs matplotlib, but not Spark"


# ---- disks ----


def outcome(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def test_a_disk_that_only_fills_is_not_at_rest_and_paused_once_and_hardly_beyond_hard() -> None:
    assert outcome(simulated(*DISK, "--demand", "paced:5M", "--time", "60s"))["at rest after"] == "not within this time"
    found = outcome(simulated("disk", "--limits", "hard=21G", "--used", "20.9G", "--time", "60s", "--windows", "2"))
    assert found["PAUSEs"] == "1"
    assert found["place"] == "soft and hard are equal"
    assert re.fullmatch(r"[\d.]+ (MB|kB|B)", found["beyond hard"])


@pytest.mark.parametrize("of", [("--limits", "soft=4G,hard=5G"), ("--budget", "5G")])
def test_an_unused_disk_is_empty_and_one_of_unknown_use_as_full_as_its_soft_limit(of: tuple[str, str]) -> None:
    options = ("disk", *of, "--demand", "paced:100M", "--quota", "100M", "--batch", "1M", "--time", "20s")
    empty, one_byte, unsaid = (outcome(simulated(*options, *used)) for used in (("--used", "0"), ("--used", "1"), ()))
    assert empty == one_byte
    assert float(empty["place"].split()[0]) < 0 <= float(unsaid["place"].split()[0])


def test_a_brokers_properties_give_limits_policy_and_windows_and_options_take_their_place(tmp_path: Path) -> None:
    prefix = "client.quota.callback."
    lines = [f"{prefix}static.storage.soft=20G", f"{prefix}static.storage.hard=21G", f"{prefix}policy=setpoint"]
    # The simulator drops the properties of a policy that is not played, of the factor source and of the shadow.
    lines += [f"{prefix}plugin.setpoint.memory=20m", f"{prefix}factor.source=log-dirs", f"{prefix}shadow=all"]
    lines += [f"{prefix}plugin.log-dirs.interval=5s", FENCE]
    file = properties_file(tmp_path, "\n".join([*lines, "quota.window.num=2", "log.dirs=/data"]))
    given = simulated("disk", "--properties", file, *EAGER, "--time", "60s")
    assert given.stdout == simulated(*DISK, *HEAVY, "--policy", "setpoint", "--time", "60s").stdout
    by_limits = simulated("disk", "--properties", file, *EAGER, "--policy", "limits", "--time", "60s")
    assert by_limits.stdout == simulated(*DISK, *HEAVY, "--policy", "limits", "--time", "60s").stdout != given.stdout
    other = simulated("disk", "--properties", file, "--limits", "soft=20%,hard=10%", "--time", "10s", "--drain", 0)
    assert outcome(other)["limits"] == "80.0 GB soft, 90.0 GB hard"
    file = properties_file(tmp_path, f"{prefix}factor.quota.types=FETCH")
    refused = simulated(*DISK, "--properties", file)
    assert (refused.exit_code, "nothing would slow a producer" in refused.stderr) == (1, True)


def test_without_the_fence_more_comes_beyond_hard_and_longer_windows_make_longer_silences(tmp_path: Path) -> None:
    def found(*lines: str, options: tuple[str, ...]) -> dict[str, str]:
        file = properties_file(tmp_path, "\n".join(lines))
        return outcome(simulated(*DISK, "--properties", file, *options))

    filling = ("--used", "20.9G", "--time", "60s", "--demand", "3xeager")
    fenced, bare = found(FENCE, options=filling), found(options=filling)
    assert fenced == outcome(simulated(*DISK, *filling))
    assert float(bare["beyond hard"].split()[0]) > 2 * float(fenced["beyond hard"].split()[0])
    eager = (*EAGER, "--time", "2m")
    short, long = (found(FENCE, f"quota.window.size.seconds={seconds}", options=eager) for seconds in (1, 3))
    assert float(short["longest silence"].split()[0]) < float(long["longest silence"].split()[0])
    # A host that rarely reads the factor is not silent, so no fallback holds back the clients of an empty disk.
    rarely = [f"client.quota.callback.{each}" for each in ("factor.interval=20s", "validity=5s", "volumes.period=1s")]
    empty = found(FENCE, *rarely, options=("--used", "1G", "--time", "1m"))
    assert float(empty["longest silence"].split()[0]) < 2


def test_writers_to_a_budget_are_slowed_from_its_soft_share_on_and_turned_back_at_its_end(tmp_path: Path) -> None:
    own = {"budget.soft.share": "0.5", "budgets": "on", "factor.source": "snapshots"}
    lines = "".join(f"client.quota.callback.{name}={value}\n" for name, value in own.items())
    file = properties_file(tmp_path, lines + FENCE)
    options = ("--quota", "1M", "--windows", "2", "--time", "5m")
    found = outcome(simulated("disk", "--budget", "100M", "--used", "40M", "--properties", file, *options))
    assert found["limits"] == "50.0 MB soft, 100 MB hard"
    slowed, stopped = (float(found[f"{what} after"].split()[0]) for what in ("slowed", "paused"))
    assert slowed == pytest.approx(10, abs=2)  # 10 MB at 1 MB/s
    assert stopped > slowed + 100, "the second half takes more than twice as long as at the full rate"
    assert found["PAUSEs"] == "1"
    assert "MB" not in found["beyond hard"], "only a request admitted before the PAUSE passes hard"
    kept = outcome(simulated("disk", "--budget", "100M", "--drain", "500K", "--policy", "setpoint", *options))
    assert (kept["paused after"], kept["PAUSEs"]) == ("not within this time", "0")
    # A broker's file with budgets works for its disk, too.
    assert simulated(*DISK, "--properties", file, "--time", "10s").exit_code == 0
    bare = simulated("disk", "--budget", "1G", "--properties", properties_file(tmp_path, lines))
    assert (bare.exit_code, "without the fence no budget" in bare.stderr) == (1, True)


# ---- quotas ----


def rows(result: Result) -> list[list[str]]:
    """The table's cells, header first."""
    return [re.split(r"\s{2,}", line.strip()) for line in result.stdout.strip().splitlines()]


def test_version_15s_burst_stands_for_the_samples() -> None:
    requests = ["560@0", "1@0", "1@11", "1@12"]
    by_samples = simulated("quota", "--rate", 5, "--samples", 100, *requests)
    assert simulated("quota", "--rate", 5, "--burst", 500, *requests).stdout == by_samples.stdout
    assert rows(simulated("quota", "--rate", 5, "--burst", 500, "500@0", "1@0"))[-1][-1] == "refused for 0 s"


def test_kip_13s_example_is_delayed_by_2_s() -> None:
    result = simulated("quota", "--rate", "5M", "--samples", 10, "5M@0..8/1", "15M@9", "50M@19")
    assert [row[2] for row in rows(result)[1:]] == ["admitted"] * 9 + ["delayed by 2 s", "admitted"]
    longer = simulated("quota", "--rate", "5", "--samples", 10, "--window", "1001ms", "1000@0")
    assert rows(longer)[-1][2] == "delayed by 189.99 s", "a window of 1001 ms isn't rounded to 1 s"


def test_a_pattern_is_many_requests_and_all_come_in_order_of_time() -> None:
    assert parse_requests("15K@0..1/0.5") == [Request(15e3, 0), Request(15e3, 500), Request(15e3, 1000)]
    assert parse_requests("2@0..0.9/0.5") == [Request(2, 0), Request(2, 500)]
    result = simulated("quota", "--rate", 5, "1@3", "2@0..4/2")
    assert [row[0] for row in rows(result)[1:]] == ["0 s", "2 s", "3 s", "4 s"]
