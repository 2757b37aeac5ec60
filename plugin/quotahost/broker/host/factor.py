"""The host reads the factor source and decides the factor in force: its cause, its log line, what applies to unknown
volumes, and the factor with which a broker starts.

1. Every ``factor.interval`` the host reads the factor source. The source returns volumes, and ``volume_evaluation``
   makes a factor of these; a source that knows no volumes returns a factor. It may also say what is unknown.
2. If a known volume is at its hard limit, the state is PAUSE, whatever else is unknown. If the source has no answer or
   fails, the last factor stays for ``validity``, or for ``startup.grace`` after the source's start. Then
   ``fallback.action`` applies to what is unknown. It applies at once if the source itself names what is unknown, except
   for half of ``validity`` after this process stood still, as when its machine is moved: the source must read on first.
3. At the same time the host reads the sources for single quota types (``TypedSources``). These only slow clients: if
   such a source fails or knows nothing, its factor is 1.
4. The host sends a new factor to Java's QuotaTable only if it differs by a step or in its state (``FactorInForce``).
   Java multiplies the quotas by the factor and closes the fence at factor 0. The metrics show the factor's cause.

**At a start** the host decides the factor once before the broker serves its first request. It knows the broker's own
disks by then, so a full disk stops producers from the first request on. While other volumes are unknown, for
``startup.grace`` at most, the factor is 1, or 0 if the broker stopped in a PAUSE and has a fence (``PauseMemory``).
New topics and partitions are refused only while a volume is known to be at its hard limit.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, TypeAlias

from pydantic import TypeAdapter

from quotahost.api import QuotaFactorSource
from quotahost.api.broker import Shown
from quotahost.base.background import Clock, LoggedOnce
from quotahost.base.text import escaped, shortened
from quotahost.broker.host.messages import Scoped
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.broker.host.volume_evaluation import (
    LAST_FACTOR_HOLDS,
    OPEN,
    Policy,
    VolumeEvaluation,
    VolumeLimits,
    together,
)
from quotahost.model import ClusterVolumes, Factor, QuotaType, State
from quotahost.model.volumes import SlowedBudget, as_answer, as_typed_answer
from quotahost.settings.broker import Settings
from quotahost.units.show import counted, show_factor

log = logging.getLogger("quotahost.factor")

# Kafka scans all its sensors for each change of the factor. So a change counts only if it is at least STEP, or at least
# SHARE of the factor in force: near the hard limit small changes matter.
STEP: Final = 0.01
SHARE: Final = 0.1
_MOST_UNKNOWN: Final = 3  # sentences in a cause
_FOR_WRITERS: Final = "; for writers of "  # at the end of a cause, before the number of topics


class FactorLoop:
    """Reads the factor sources every ``factor.interval``, and decides the factor in force."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock, memory: "PauseMemory") -> None:
        self._shim, self._guard, self._clock, self._memory = shim, guard, clock, memory
        self._volumes = VolumeEvaluation(guard, clock, VolumeLimits(shim, guard))
        self._in_force = FactorInForce(shim)
        self._typed = TypedSources(shim, guard, clock)
        self._started, self._read_at = clock(), -math.inf
        self._stood = -math.inf  # the end of the last standstill of this process before which everything was known
        self._known_at: float | None = None  # when everything was known last; None: never since the start
        # The factor when everything was known last; at first that of the host before this one, or OPEN without one.
        last = self._in_force.last
        self._known = replace(last, factor=Factor(last.factor.value, last.factor.cause.partition(_FOR_WRITERS)[0]))
        if shim.restarted():  # Java has the factor in force, and the file may be older
            memory.before, memory.budgets = None, ()
        self._volumes.slowed_budgets = memory.budgets or None
        self._shown = Shown(shim, "Factor")
        self._unknown = LoggedOnce(log, clock=clock)

    def forget(self) -> None:
        """Evaluate the volumes anew in the next round, because a live change may have changed policy and interval."""
        self._volumes.forget()
        self._read_at = -math.inf

    def step(self, plugins: PluginSet, settings: Settings) -> None:
        now, due = self._clock(), self._read_at + settings.factor_interval.total_seconds()
        if now < due:
            return
        if now - due > settings.validity.total_seconds() / 2 and self._known_at == self._read_at:
            self._stood = now
        self._read_at = now
        self._typed.step(plugins.typed_sources)
        source = plugins.factor_source
        if source is None:
            self._volumes.hide()
            # If a source is configured later, its startup.grace begins at that time.
            self._started, self._known_at, self._known = now, None, Scoped(OPEN)
            self._show(lacking=False, unknown=False)
            self._memory.keep(None)
            self._in_force.replace(Scoped(OPEN))
        else:
            self._put(self._decide(now, settings, *self._read(source, plugins.policy, settings)), settings)
        if (budgets := self._volumes.slowed_budgets) is not None:
            self._memory.budgets = tuple(budget for budget in budgets if budget.factor <= 0)
            # Only a fence sees who writes to which topic. Ask each time: the broker creates it after its callback.
            self._in_force.replace_budgets(budgets if self._shim.fence() else ())

    def _read(
        self, source: tuple[str, QuotaFactorSource], policy: Policy | None, settings: Settings
    ) -> tuple[Scoped, str, float]:
        """The factor of what is known, why the rest is unknown ("" for nothing), and for how many seconds to wait."""
        name, plugin = source
        answer: object = self._guard.call(
            name, "read()", LAST_FACTOR_HOLDS, lambda: as_answer(plugin.read(), f"factor source {name}")
        )
        grace, validity = settings.startup_grace.total_seconds(), settings.validity.total_seconds()
        patience = grace if self._known_at is None else validity
        if isinstance(answer, Factor):
            self._volumes.hide()
            return Scoped(Factor(answer.value, _line(answer.cause)), full=answer.value == 0), "", 0
        if not isinstance(answer, ClusterVolumes):
            return Scoped(OPEN), f"the factor source {name} has no answer", patience
        # A factor in shadow has no effect.
        in_force = 1.0 if settings.shadow.factor else self._in_force.last.factor.value
        scoped, failed = self._volumes.evaluate(answer, policy, settings.pause_resume_free_share, in_force)
        if answer.unknown:
            # No patience: the source itself waits (validity, startup.grace) before it names something as unknown.
            more = " ..." if len(answer.unknown) > _MOST_UNKNOWN else ""
            unknown = "; ".join(map(_line, answer.unknown[:_MOST_UNKNOWN])) + more
            return scoped, unknown, 0
        # A source that waits after its start has not failed, so startup.grace applies, not validity.
        return scoped, failed or _line(answer.waiting), patience if failed else grace

    def _decide(self, now: float, settings: Settings, known_now: Scoped, unknown: str, patience: float) -> Scoped:
        # The patience begins when everything was known last, not at the first failure after that.
        since = self._started if self._known_at is None else self._known_at
        reads_on = now - self._stood < settings.validity.total_seconds() / 2
        waits = bool(unknown) and (reads_on or (patience > 0 and now - since <= patience))
        if known_now.full or not unknown:
            self._memory.keep(known_now if known_now.full else None, waits=waits)
        if not unknown:
            self._known_at, self._known = now, known_now
            self._show(lacking=False, unknown=False)
            return known_now
        if waits:
            # At a start the remembered PAUSE applies, else the last factor. If there is no fence, the PAUSE is ignored:
            # at factor 0 each new client would get the floor as its limit, which delays it for minutes.
            remembered = self._memory.before if self._shim.fence() else None
            last = remembered or self._known
            self._show(lacking=remembered is not None and not known_now.full, unknown=True)
            # A volume that is known now may be fuller than at that time.
            return smaller(known_now, last)
        action = State(settings.fallback_action)
        instead = Factor(float(action is State.OPEN), f"fallback.action={action}: {unknown}")
        if action is State.OPEN:  # FactorInForce logs a PAUSE with its cause, but no factor that stays 1
            self._unknown.report("fallback.action=OPEN applies to what is unknown: %s", unknown)
        # A known volume above its soft limit slows producers with fallback.action=OPEN, too.
        decided = smaller(Scoped(instead), known_now)
        self._show(lacking=decided.factor.value < known_now.factor.value, unknown=True)
        return decided

    def _put(self, new: Scoped, settings: Settings) -> None:
        """Put a factor into the table: for writers of the affected topics alone if scope and fence allow it."""
        factor, affected = new.factor, new.affected
        if factor.value >= 1 or affected is None or settings.factor_scope != "topics" or not self._shim.fence():
            self._in_force.replace(replace(new, affected=None))
            return
        topics = counted(len(affected.places), "topics")
        self._in_force.replace(replace(new, factor=Factor(factor.value, factor.cause + _FOR_WRITERS + topics)))

    def _show(self, lacking: bool, unknown: bool) -> None:
        self._shown.show({"": {"LackOfData": float(lacking), "Unknown": float(unknown)}})
        if not unknown:
            self._unknown.healed("everything is known again")


def _line(text: str) -> str:
    """A plugin's text, shortened and escaped: a cause is part of a log line and of an MBean's name."""
    return escaped(shortened(text))


def smaller(one: Scoped, other: Scoped) -> Scoped:
    """The smaller factor, or the first if both are equal, for all clients that one of the two slows."""
    factor = one.factor if one.factor.value <= other.factor.value else other.factor
    whom = together(scoped.affected for scoped in (one, other) if scoped.factor.value < 1)
    return Scoped(factor, whom, one.full or other.full)


def _is_step(last: float, new: float) -> bool:
    """Whether a factor differs enough from the factor in force to be sent to Java.

    A change of state always does, however small it is: the fence closes at exactly 0 and opens above 0. ``last`` is the
    factor in force and not the last one read, so slow changes add up to a step.
    """
    return Factor(new).state is not Factor(last).state or abs(new - last) >= min(STEP, SHARE * last)


def _stepped(last: float, new: float) -> float:
    return new if _is_step(last, new) else last


# ---- factors of single quota types -----------------------------------------------------------------------------


class TypedSources:
    """Reads the factor sources for single quota types (contract, sentence 14), such as ``load``."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock) -> None:
        self._shim, self._guard = shim, guard
        # The factors below 1 by quota type; None: not known, the host before this one may have set some.
        self._in_force: dict[QuotaType, Factor] | None = None
        self._shown = Shown(shim, "TypedFactor", shim.left("TypedFactor"))
        self._slowing = defaultdict[str, LoggedOnce](lambda: LoggedOnce(log, clock=clock))  # by source

    def step(self, sources: Sequence[tuple[str, QuotaFactorSource, Collection[QuotaType]]]) -> None:
        """Read the sources, and put the smallest factor of each quota type into the table, the first if some are equal.

        The first call sets the factors; after it only a step or a change of state does. A cause changes only with its
        factor, because the cause may name a load, which changes all the time.
        """
        asked = {name: self._ask(name, plugin) for name, plugin, _ in sources}
        self._shown.show({name: {"Factor": factor.value} for name, factor in asked.items()})
        for name in [*asked, *(self._slowing.keys() - asked.keys())]:
            factor = asked.get(name, OPEN)  # OPEN if the source was removed
            slowing = self._slowing[name] if name in asked else self._slowing.pop(name)
            if factor.value < 1:
                slowing.report("%s: THROTTLE, factor %s (%s)", name, show_factor(factor.value), factor.cause)
            else:
                slowing.healed("%s: OPEN, factor 1", name)
        smallest: dict[QuotaType, Factor] = {}
        for name, _, types in sources:
            for quota_type in types:
                if asked[name].value < smallest.get(quota_type, OPEN).value:
                    smallest[quota_type] = asked[name]
        last = self._in_force or {}
        new = {
            kind: factor if _is_step(last.get(kind, OPEN).value, factor.value) else last[kind]
            for kind, factor in smallest.items()
        }
        if new != self._in_force:
            self._in_force = new
            self._shim.set_factors_of_types(new)

    def _ask(self, name: str, plugin: QuotaFactorSource) -> Factor:
        # An unknown load must slow nobody, unlike an unknown disk, which may be full. So neither validity nor
        # fallback.action applies here.
        answer = self._guard.call(
            name, "read()", "its factor is 1", lambda: as_typed_answer(plugin.read(), f"factor source {name}"), OPEN
        )
        return Factor(answer.value, _line(answer.cause))


# ---- what Java has ---------------------------------------------------------------------------------------------


class FactorInForce:
    """The factor in Java's table, its cause in the metrics, and its changes of state in the log."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        # The host before this one may have left a factor below 1, with its cause in the metrics.
        self.last = shim.factor()
        self._shown = Shown(shim, "Cause", shim.left("Cause"))
        self._budgets: tuple[SlowedBudget, ...] | None = None  # None: those of the host before this one apply
        shim.count("Factor", "", "Transitions", 0.0)

    def replace(self, new: Scoped) -> None:
        """Put a factor into the table if it differs by a step or in its state.

        If it doesn't, only the cause, the affected topics, and whether a volume is known to be full can change.
        """
        # The new cause always counts, because explain and the metrics must show which volume is the cause now.
        last = self.last.factor
        new = replace(new, factor=Factor(_stepped(last.value, new.factor.value), new.factor.cause))
        now = new.factor
        if new != self.last:
            if now.state is not last.state:
                self._shim.count("Factor", "", "Transitions", 1)
                cause = f" ({now.cause})" if now.cause else ""
                level = logging.INFO if now.state is State.OPEN else logging.WARNING
                log.log(level, "%s -> %s: factor %s%s", last.state, now.state, show_factor(now.value), cause)
            elif now.state is State.PAUSE and now.cause != last.cause:  # an operator may be working on the old cause
                log.warning("PAUSE goes on: %s", now.cause)
            self.last = new
            self._shim.set_factor(new)
        # While the factor is below 1, the metrics show its cause as the name of an MBean.
        self._shown.show({now.cause: {"Factor": now.value}} if now.value < 1 and now.cause else {})

    def replace_budgets(self, new: tuple[SlowedBudget, ...]) -> None:
        before = {budget.name: budget.factor for budget in self._budgets or ()}
        # There may be 1,000 budgets at each read of the source, and a copy of each would take 1 % of a core.
        known = ((b, before.get(b.name, b.factor)) for b in new)
        new = tuple(b if last == b.factor else replace(b, factor=_stepped(last, b.factor)) for b, last in known)
        if new != self._budgets:
            self._budgets = new
            self._shim.set_budgets(new)
            for budget in new:
                now = Factor(budget.factor)
                if now.state is not Factor(before.get(budget.name, OPEN.value)).state:
                    # The line doesn't name the last state: after a restart of Python only Java knows it.
                    text = "%s: %s, factor %s for clients that write to its topics"
                    log.warning(text, budget.place, now.state, show_factor(now.value))
            for name in before.keys() - {budget.name for budget in new}:
                # Its factor may be 0 all the same: it may have no topic on this broker any more, or may be removed.
                log.info("budget %s slows nobody on this broker any more", name)


# ---- a PAUSE remembered over a restart -------------------------------------------------------------------------


#: What the file has, as JSON: the PAUSE of the volumes, and the budgets that are used up.
_Stops: TypeAlias = tuple[Scoped | None, tuple[SlowedBudget, ...]]
_STOPS: Final = TypeAdapter[_Stops](_Stops)


class PauseMemory:
    """The PAUSE in force, the PAUSE in which the broker stopped before this start, and the budgets that are used up.

    A broker looks at its own disks before it serves its first request. It learns from topics how full other brokers'
    disks and budgets are, some seconds after it serves. Until then it turns nobody back: most brokers start in a
    cluster that has room. But if the broker stopped in a PAUSE, it starts in that PAUSE, for the same clients or
    topics, and so it does for used-up budgets. To know this, the broker keeps a file in its log directories meanwhile;
    Kafka's LogManager reads only directories there. The disk monitor's thread calls ``write``, because a disk may hang.
    """

    FILE: ClassVar = "quotahost.paused"

    def __init__(self, directories: Sequence[str]) -> None:
        """Read the file from these log directories. If there are none, no PAUSE outlives a restart.

        Kafka has read a file of each log directory before it creates the callback, so none of their disks hangs.
        """
        self._files = [Path(directory, self.FILE) for directory in directories]
        self._written: _Stops = next(filter(any, map(_read, self._files)), (None, ()))
        #: The budgets are those of before the start until the budgets are known.
        self.before, self.budgets = self._written
        self._now: Scoped | None = None

    def keep(self, pause: Scoped | None, *, waits: bool = False) -> None:
        """Remember that known volumes are in a PAUSE; None: it is known that there is no PAUSE.

        ``waits``: other volumes are not known yet, so the PAUSE before this start still counts.
        """
        self._now, self.before = pause, self.before if waits else None

    def write(self) -> None:
        stops = self._now, self.budgets
        if self.before is not None or stops == self._written:
            return
        self._written = stops
        # Bytes are UTF-8 in any locale: a container may have no locale, and a volume's name any character.
        octets = _STOPS.dump_json(stops) if any(stops) else b""
        for file in self._files:
            new = file.with_name(f"{file.name}.new")
            # If the file can't be written, as on a full disk, the old file stays, and the next start sees that disk
            # itself. If the file can't be removed, the next start begins in a PAUSE, which ends as soon as the volumes
            # are known.
            with suppress(OSError):
                if octets:
                    new.write_bytes(octets)
                    new.replace(file)
                else:
                    for each in (file, new):
                        each.unlink(missing_ok=True)


def _read(file: Path) -> _Stops:
    try:
        pause, budgets = _STOPS.validate_json(file.read_bytes())
    except (OSError, ValueError):  # pydantic's ValidationError is a ValueError
        return None, ()
    was = "full when this broker stopped: "
    return pause and Scoped(Factor(0.0, was + pause.factor.cause), pause.affected), budgets
