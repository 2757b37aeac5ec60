"""Stands between the host and every plugin: a failure is counted, logged once, and kept from everybody else.

The modules of the host call a plugin by ``Guard.call``; the caller passes the consequence that the log line states, and
goes on without an answer. Two loops call plugins directly, since they ask for tens of thousands of clients or volumes
at once: ``resolver`` for ``quota`` and ``distinct_client_ids``, ``judgement`` for ``quota_factor``. They catch what the
plugin raises and report one failure here (``Guard.report``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from quotahost.background import MINUTE, LineLimit
from quotahost.broker.host.shim import Shim

T = TypeVar("T")
log = logging.getLogger("quotahost.plugins")
_LINES: Final = 5  # a minute for one method of one plugin


class Failed(Generic[T]):
    """The answer of a guarded call if the plugin failed."""


#: Not None, which is an answer: a supplier has no quota for the client, or a factor source knows nothing.
FAILED: Failed[object] = Failed()


class _Method:
    """What was logged of one method of one plugin."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # More than one line, since a second type of error is news; a plugin may raise ever new types.
        self.limit = LineLimit(_LINES, clock)
        self.recent: dict[type[BaseException], float] = {}
        self.logged: set[type[BaseException]] = set()
        self.left_out = 0


class Guard:
    """Counts every failure of a plugin, and logs the first of each type in each method until the method works again.

    A method that fails, works, fails and so on gets a line a minute for each type of error, a few for all types.
    """

    def __init__(self, shim: Shim, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._clock = shim, clock
        self._methods: dict[tuple[str, str], _Method] = {}

    def call(self, plugin: str, what: str, consequence: str, function: Callable[[], T]) -> T | Failed[object]:
        """The plugin's answer, or FAILED. Success heals it: its next failure is logged again."""
        try:
            answer = function()
        except BaseException as error:  # a plugin's SystemExit is its failure, not the broker's end
            self.report(plugin, what, consequence, error)
            return FAILED
        self.heal(plugin, what)
        return answer

    def report(self, plugin: str, what: str, consequence: str, error: BaseException) -> None:
        """Count a failure, and log it if it is the first of its type."""
        self._shim.plugin_failed(plugin)
        method = self._methods.get((plugin, what))
        if method is None:
            method = self._methods[plugin, what] = _Method(self._clock)
        kind, now = type(error), self._clock()
        method.recent = {each: at for each, at in method.recent.items() if now - at < MINUTE}
        if kind in method.logged:
            return
        if kind in method.recent or not method.limit.passes():
            method.left_out += 1
            return
        before, method.left_out = method.left_out, 0
        method.logged.add(kind)
        method.recent[kind] = now
        log.error(
            "plugin %s failed in %s; %s. Further failures of this kind are only counted (quotahost:"
            "type=Plugin,name=%s, Errors)%s",
            plugin, what, consequence, plugin, f" ({before} of them before this one)" if before else "", exc_info=error,
        )  # fmt: skip

    def heal(self, plugin: str, what: str) -> None:
        """This call of the plugin works (again)."""
        method = self._methods.get((plugin, what))
        if method is not None and method.logged:
            method.logged = set()
            log.warning("plugin %s works again in %s", plugin, what)
