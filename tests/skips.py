"""The reason of a skipped test begins with this prefix if this machine can't run the test (CONTRIBUTING.md)."""

from typing import Final

COULD_NOT_RUN: Final = "COULD NOT RUN: "  # the reason follows
