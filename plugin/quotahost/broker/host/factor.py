"""Decides which factor applies, and puts it into the table.

``judgement`` finds out how much of the quotas is left as far as volumes are known. For the unknown rest the last factor
stays for some time, then ``fallback.action`` applies. From here the factor goes through the shim to Java's QuotaTable,
which multiplies the quotas by it and closes the fence at 0, and its cause goes to the metrics.

**At a start** the factor is decided once before the broker serves anybody. A full disk of its own is known by then and
turns producers back from the first request on. As long as other volumes are unknown, for ``startup.grace`` at most, the
factor is 1, unless the broker stopped in a PAUSE (``remembered_pause``). Topics and partitions are refused only while a
volume is known to be at its hard limit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quotahost.background import LineLimit
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.judgement import OPEN, Judge, Judgement
from quotahost.broker.host.plugins.plugin_set import PluginSet
from quotahost.broker.host.remembered_pause import PauseMemory
from quotahost.broker.host.scope import Scoped, smaller
from quotahost.broker.host.shim import Shim
from quotahost.broker.host.volume_limits import VolumeLimits
from quotahost.model import Factor, State
from quotahost.settings.broker import Settings

log = logging.getLogger("quotahost.factor")

# A smaller change of the factor isn't worth the scan of all sensors by which Kafka takes it over, unless it is a tenth
# of the factor: near the hard limit small steps are large ones.
STEP: Final = 0.01
SHARE: Final = 0.1
_LINES: Final = 20  # a minute, about changes of state
_SETTLED: Final = 5.0  # seconds: a broker makes its authorizer after its callback


class FactorLoop:
    """Reads the factor source when it is due, and decides.

    A known volume at its hard limit leads to PAUSE, whatever else is unknown. While a source fails, the last factor
    stays for ``validity``; for a source that has just started the loop waits for ``startup.grace``. After that
    ``fallback.action`` applies to the rest, and at once where the source itself reports a broker or volume as unknown.
    """

    def __init__(self, shim: Shim, guard: Guard, clock: Callable[[], float], memory: PauseMemory) -> None:
        """``clock`` in seconds, monotonic; ``memory`` tells the state in which the broker stopped."""
        self._shim, self._clock, self._memory = shim, clock, memory
        self._judge = Judge(guard, VolumeLimits(shim, guard), clock)
        self._in_force = FactorInForce(shim, clock)
        self._due = self._started = clock()
        self._known_at: float | None = None  # None: nothing has been known since the start
        # What a host before this one knew last, whose topics only Java still has; OPEN after the start of a broker.
        self._known = Scoped(shim.factor())
        self._found: Scoped | None = self._known  # until another one is put into the table
        self._shown = dict.fromkeys(("LackOfData", "Unknown"), False)
        for name in self._shown:
            shim.gauge("Factor", "", name, 0.0)

    def step(self, plugins: PluginSet, settings: Settings) -> None:
        """Read the source, if there is one and it is due."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + settings.factor_interval.total_seconds()
        source = plugins.factor_source()
        if source is None:
            self._judge.hide()
            # A source that is configured later starts then, and is waited for from then on.
            self._started, self._known_at, self._known = now, None, Scoped(OPEN)
            self._show(lacking=False, unknown=False)
            self._memory.keep(None)
            self._in_force.replace(Scoped(OPEN))
        else:
            starting = self._known_at is None
            # In shadow no factor has any effect.
            in_force = 1.0 if settings.shadow.factor else self._in_force.value
            judgement = self._judge.judge(source, plugins.policy(), settings, starting, in_force)
            self._put(self._decide(judgement, now, settings), settings)

    def forget(self) -> None:
        """The plugins or their settings have changed: judge anew."""
        self._judge.forget()

    def _put(self, new: Scoped, settings: Settings) -> None:
        """Put a factor into the table, for the writers of its topics if it may be for them alone, else for all."""
        if new is self._found and settings.factor_scope == "topics":
            return  # it is in the table with its topics, and would be for all if it were put there again
        self._found = None
        factor, affected = new.factor, new.affected
        # Without the fence nobody sees who writes where. Asked each time: a broker makes it after its callback.
        if factor.value >= 1 or affected is None or settings.factor_scope != "topics" or not self._shim.fence():
            self._in_force.replace(replace(new, affected=None))
            return
        count = len(affected.places)
        topics = "1 topic" if count == 1 else f"{count:,} topics"
        self._in_force.replace(replace(new, factor=Factor(factor.value, f"{factor.cause}; for writers of {topics}")))

    def _decide(self, judgement: Judgement, now: float, settings: Settings) -> Scoped:
        full = judgement.factor.value == 0
        known_now = Scoped(judgement.factor, judgement.affected, full)
        if full or not judgement.unknown:
            self._memory.keep(known_now if full else None)
        if not judgement.unknown:
            self._known_at, self._known = now, known_now
            self._show(lacking=False, unknown=False)
            return known_now
        # The time runs from when everything was known last, not from the first failure after that.
        since = self._started if self._known_at is None else self._known_at
        if judgement.patience and now - since <= judgement.patience:
            if self._known_at is not None:
                # The last factor was known. A volume that is known now may have become fuller than it was then.
                self._show(lacking=False, unknown=True)
                return smaller(known_now, self._known)
            found = self._at_start()
            if known_now.factor.value < 1:
                found = smaller(known_now, found)
        else:
            action = State(settings.fallback_action)
            instead = Factor(float(action is State.OPEN), f"fallback.action={action}: {judgement.unknown}")
            # With fallback.action=OPEN, too, a known volume above its soft limit still slows producers.
            found = smaller(Scoped(instead), known_now)
        self._show(lacking=found.factor.value < judgement.factor.value, unknown=True)
        return found

    def _at_start(self) -> Scoped:
        """What holds until anything is known: the PAUSE in which the broker stopped, else the last factor."""
        remembered = self._memory.recall()
        # Without a fence a factor of 0 is a floor for each new client, which delays it for minutes.
        return remembered if remembered and self._shim.fence() else self._known

    def _show(self, lacking: bool, unknown: bool) -> None:
        """Show whether lack of data lowers the factor in force, and whether anything is unknown."""
        for name, value in (("LackOfData", lacking), ("Unknown", unknown)):
            if value != self._shown[name]:
                self._shown[name] = value
                self._shim.gauge("Factor", "", name, float(value))


class FactorInForce:
    """The factor in Java's table, its cause in the metrics, and its changes of state in the log."""

    def __init__(self, shim: Shim, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim = shim
        # A host before this one may have left another factor than OPEN, with its cause in the metrics.
        self._factor = shim.factor()
        self._shown = self._factor.cause if self._factor.value < 1 else ""
        self._last: Scoped | None = None  # handed on by this host
        self._limit = LineLimit(_LINES, clock)
        self._logged = self._factor.state
        self._transitions = 0  # since the last line
        shim.count("Factor", "", "Transitions", 0.0)

    @property
    def value(self) -> float:
        """The factor in the table, 0.0 to 1.0."""
        return self._factor.value

    def replace(self, new: Scoped) -> None:
        """Put a factor into the table, if it is the first or differs by a step or in state.

        Else at most its cause, the topics whose writers it is for, and whether a volume is known to be full.
        """
        last = self._factor
        # A change of state is taken however small it is: the fence closes at exactly 0 and opens above it.
        transition = new.factor.state is not last.state
        change = abs(new.factor.value - last.value)
        # The new factor is compared with the one in force, so slow changes add up to a step. An equal factor has a case
        # of its own, since no change is below a tenth of 0.
        if not transition and change < STEP and (change == 0 or change < SHARE * last.value):
            # Another volume may be the cause now, which explain and the metrics have to show.
            new = replace(new, factor=Factor(last.value, new.factor.cause))
        # The first one always: nobody else would take back what is in the table from before.
        if new == self._last:
            self._log_state()
            return
        self._factor, self._last = new.factor, new
        self._shim.set_factor(new.factor.value, new.factor.cause, new.affected, new.full)
        self._show_cause()
        if transition:
            self._shim.count("Factor", "", "Transitions", 1)
            self._transitions += 1
        self._log_state()

    def _log_state(self) -> None:
        """Log the state if it isn't the one that was logged last, a few times a minute at most.

        A volume at its hard limit may change it four times a second. Called again and again, so the last state is
        logged in the end.
        """
        now, last = self._factor, self._logged
        if now.state is last or not self._limit.passes():
            return
        level = logging.INFO if now.state is State.OPEN else logging.WARNING
        between = f" ({self._transitions - 1} changes of state were left out before)" if self._transitions > 1 else ""
        log.log(level, "%s -> %s: factor %.2f (%s)%s", last, now.state, now.value, now.cause, between)
        self._logged, self._transitions = now.state, 0

    def _show_cause(self) -> None:
        """The cause stands in the metrics while the factor is below 1."""
        # The cause is the MBean's name, so the MBean of an old cause has to go.
        if self._shown:
            self._shim.forget("Cause", self._shown)
        self._shown = self._factor.cause if self._factor.value < 1 else ""
        if self._shown:
            self._shim.gauge("Cause", self._shown, "Factor", self._factor.value)


class MissingFenceWarning:
    """Warns once, soon after the start, if a factor source may pause writes and no fence could hold that."""

    def __init__(self, shim: Shim, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._shim, self._clock = shim, clock
        self._at = clock() + _SETTLED
        self._done = False

    def step(self, has_source: bool, settings: Settings) -> None:
        """Look for the fence, if it is time and there is something to hold."""
        if self._done or not has_source or settings.shadow.factor or self._clock() < self._at:
            return
        self._done = True
        if not self._shim.fence():
            log.warning(
                "authorizer.class.name is not org.quotahost.QuotaFence: without the fence a PAUSE only slows each "
                "producer to floor.bytes, and a producer that opens new connections evades even that"
            )
            if settings.factor_scope == "topics":
                log.warning("factor.scope=topics needs the fence; without it a factor is for all clients")
