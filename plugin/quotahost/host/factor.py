"""Source, policy, factor, table: how much of the quotas is left right now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from quotahost.api import QuotaPolicy
from quotahost.host.guard import Failed, Guard
from quotahost.host.plugins import PluginSet
from quotahost.host.shim import Shim
from quotahost.model import ClusterVolumes, Factor, State, Volume
from quotahost.settings.broker import Settings
from quotahost.text import printable

# TODO(merge) The policy asked for every volume: the smallest factor holds, also while it fails for some of
#   them.

# TODO(merge) Says once, soon after the start, when no fence stands that could hold a PAUSE.


log = logging.getLogger("quotahost.factor")


STEP: Final = 0.01  # a smaller change isn't worth the scan of all sensors that Kafka answers it with,


SHARE: Final = 0.1  # unless it is a tenth of the factor: near the hard limit small steps are large ones


_OPEN: Final = Factor(1.0)


_LAST_FACTOR_HOLDS: Final = "its last factor holds for validity"


@dataclass(frozen=True, slots=True)
class _Read:
    """What one read gave: the factor of what is known, and why the rest isn't, "" if there is no rest.

    ``patience`` is how long in seconds the rest may stay unknown before ``fallback.action`` holds.
    """

    factor: Factor
    unknown: str = ""
    patience: float = 0.0


class FactorLoop:
    """Reads the factor source when it is due and hands on a factor that differs by a step.

    A volume at its hard limit counts whatever else is unknown. While a source fails, the last factor holds for
    ``validity``, and one that has just started is waited for, for ``startup.grace``; then, or at once where the
    source itself says that a broker or volume is unknown, ``fallback.action`` holds for the rest.
    """

    def __init__(self, shim: Shim, guard: Guard, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._guard, self._clock = shim, guard, clock
        self._due = clock()
        self._started = clock()
        self._known_at: float | None = None
        self._known = _OPEN
        self._told: ClusterVolumes | None = None
        self._judged = _OPEN
        self._factor = _OPEN
        self._cause = ""
        self._lacking = False
        shim.gauge("Factor", "", "LackOfData", 0.0)
        shim.count("Factor", "", "Transitions", 0.0)

    @property
    def due(self) -> float:
        """When the source is to be read next, on the clock."""
        return self._due

    def step(self, plugins: PluginSet, settings: Settings) -> None:
        """Read the source, if there is one and it is due."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + settings.factor_interval.total_seconds()
        if plugins.factor_source() is None:
            self._nothing_to_know(now)
            return
        read = self._read(plugins, settings)
        self._publish(self._decide(read, now, settings))

    def _nothing_to_know(self, now: float) -> None:
        """A source that comes later starts then, and is waited for from then on."""
        self._started, self._known_at = now, None
        self._lack(False)
        self._publish(_OPEN)

    # ---- what holds ----

    def _decide(self, read: _Read, now: float, settings: Settings) -> Factor:
        if not read.unknown:
            self._known_at, self._known = now, read.factor
            self._lack(False)
            return read.factor
        since = self._started if self._known_at is None else self._known_at
        if read.patience and now - since <= read.patience:
            self._lack(False)
            held = self._at_start(read, settings) if self._known_at is None else self._known
            return _smaller(read.factor, held)
        self._lack(True)
        action = State(settings.fallback_action)
        value = 0.0 if action is State.PAUSE else 1.0
        return _smaller(Factor(value, f"fallback.action={action}: {read.unknown}"), read.factor)

    def _at_start(self, read: _Read, settings: Settings) -> Factor:
        """A fence can stop writes for the moment until the disks are known, and no client is muted by it."""
        if settings.fallback_action is State.PAUSE and self._shim.fence():
            return Factor(0.0, f"waiting at the start: {read.unknown}")
        return _OPEN

    def _lack(self, lacking: bool) -> None:
        if lacking != self._lacking:
            self._lacking = lacking
            self._shim.gauge("Factor", "", "LackOfData", float(lacking))

    # ---- what the source says ----

    def _read(self, plugins: PluginSet, settings: Settings) -> _Read:
        source = plugins.factor_source()
        assert source is not None
        name, plugin = source
        told = self._guard.call(name, "read()", _LAST_FACTOR_HOLDS, plugin.read)
        grace, validity = settings.startup_grace.total_seconds(), settings.validity.total_seconds()
        patience = grace if self._known_at is None else validity
        if isinstance(told, ClusterVolumes):
            factor, failed = self._judge(told, plugins)
            if told.unknown:
                return _Read(factor, "; ".join(told.unknown[:3]) + (" ..." if len(told.unknown) > 3 else ""))
            return _Read(factor, failed or told.waiting, patience if failed else grace)
        if isinstance(told, Factor):
            return _Read(told)
        if told is not None and not isinstance(told, Failed):
            problem = TypeError(f"a factor source must answer ClusterVolumes, a Factor or None, not {told!r}")
            self._guard.report(name, "read()", _LAST_FACTOR_HOLDS, problem)
        return _Read(_OPEN, f"factor source {name} doesn't know", patience)

    def _judge(self, told: ClusterVolumes, plugins: PluginSet) -> tuple[Factor, str]:
        """The smallest factor of all volumes, and "" or that the policy fails for some of them."""
        policy = plugins.policy()
        if policy is None:
            return _OPEN, ""
        name, plugin = policy
        if told is self._told and not getattr(plugin, "depends_on_time", False):
            return self._judged, ""
        smallest = Smallest(plugin)
        answer = self._guard.call(
            name, "quota_factor()", _LAST_FACTOR_HOLDS, lambda: smallest.judge(told.volumes)
        )
        if isinstance(answer, Failed):
            self._told = None
            return smallest.factor(), f"the policy {name} fails"
        self._told, self._judged = told, smallest.factor()
        return self._judged, ""

    def forget(self) -> None:
        """The plugins or their settings have changed: judge anew."""
        self._told = None

    # ---- to the table ----

    def _publish(self, factor: Factor) -> None:
        last = self._factor
        edge = factor.state is not last.state
        change = abs(factor.value - last.value)
        if not edge and change < STEP and (change == 0 or change < SHARE * last.value):
            self._because(factor.cause)
            return
        self._factor = factor
        self._shim.set_factor(factor.value, factor.cause)
        self._show(factor)
        if edge:
            self._shim.count("Factor", "", "Transitions", 1)
            level = logging.WARNING if factor.state is not State.OPEN else logging.INFO
            log.log(level, "%s -> %s: factor %.2f (%s)", last.state, factor.state, factor.value, factor.cause)

    def _because(self, reason: str) -> None:
        """The factor in force stays, and has another cause from now on."""
        if reason != self._factor.cause:
            self._factor = Factor(self._factor.value, reason)
            self._shim.set_factor(self._factor.value, reason)
            self._show(self._factor)

    def _show(self, factor: Factor) -> None:
        """The cause stands in the metrics while the factor is below 1."""
        if self._cause:
            self._shim.forget("Cause", self._cause)
        self._cause = factor.cause if factor.value < 1 else ""
        if self._cause:
            self._shim.gauge("Cause", self._cause, "Factor", factor.value)


def _smaller(one: Factor, other: Factor) -> Factor:
    return one if one.value <= other.value else other


class Smallest:
    """The volume with the smallest factor among those that the policy can judge."""

    def __init__(self, policy: QuotaPolicy) -> None:
        """Nothing has been asked yet."""
        self._policy = policy
        self._least: tuple[float, Volume] | None = None

    def judge(self, volumes: Iterable[Volume]) -> None:
        """Ask for each; the first failure is raised when all have been asked."""
        failure: BaseException | None = None
        for volume in volumes:
            try:
                value = Factor(self._policy.quota_factor(volume)).value
            except BaseException as error:
                failure = failure or error
            else:
                if self._least is None or value < self._least[0]:
                    self._least = value, volume
        if failure is not None:
            raise failure

    def factor(self) -> Factor:
        """Of that volume; OPEN if there is none."""
        if self._least is None:
            return Factor(1.0)
        value, volume = self._least
        return Factor(value, f"broker {printable(volume.broker)}, volume {printable(volume.name)}")


log = logging.getLogger("quotahost.factor")


_SETTLED: Final = 5.0  # seconds: a broker makes its authorizer after its callback


class MissingFenceWarning:
    """Looks once for a fence, when there is a factor source and the broker has settled."""

    def __init__(self, shim: Shim, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._clock = shim, clock
        self._at = clock() + _SETTLED
        self._done = False

    def step(self, has_source: bool, settings: Settings) -> None:
        """Look, if it is time and there is something to hold."""
        if self._done or not has_source or settings.mode == "shadow" or self._clock() < self._at:
            return
        self._done = True
        if not self._shim.fence():
            log.warning(
                "authorizer.class.name is not org.quotahost.QuotaFence: nothing holds a PAUSE; it only slows each "
                "producer to floor.bytes, and who opens new connections gets around that"
            )
