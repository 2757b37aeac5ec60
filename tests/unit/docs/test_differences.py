"""Every requirement of the documents has a test, every difference says why, every contradiction what holds here."""

import re

import pytest

from tools.conformance import differences, table
from tools.figures import figures
from tools.matrix.cells import NOT_RUN, results
from tools.requirements import SOURCES, contradictions, documents, is_there, proofs

REQUIREMENTS = {key for document in documents().values() for key in document.requirements}
DIFFERENCES = {key: r for document in documents().values() for key, r in document.requirements.items() if r.differs}
CONTRADICTIONS = contradictions()


def test_every_requirement_is_proven_by_a_test_and_no_other_is_named() -> None:
    assert proofs().keys() == REQUIREMENTS
    commands = {proof.command for tests in proofs().values() for proof in tests}
    assert commands <= {"", "make test-long", "make test-pipeline", "make test-clients"}
    assert "(`make test-long`)" in table(), "a test that make test leaves out is shown with its command"


def test_a_difference_says_all_that_a_reader_needs() -> None:
    for key, each in DIFFERENCES.items():
        assert all((each.section, each.quote, each.today, each.why)), key


def test_a_contradiction_is_between_documents_and_names_tests_that_there_are() -> None:
    for each in CONTRADICTIONS:
        assert len(each.between) == 2
        assert set(each.between) <= documents().keys()
        assert all((each.one, each.other, each.here))
        assert [test for test in each.tests if not is_there(test)] == [], each.one


def test_each_document_has_both() -> None:
    given = documents().keys() - {"mission", "faults"}  # which stand beside no other document
    assert {key.rsplit(".", 1)[0] for key in DIFFERENCES} == given
    assert {name for each in CONTRADICTIONS for name in each.between} == given


@pytest.mark.proves("kip-599.burst-by-default")
def test_the_numbers_are_those_that_the_documents_state_or_that_the_tests_assert() -> None:
    numbers = figures()
    stated = {
        "kip_13_delay_s": 2, "kafka_delay_longest_s": 3, "kafka_delay_shortest_s": 2.001, "kafka_window_s": 12,
        "samples": 100, "bucket_debt": -60, "bucket_wait_s": 12, "bucket_admits_s": 12, "default_burst": 55,
        "default_wait_s": 101, "v15_wait_s": 12, "diff_admits_s": 12, "v15_admits_s": 11, "v15_rate": 4.984,
        "v15_long_run": 1.98, "misplaced": -94.4,
    }  # fmt: skip
    assert numbers == pytest.approx(stated, rel=1e-3)


def test_every_number_is_used_and_none_is_left_as_a_name() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in SOURCES.glob("*.toml"))
    assert set(re.findall(r"\{(\w+):", text)) == figures().keys()
    assert not re.search(r"\{\w+:", differences())


def test_macos_is_not_said_to_run() -> None:
    assert {result for cell, result in results().items() if cell.system == "macOS"} == {NOT_RUN}
