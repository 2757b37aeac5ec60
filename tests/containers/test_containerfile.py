"""The reader of Containerfiles understands those of ``containers/`` wholly, and refuses what it doesn't know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.plugin import ROOT
from harness.system.containerfile import Instruction, NotUnderstood, expand, instructions

FILES = sorted((ROOT / "containers").glob("*.Containerfile"))
REGISTRY = re.compile(r"^(?:[\w.-]+\.[\w-]+|localhost)(?::\d+)?/")


def test_lines_that_go_on_are_one_instruction_and_comments_are_none() -> None:
    text = "# first\nFROM a AS b\nRUN one \\\n# between\n && two\n\nCOPY --from=b --chmod=755 /x y/\n"
    assert list(instructions(text)) == [
        Instruction("FROM", "a AS b"),
        Instruction("RUN", "one  && two"),
        Instruction("COPY", "--from=b --chmod=755 /x y/"),
    ]
    assert list(instructions(text))[2].flags() == ({"from": "b", "chmod": "755"}, ["/x", "y/"])


def test_variables_are_replaced_in_both_forms_and_unset_ones_are_empty() -> None:
    assert expand("${A}-$B-${C}", {"A": "1", "B": "2"}) == "1-2-"


@pytest.mark.parametrize("text", ["HEALTHCHECK NONE", "run lower"])
def test_an_unknown_instruction_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        list(instructions(text))


def test_the_shells_form_of_an_entry_point_is_refused() -> None:
    with pytest.raises(NotUnderstood, match=r"only the form \[\.\.\.\]"):
        Instruction("CMD", "run me").exec_form()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_image_ends_as_another_user_than_root_and_names_no_registry(file: Path) -> None:
    found = list(instructions(file.read_text(encoding="utf-8")))
    assert [step.text for step in found if step.name == "USER"][-1] in ("1000", "1001")
    images = [step.text.partition("=")[2] for step in found if step.name == "ARG" and "IMAGE" in step.text]
    assert images
    assert not [image for image in images if REGISTRY.match(image)]
    assert not [step for step in found if step.name == "FROM" and not step.text.startswith("${")]
