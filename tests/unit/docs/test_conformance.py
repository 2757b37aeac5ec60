"""Every requirement of the documents has a test, and docs/conformance.md says which."""

from tools.conformance import table
from tools.requirements import documents, proofs

REQUIREMENTS = {key for document in documents().values() for key in document.requirements}


def test_every_requirement_is_proven_by_a_test() -> None:
    assert not REQUIREMENTS - proofs().keys()


def test_tests_prove_requirements_that_there_are() -> None:
    assert not proofs().keys() - REQUIREMENTS


def test_a_test_that_make_test_leaves_out_is_shown_with_its_command() -> None:
    commands = {proof.command for tests in proofs().values() for proof in tests}
    assert commands <= {"", "make test-long", "make test-pipeline", "make test-clients"}
    assert "(`make test-long`)" in table()
