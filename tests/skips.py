"""The first words of pytest's last lines about a test that this machine can't run (CONTRIBUTING.md)."""

from typing import Final

COULD_NOT_RUN: Final = "COULD NOT RUN: "  # the reason follows
