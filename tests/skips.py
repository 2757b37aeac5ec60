"""pytest's last lines mark a test that this machine can't run with this prefix (CONTRIBUTING.md)."""

from typing import Final

COULD_NOT_RUN: Final = "COULD NOT RUN: "  # the reason follows
