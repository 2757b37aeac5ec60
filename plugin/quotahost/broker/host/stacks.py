"""This module logs Python's stacks if a plugin hangs, at the start or later, and disables ``faulthandler`` in a JVM.

The lease shows Java only that the host is silent, not which plugin blocks it. If a plugin also holds the interpreter's
lock, only the stacks of the start show it: later only C code could read them, which may crash if other threads run.
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
#: The share of ``validity`` after which the host is logged: the shim kills a child after the whole ``validity``.
_HANGS: Final = 0.8


@contextmanager
def stacks_of_a_long_start(*, allowed: bool) -> Iterator[None]:
    """Write Python's stacks to standard error if a plugin hangs while it is imported, built or first called.

    C code writes them, without the interpreter's lock, and needs no signal handler. Beside threads that run, it may
    crash the process: in a trial one dump in 40 did. So only a start of a broker, which fails then anyway, and a
    process of its own are ``allowed`` to do it. A host that starts again in a broker has :class:`HangingHost`.
    """
    if allowed:
        faulthandler.dump_traceback_later(_LONG_START, repeat=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class HangingHost:
    """Logs the host thread's stack, on its own thread, if the host thread has not called ``goes_on`` for long."""

    def __init__(self, validity: Callable[[], float]) -> None:
        """The host thread must call this. ``validity`` returns seconds."""
        self._validity, self._host = validity, threading.get_ident()
        self._hangs = LoggedOnce(log, logging.ERROR)
        self.goes_on()
        self._thread = Periodic("hang", self._look, lambda: _LOOK)

    def goes_on(self) -> None:
        #: The looks since then. Seconds would also count while the whole broker stands still, as in a live migration.
        self._looks = 0

    def close(self) -> None:
        self._thread.close()

    def _look(self) -> None:
        silent = self._looks * _LOOK  # at least
        self._looks += 1
        if silent < _HANGS * self._validity():
            self._hangs.healed()
        # _current_frames() is documented, in spite of its name.
        elif frame := sys._current_frames().get(self._host):
            stack = "".join(traceback.format_stack(frame))
            self._hangs.report("the host thread has taken no work for %.0f s; its stack:\n%s", silent, stack)


# ---- faulthandler.enable() -------------------------------------------------------------------------------------


def disable_fault_handler() -> bool:
    """Disable ``faulthandler``, which restores HotSpot's signal handler, and return whether it was enabled.

    HotSpot handles SIGSEGV itself: compiled Java code relies on this for its null checks. ``faulthandler.enable()``
    installs its own handler instead, and the broker crashes at the next null check. The shim starts Python isolated, so
    PYTHONFAULTHANDLER and PYTHONDEVMODE have no effect. But a plugin, or a library that it imports, may enable it. In a
    process of its own Python may enable it.
    """
    enabled = faulthandler.is_enabled()
    faulthandler.disable()
    return enabled
