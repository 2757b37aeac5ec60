"""Checks what is built: the lock, the notices, the bill of materials against the contents, and the site."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
JAR = ROOT / "dist/quotahost.jar"
(WHEEL,) = (ROOT / "dist").glob("quotahost-*.whl")


def bill() -> dict[str, dict[str, Any]]:
    components = json.loads((ROOT / "dist/quotahost.cdx.json").read_text())["components"]
    return {component["name"]: component for component in components}


def test_the_bill_has_every_jar_of_the_wheel_and_every_library_of_the_jar_by_its_hash() -> None:
    inside: dict[str, list[dict[str, str]]] = {}
    for archive in (WHEEL, JAR):
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if re.search(r"\.(jar|so|dylib|dll)$", name)]
            digests = {name: hashlib.sha256(opened.read(name)).hexdigest() for name in names}
            inside |= {name: [{"alg": "SHA-256", "content": digest}] for name, digest in digests.items()}
    assert len(inside) == 11
    assert {name: component["hashes"] for name, component in bill().items() if name in inside} == inside


def test_jar_and_wheel_have_their_notices_and_the_jar_only_jpypes_classes_and_ours_and_no_time_of_the_build() -> None:
    with zipfile.ZipFile(JAR) as opened, zipfile.ZipFile(WHEEL) as wheel:
        names = [name for name in opened.namelist() if not name.endswith("/")]
        assert {"LICENSE", "NOTICE"} <= {name.rpartition(".dist-info/licenses/")[2] for name in wheel.namelist()}
        assert len({entry.date_time for entry in opened.infolist()}) == 1
    others = [name for name in names if not re.match(r"(META-INF/versions/0/)?org/(quotahost|jpype)/|META-INF/", name)]
    assert others == []
    assert {f"META-INF/{of}{name}" for of in ("", "licenses/jpype1/") for name in ("LICENSE", "NOTICE")} <= set(names)
    assert "org.jpype" in bill()


@pytest.mark.proves("mission.libraries")
def test_the_lock_names_every_package_that_is_asked_for_and_each_by_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    packages = (ROOT / "requirements.lock").read_text().split("\n")
    starts = [line for line in packages if re.match(r"[\w.-]+==", line)]
    locked = {re.split(r"==", line)[0].replace("_", "-").lower() for line in starts}
    names = {re.split(r"[^\w.-]", requirement)[0].replace("_", "-").lower() for requirement in asked}
    assert {"confluent-kafka", "pydantic", "prometheus-client", "pyspark"} <= names
    assert names - {"quotahost"} <= locked
    assert all(line.endswith("\\") for line in starts), "every package has a hash"


@pytest.mark.long
def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "another"):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        venv = f"VENV={Path(sys.prefix)}"
        subprocess.run(["make", "-s", "wheel", venv, "-o", f"{Path(sys.prefix)}/.done"], cwd=clone, check=True)
        built = sorted((clone / "dist").iterdir())
        digests.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built})
    assert digests[0] == digests[1]
    assert len(digests[0]) == 3


# ---- the site ----


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
