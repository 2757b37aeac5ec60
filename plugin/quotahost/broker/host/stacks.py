"""Where a plugin hangs, at the start and later, by Python's stacks in the log; and how ``faulthandler`` is disabled.

The lease tells Java that the host is silent, and nobody which plugin holds it up. A plugin that holds the interpreter's
lock as well is seen at the start alone: later only C code could look, and it may crash where other threads run.
"""

import faulthandler
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from quotahost.base.background import LoggedOnce, Periodic

log = logging.getLogger("quotahost.host")

_LONG_START: Final = 25.0  # seconds: the shim gives up after 30
_LOOK: Final = 1.0  # seconds between two looks at the host
#: Of ``validity``: the line comes before the shim kills a child that is silent for all of it.
_HANGS: Final = 0.8


@contextmanager
def stacks_of_a_long_start() -> Iterator[None]:
    """A plugin that hangs while it is imported or built is found by Python's stacks on the process's standard error.

    C code writes them, without the interpreter's lock, and takes no signal for it.
    """
    faulthandler.dump_traceback_later(_LONG_START, repeat=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class HangingHost:
    """Logs, from a thread of its own, where the host thread is that has not called ``goes_on`` for long."""

    def __init__(self, validity: Callable[[], float]) -> None:
        """Made on the host thread; ``validity`` in seconds."""
        self._validity, self._host = validity, threading.get_ident()
        self._hangs = LoggedOnce(log, logging.ERROR)
        self.goes_on()
        self._thread = Periodic("hang", self._look, lambda: _LOOK)

    def goes_on(self) -> None:
        #: Looks since then, and not seconds: a broker that stood still, as on a machine that is moved, had none.
        self._looks = 0

    def close(self) -> None:
        self._thread.close()

    def _look(self) -> None:
        silent = self._looks * _LOOK  # at least
        self._looks += 1
        if silent < _HANGS * self._validity():
            self._hangs.healed()
        # Documented, in spite of its name.
        elif frame := sys._current_frames().get(self._host):
            stack = "".join(traceback.format_stack(frame))
            self._hangs.report("the host has not looked for work for %.0f s; it is here:\n%s", silent, stack)


# ---- faulthandler.enable() -------------------------------------------------------------------------------------


def disable_fault_handler() -> bool:
    """Disable it, which gives HotSpot its handler back; whether it was enabled.

    HotSpot handles SIGSEGV itself: compiled Java code relies on that for its null checks. ``faulthandler.enable()``
    puts a handler of its own in that place, and the broker ends at the next null check. The shim starts Python
    isolated, so PYTHONFAULTHANDLER and PYTHONDEVMODE have no effect, but a plugin may enable it, or a library that it
    imports. In a process of its own Python may do as it likes.
    """
    enabled = faulthandler.is_enabled()
    faulthandler.disable()
    return enabled
