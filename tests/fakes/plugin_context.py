"""Helpers for tests of plugins: a clock that a test sets, and a plugin's context on a fake broker."""

import logging
import time
from datetime import UTC, datetime
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from quotahost.api import Context
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.model import Limit
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.storage import StorageSettings
from quotahost.testing.broker import FakeBroker

WALL = 1_700_000_000.0  # seconds since 1970
WITHIN = 60.0  # seconds; only a failing test waits so long


class Clock:
    """A clock that advances only when a test sets it."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Clocks:
    """A broker's two clocks: the monotonic clock and the wall clock."""

    def __init__(self) -> None:
        self.clock, self.wall = Clock(), Clock(WALL)

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.wall.now += seconds

    def at(self, later: float = 0.0) -> datetime:
        """The wall clock's time ``later`` seconds from now."""
        return datetime.fromtimestamp(self.wall.now + later, UTC)


class OwnFloat(float):
    """A float like NumPy's: its ``==`` returns no bool, and its repr is no plain number."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> Any:
        return ["no bool"]

    def __repr__(self) -> str:
        return f"np.float64({float(self)})"


def fails(*_: object) -> NoReturn:
    """A method of a broken plugin."""
    raise RuntimeError("it is broken")


def settings(**given: str) -> Settings:
    """Settings from properties without their prefix, with ``__`` for a dot and ``_`` for a dash in their names."""
    names = {name.replace("__", ".").replace("_", "-"): text for name, text in given.items()}
    return Settings.from_properties({PREFIX + name: text for name, text in names.items()})


def context(
    broker: FakeBroker | None = None, name: str = "mine", own: Any = None, clock: Any = time.monotonic, **given: str
) -> Context[Any]:
    """The context of a plugin on broker 1; the monitor of the broker's disks uses this clock, and ends with it."""
    log = logging.getLogger(f"quotahost.plugin.{name}")
    broker = broker or FakeBroker()
    made = Context(name, own, settings(**given), 1, log, broker=broker, metrics=broker)
    disks = DiskMonitor(broker, broker, made.node_id, lambda: made.settings, clock)
    made.open_disks = disks.started
    made.closing.callback(disks.close)
    return made


def limited(name: str, soft: Limit | None, hard: Limit | None, own: Any = None, scope: str = "cluster") -> Context[Any]:
    """The context of a policy whose settings contain only these limits and the scope of the factor."""
    made, storage = context(name=name, own=own), SimpleNamespace(soft_limit=soft, hard_limit=hard)
    storage.limits_of = partial(StorageSettings.limits_of, cast("Any", storage))
    made.settings = cast("Any", SimpleNamespace(static=SimpleNamespace(storage=storage), factor_scope=scope))
    return made


def monitor(context: Context) -> DiskMonitor:
    """The monitor of the broker's disks that this context hands out."""
    disks = context.disks
    assert isinstance(disks, DiskMonitor)
    return disks


@cache
def patience() -> Settings:
    """Settings with a ``validity`` of 60 s and a ``startup.grace`` of 30 s."""
    return settings(validity="60s", startup__grace="30s")
