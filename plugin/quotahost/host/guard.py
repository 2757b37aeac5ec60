"""Stands between the host and every plugin: a failure is counted, logged once, and kept from everybody else.

Every call of a plugin goes through here, from whichever module of the host; the caller passes the consequence that the
log line states, and goes on without an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from quotahost.host.shim import Shim

T = TypeVar("T")
log = logging.getLogger("quotahost.plugins")


class Failed(Generic[T]):
    """The answer of a guarded call if the plugin failed."""


#: Not None, which is an answer: a supplier has no quota for the client, or a factor source knows nothing.
FAILED: Failed[object] = Failed()


class Guard:
    """Counts every failure of a plugin; logs the first of each type in each method, until the method works again."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._logged: dict[tuple[str, str], set[type[BaseException]]] = {}

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
        logged = self._logged.setdefault((plugin, what), set())
        if type(error) not in logged:
            logged.add(type(error))
            log.error(
                "plugin %s failed in %s; %s. Further failures of this kind are only counted (quotahost:"
                "type=Plugin,name=%s, Errors)", plugin, what, consequence, plugin, exc_info=error,
            )  # fmt: skip

    def heal(self, plugin: str, what: str) -> None:
        """This call of the plugin works (again)."""
        if self._logged.pop((plugin, what), None):
            log.warning("plugin %s works again in %s", plugin, what)
