"""The documentation site: a strict build, whose links all lead somewhere, and which loads nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.test_documents import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    nowhere = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | nowhere, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)", text)
        loaded += re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect)[^>]*href=\"?([^\s\">]+)", text)
        assert loaded
        assert [each for each in loaded if re.match(r"(https?:)?//", each)] == [], page


def test_the_readme_is_its_first_page_and_files_outside_docs_are_pages(site: Path) -> None:
    assert "Python decides, Java remembers, Kafka enforces" in (site / "index.html").read_text(encoding="utf-8")
    assert "QuotahostPause" in (site / "repository/conf/alerts.yml.html").read_text(encoding="utf-8")


def test_the_search_knows_the_documents_and_no_source(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"runbooks.html", "disks.html", "reference/properties.html"} <= found
    files = [each.removeprefix("repository/") for each in found if each.startswith("repository/")]
    markdown = [re.sub(r"(.*/)index\.html", r"\1README.md", each).replace(".html", ".md") for each in files]
    assert "CONTRIBUTING.md" in markdown
    assert [each for each in markdown if not (ROOT / each).exists()] == []
