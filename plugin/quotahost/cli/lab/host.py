"""A broker's host without a broker: the real policy of an operator's settings, on a clock that is set.

``broker`` gives it to the host's own ``FactorLoop``, and ``play`` to its judgement; both reach Java by a small shim
here. Nothing waits: the clock stands still until the run sets it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Final

from quotahost.api import Context, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.discovery.build import construct, load, plugin_settings
from quotahost.broker.discovery.entry_points import PluginError
from quotahost.model import Factor
from quotahost.model.affected import Affected
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.testing.broker import FakeBroker

log = logging.getLogger("quotahost.lab")
_DEFAULT: Final = "limits"
Put = Callable[[float, str, Affected | None], None]


class SmallShim:
    """What a host's decisions need of ``quotahost.broker.host.shim.Shim``.

    Attributes:
        set_factor: takes each new factor, its cause, and the topics that it is for.
        failed: the plugin that failed last; "" if none has.
    """

    def __init__(self, fence: bool = True, put: Put = lambda value, cause, affected: None) -> None:
        self._fence, self._put = fence, put
        self.failed = ""

    def broker(self) -> dict[str, str]:
        """No id: the metrics of the broker's own volumes would cost as much as all the rest."""
        return {}

    def fence(self) -> bool:
        """Whether a PAUSE is held."""
        return self._fence

    def factor(self) -> Factor:
        """A new broker begins open."""
        return Factor(1.0)

    def set_factor(self, value: float, cause: str, affected: Affected | None = None) -> None:
        """From now on."""
        self._put(value, cause, affected)

    def plugin_failed(self, name: str) -> None:
        """The policy or the source raised."""
        self.failed = name

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Nobody looks."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Nobody looks."""

    def forget(self, type: str, name: str) -> None:
        """Nobody looks."""


def policy_of(settings: Settings, node_id: int, clock: Callable[[], float]) -> LoadedPlugin[Any]:
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


@lru_cache
def settings_of(properties: tuple[tuple[str, str], ...]) -> Settings:
    """The settings of these properties, without ``client.quota.callback.``.

    Raises:
        SettingsError: one or more of them are unknown or wrong.
    """
    return Settings.from_properties({PREFIX + name: text for name, text in properties})


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the host's lines out of the log: nobody's broker changes its state."""
    quotahost = logging.getLogger("quotahost")
    before = quotahost.level
    quotahost.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        quotahost.setLevel(before)
