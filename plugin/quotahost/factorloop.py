"""Source, policy, factor, table: how much of the quotas is left right now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from quotahost.guard import Failed, Guard
from quotahost.lineup import Lineup
from quotahost.model import ClusterVolumes, Factor, State
from quotahost.settings import Settings
from quotahost.shim import Shim

log = logging.getLogger("quotahost.factor")

STEP: Final = 0.01  # a smaller change isn't worth the scan of all sensors that Kafka answers it with


class FactorLoop:
    """Reads the factor source when it is due and hands on a factor that differs by a step.

    While nothing is known the last factor holds: for ``startup.grace`` after the start (then it is 1), for
    ``validity`` later; then ``fallback.action`` holds until the source knows again.
    """

    def __init__(self, shim: Shim, guard: Guard, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._guard, self._clock = shim, guard, clock
        self._known_at: float | None = None
        self._started = clock()
        self._due = self._started
        self._factor = Factor(1.0)

    @property
    def due(self) -> float:
        """When the source is to be read next, on the clock."""
        return self._due

    def step(self, lineup: Lineup, settings: Settings) -> None:
        """Read the source, if there is one and it is due."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + settings.factor_interval.total_seconds()
        if lineup.factor_source() is None:
            self._publish(Factor(1.0))
            return
        factor = self._read(lineup)
        if factor is not None:
            self._known_at = now
            self._publish(factor)
        elif self._unknown_for(now, settings):
            action = State(settings.fallback_action)
            self._publish(
                Factor(0.0 if action is State.PAUSE else 1.0, f"state unknown: fallback.action={action}")
            )

    def _unknown_for(self, now: float, settings: Settings) -> bool:
        if self._known_at is None:
            return now - self._started > settings.startup_grace.total_seconds()
        return now - self._known_at > settings.validity.total_seconds()

    def _read(self, lineup: Lineup) -> Factor | None:
        source = lineup.factor_source()
        assert source is not None
        name, plugin = source
        told = self._guard.call(name, "read()", "its last factor holds for validity", plugin.read)
        if isinstance(told, ClusterVolumes):
            return self._judge(told, lineup)
        if told is None or isinstance(told, (Factor, Failed)):
            return told if isinstance(told, Factor) else None
        problem = TypeError(f"a factor source must answer ClusterVolumes, a Factor or None, not {told!r}")
        self._guard.report(name, "read()", "its last factor holds for validity", problem)
        return None

    def _judge(self, told: ClusterVolumes, lineup: Lineup) -> Factor | None:
        policy = lineup.policy()
        if told.unknown or not told.volumes or policy is None:
            return None
        name, plugin = policy
        answer = self._guard.call(
            name,
            "quota_factor()",
            "the last factor holds for validity",
            lambda: min(
                (Factor(plugin.quota_factor(v), f"broker {v.broker}, volume {v.name}") for v in told.volumes),
                key=lambda factor: factor.value,
            ),
        )
        return answer if isinstance(answer, Factor) else None

    def _publish(self, factor: Factor) -> None:
        last = self._factor
        edge = factor.state is not last.state
        if not edge and abs(factor.value - last.value) < STEP:
            return
        self._factor = factor
        self._shim.set_factor(factor.value)
        level = logging.WARNING if factor.state is not State.OPEN else logging.INFO
        if edge:
            log.log(
                level, "%s -> %s: factor %.2f (%s)", last.state, factor.state, factor.value, factor.reason
            )
