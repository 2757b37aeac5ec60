"""The Containerfiles end as another user than root, and name no registry; test_images.py runs their steps."""

import re
from pathlib import Path

import pytest

from harness.plugin import ROOT
from harness.system.image import instructions

FILES = sorted((ROOT / "containers").glob("*.Containerfile"))
REGISTRY = re.compile(r"^(?:[\w.-]+\.[\w-]+|localhost)(?::\d+)?/")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_image_ends_as_another_user_than_root_and_names_no_registry(file: Path) -> None:
    steps = list(instructions(file.read_text(encoding="utf-8")))
    assert [step.text for step in steps if step.name == "USER"][-1] in ("1000", "1001")
    images = [step.text.partition("=")[2] for step in steps if step.name == "ARG" and "IMAGE" in step.text]
    assert images
    assert not [image for image in images if REGISTRY.match(image)]
    assert not [step for step in steps if step.name == "FROM" and not step.text.startswith("${")]
