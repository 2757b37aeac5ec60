"""The README says what the code does, and what it shows works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quotahost.settings import PREFIX, Settings
from quotahost.testing import check_supplier
from tools.readme import README, renewed

ROOT = Path(__file__).parents[2]
TEXT = README.read_text(encoding="utf-8")
DOCUMENTS = [
    README,
    *(ROOT / name for name in ("CONTRIBUTING.md", "conf/README.md")),
    *ROOT.glob("docs/*.md"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_its_tables_are_those_of_the_code() -> None:
    assert renewed(TEXT) == TEXT, "run tools/readme.py"


def test_a_section_that_is_out_of_date_is_renewed() -> None:
    stale = TEXT.replace("| `validity` |", "| `valid` |").replace("`quotahost_clients`", "`quotahost_people`")
    assert stale != TEXT
    assert renewed(stale) == TEXT


@pytest.mark.parametrize("marker", ["<!-- metrics -->", "<!-- /properties -->"])
def test_a_lost_marker_is_told(marker: str) -> None:
    with pytest.raises(ValueError, match="once, each on a line of its own"):
        renewed(TEXT.replace(marker, ""))


def test_the_plugin_that_it_shows_keeps_the_contract_by_the_check_that_it_shows() -> None:
    plugin, check = blocks("python")
    shown: dict[str, object] = {}
    exec(plugin + check, shown)
    shown["test_it_keeps_the_contract"]()  # type: ignore[operator]
    check_supplier(shown["Batch"])


def test_the_properties_that_it_shows_are_understood() -> None:
    shown = [[line for line in block.splitlines() if line] for block in blocks("properties")]
    for block in shown:  # each by itself: two may name other suppliers
        Settings.from_properties(dict(line.split("=", 1) for line in block))
    lines = [line for block in shown for line in block]
    assert len(lines) > 3
    assert all(line.startswith((PREFIX, "authorizer.class.name=org.quotahost.QuotaFence")) for line in lines)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []
