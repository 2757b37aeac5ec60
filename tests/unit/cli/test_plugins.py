"""``quotahost plugins`` and ``properties``, and the version."""

from __future__ import annotations

from pathlib import Path

from quotahost.api import Role
from quotahost.settings.broker import properties_table
from tests.fakes.packages import distribute
from tests.unit.cli.commands import run


def test_plugins_lists_each_role_s_plugins_with_their_state(site: Path) -> None:
    broken = {Role.POLICY.group: {"broken": "acme_no_such:Thing"}}
    distribute(site, "acme", broken, version="2.3")

    result = run("plugins")

    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()]
    assert ["supplier", "static", "quotahost", "0.1.0", "ok"] in rows
    assert ["factor", "source", "fixed", "quotahost", "0.1.0", "ok"] in rows
    assert next(row for row in rows if "broken" in row)[:5] == [
        "policy",
        "broken",
        "acme",
        "2.3",
        "ModuleNotFoundError:",
    ]


def test_properties_prints_the_generated_table() -> None:
    assert run("properties").output == properties_table()


def test_the_version_is_that_of_the_distribution(site: Path) -> None:
    assert run("--version").output == "0.1.0\n"
