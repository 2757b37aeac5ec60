"""The targets of make that the documents name are there, and `make test` is what they say."""

import re
from pathlib import Path
from typing import Final

import pytest

from bench.jvm import class_path
from tests.unit.docs.test_claims import PROJECT, spans
from tests.unit.docs.test_documents import DOCUMENTS, ROOT, name_of

MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")


TARGETS: Final = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def named(text: str) -> set[str]:
    """What could be a target of make in the text."""
    return set(re.findall(r"\bmake ((?:test|demo|bench|build|lint|format|tables|docs|clean|wheel|help)[\w-]*)", text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_targets_of_make_that_they_name_are_there(document: Path) -> None:
    assert named("\n".join(spans(document))) <= TARGETS


@pytest.mark.parametrize("file", [ROOT / "Makefile", ROOT / ".ci/run"], ids=name_of)
def test_targets_of_make_that_the_makefile_and_ci_name_are_there(file: Path) -> None:
    """They have no code type: the whole text is looked at."""
    found = named(file.read_text(encoding="utf-8"))
    assert "test" in found
    assert found <= TARGETS


def test_make_test_leaves_out_what_the_documents_say_and_other_targets_run_that() -> None:
    left_out = set(re.findall(r"not (\w+)", PROJECT["tool"]["pytest"]["ini_options"]["addopts"]))
    assert left_out == {"driver", "long", "clients"}
    assert re.search(r"^test-pipeline:.*\n\t.* -m driver tests/pipeline$", MAKEFILE, re.MULTILINE)
    assert re.search(r"^test-long:.*\n\t.* -m long tests$", MAKEFILE, re.MULTILINE)
    assert re.search(r"^test-clients:.*\n\t.* -m clients tests/clients$", MAKEFILE, re.MULTILINE)
    whole = r"^test: build ## .*test-pipeline.*test-long.*\n\t.*-j 2 lint test-java\n\t.* test-python$"
    assert re.search(whole, MAKEFILE, re.MULTILINE)
    for document in ("README.md", "CONTRIBUTING.md"):
        assert {"make test", "make test-pipeline", "make test-long", "make test-clients"} <= set(
            spans(ROOT / document)
        ), f"{document} tells what make test leaves out"


def test_every_test_that_make_test_leaves_out_is_run_by_a_target() -> None:
    drivers = [path for path in ROOT.glob("tests/**/*.py") if "mark.driver" in path.read_text(encoding="utf-8")]
    assert drivers
    assert all(path.is_relative_to(ROOT / "tests/pipeline") for path in drivers if path.name != Path(__file__).name)


def test_the_benches_java_programs_are_of_this_jar() -> None:
    assert (Path(class_path().partition(":")[0]) / "org/quotahost/CallbackBenchmark.class").exists()
