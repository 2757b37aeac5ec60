"""Any installed policy, on the clock of a run."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from quotahost.api import Context, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.discovery.build import construct, load, plugin_settings
from quotahost.broker.discovery.entry_points import PluginError
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker

log = logging.getLogger("quotahost.simulation")
_DEFAULT: Final = "limits"


def policy(settings: Settings, node_id: int, clock: Callable[[], float]) -> LoadedPlugin[Any]:
    """Build the policy of these settings, ``limits`` if they name none; ``clock`` in seconds.

    Raises:
        PluginError: there is none of that name, or it depends on a clock that nobody can set.
        SettingsError: one of its own properties is wrong.
    """
    name = settings.policy or _DEFAULT
    entry, takes_clock = _entry(name)
    broker = FakeBroker()
    section = plugin_settings(Role.POLICY, name, settings, entry)
    context = Context(name, section, settings, node_id, log, broker=broker, metrics=broker)
    return construct(Role.POLICY, partial(entry, clock=clock) if takes_clock else entry, context)


@lru_cache
def _entry(name: str) -> tuple[Any, bool]:
    """The class or function of that entry point, and whether it takes a ``clock``."""
    entry = load(Role.POLICY, name)
    takes_clock = "clock" in inspect.signature(entry).parameters
    if getattr(entry, "depends_on_time", False) and not takes_clock:
        without = "depends on time and takes no argument clock, so that no simulated time can reach it; give it one"
        raise PluginError(Role.POLICY, name, without)
    return entry, takes_clock
