"""Tests that a shell completes the commands of ``quotahost``, by the script of ``--show-completion``."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("quotahost do", ["doctor"]),
        ("quotahost simulate disk --pol", ["--policy"]),
        ("quotahost new fac", ["factor-source"]),
    ],
)
def test_bash_completes_commands_options_and_choices(words: str, completed: list[str]) -> None:
    asked = {"_QUOTAHOST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "quotahost.cli"]
    done = subprocess.run(command, env=os.environ | asked, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout.split() == completed
