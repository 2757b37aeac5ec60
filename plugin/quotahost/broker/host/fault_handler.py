"""Keeps Python's faulthandler out of the broker's process.

HotSpot handles SIGSEGV itself: compiled Java code relies on that for its null checks. ``faulthandler.enable()`` puts a
handler of its own in that place, and the broker ends at the next null check. The shim starts Python isolated, so
PYTHONFAULTHANDLER and PYTHONDEVMODE have no effect, but a plugin may enable it, or a library that it imports.

1. Before and after the plugins are built, :meth:`FaultHandler.refuse` ends the broker's start.
2. Later :meth:`FaultHandler.tick` disables it again each second, which gives HotSpot its handler back, and logs that.
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


class FaultHandler:
    """Looks whether faulthandler is enabled where it does harm: in the broker's own process."""

    def __init__(self, in_jvm: bool) -> None:
        """``in_jvm``: whether Python runs in the broker's process; in a process of its own it may do as it likes."""
        self._in_jvm, self._fault = in_jvm, LoggedOnce(log)

    def refuse(self, by: str) -> None:
        """Disable it and refuse the start if it is enabled; ``by`` says who may have done it.

        Raises:
            FaultHandlerEnabled: it was.
        """
        if self._disabled():
            raise FaultHandlerEnabled(
                f"Python's faulthandler was enabled by {by}: {_WHY}; take faulthandler.enable() out"
            )

    def tick(self) -> None:
        """Disable it again, if somebody has enabled it since the start."""
        if self._disabled():
            self._fault.report("a plugin has enabled Python's faulthandler, which is disabled again: %s", _WHY)

    def _disabled(self) -> bool:
        found = self._in_jvm and faulthandler.is_enabled()
        if found:
            faulthandler.disable()
        return found
