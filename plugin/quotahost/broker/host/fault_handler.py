"""Keeps Python's faulthandler out of the broker's process.

HotSpot handles SIGSEGV itself: compiled Java code relies on that for its null checks. ``faulthandler.enable()`` puts a
handler of its own in that place, and the broker ends at the next null check. The shim starts Python isolated, so
PYTHONFAULTHANDLER and PYTHONDEVMODE have no effect, but a plugin may enable it, or a library that it imports.

1. Before and after the plugins are built, :func:`refuse` ends the broker's start.
2. Later :class:`Disabling` disables it again each second, which gives HotSpot its handler back, and logs that.
"""

from __future__ import annotations

import faulthandler
import logging

from quotahost.background import LoggedOnce
from quotahost.errors import QuotahostError

log = logging.getLogger("quotahost.host")

_WHY = "it takes the JVM's handler of SIGSEGV away, and the broker would crash"


class FaultHandlerEnabled(QuotahostError):
    """Python's faulthandler is enabled in the broker's process."""


def refuse(by: str) -> None:
    """Disable faulthandler and refuse the start if it is enabled; ``by`` says who may have done it.

    Raises:
        FaultHandlerEnabled: it was.
    """
    if faulthandler.is_enabled():
        faulthandler.disable()
        raise FaultHandlerEnabled(f"Python's faulthandler was enabled by {by}: {_WHY}; take faulthandler.enable() out")


class Disabling:
    """Disables faulthandler when somebody has enabled it while the broker runs."""

    def __init__(self) -> None:
        """Nobody has yet."""
        self._fault = LoggedOnce(log)

    def tick(self) -> None:
        """Look, and disable it."""
        if faulthandler.is_enabled():
            faulthandler.disable()
            self._fault.report("a plugin has enabled Python's faulthandler, which is disabled again: %s", _WHY)
