"""Every requirement of the documents has a test, and docs/conformance.md says which."""

from __future__ import annotations

from tools import conformance

BY_REQUIREMENT = conformance.proofs()
REQUIREMENTS = {key: each for _, entries in conformance.documents().values() for key, each in entries.items()}


def test_every_requirement_is_proven_by_a_test() -> None:
    assert not REQUIREMENTS.keys() - BY_REQUIREMENT.keys()


def test_tests_prove_requirements_that_there_are() -> None:
    assert not BY_REQUIREMENT.keys() - REQUIREMENTS.keys()


def test_without_a_test_nothing_is_done() -> None:
    some = conformance.Requirement("a section", "It does something.")
    assert conformance.state(some, []) == "not"
    assert conformance.state(some, next(iter(BY_REQUIREMENT.values()))) == "done"


def test_a_test_that_make_test_leaves_out_is_shown_with_its_command() -> None:
    commands = {proof.command for proofs in BY_REQUIREMENT.values() for proof in proofs}
    assert "" in commands
    assert commands <= {"", "make test-long", "make test-pipeline"}
