"""The documents say what the code does, and what they show works."""

import re
from pathlib import Path
from typing import Any

import pytest

from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tools.tables import TABLES, renewed

ROOT = Path(__file__).parents[3]
DOCUMENTS = [*ROOT.glob("*.md"), ROOT / "conf/README.md", ROOT / "containers/README.md", *ROOT.glob("docs/**/*.md")]
PLUGINS = ROOT / "docs/plugins.md"


def name_of(document: object) -> str:
    return str(document.relative_to(ROOT)) if isinstance(document, Path) else ""


def blocks(document: Path, language: str) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Those of its headings, as Git hosts make them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {anchor_of(heading) for heading in headings}


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", TABLES, ids=name_of)
def test_tables_are_those_of_the_code(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert renewed(document, text) == text, "run make tables"


def test_the_plugins_that_they_show_keep_the_contract_by_the_checks_that_they_show() -> None:
    shown: dict[str, Any] = {}
    exec(compile("\n".join(blocks(PLUGINS, "python")), str(PLUGINS), "exec", dont_inherit=True), shown)
    tests = [name for name in shown if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        shown[name]()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_the_properties_that_they_show_are_understood(document: Path) -> None:
    for block in blocks(document, "properties"):  # each by itself: two may name other suppliers
        lines = [line for line in block.splitlines() if line]
        Settings.from_properties(dict(line.split("=", 1) for line in lines))
        known = (PREFIX, "authorizer.class.name=org.quotahost.QuotaFence", "quota.window.num=2")
        assert all(line.startswith(known) for line in lines)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", document.read_text(encoding="utf-8"))
    for target, anchor in links:
        if "://" in target:
            continue
        path = document.parent / target if target else document
        assert path.exists(), f"{name_of(document)} links to {target}"
        assert not anchor or anchor in anchors(path), f"{name_of(document)} links to {target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_modules_that_a_document_names_are_there(document: Path) -> None:
    named = set(re.findall(r"`([a-z_]+/[\w/]*[\w]+\.(?:py|sql|java))`", document.read_text(encoding="utf-8")))
    roots = (ROOT, ROOT / "plugin/quotahost", ROOT / "java-shim/src/main/java/org/quotahost")
    assert [path for path in sorted(named) if not any((root / path).exists() for root in roots)] == []
