"""The factor's state: read every ``factor.interval``, kept for ``validity`` (``startup.grace`` at a start), then
``fallback.action`` for what is unknown; its cause and log line; and that a broker which stopped in a PAUSE starts
in it, until its volumes are known.

1. Every ``factor.interval`` the factor source is read. It returns volumes, of which ``volume_evaluation`` makes a
   factor, or a factor itself where it knows no volumes; it may also say what it doesn't know.
2. A known volume at its hard limit leads to PAUSE, whatever else is unknown. While a source is silent or fails, the
   last factor stays for ``validity``; for a source that has just started ``startup.grace`` applies instead. After that
   ``fallback.action`` applies to the rest, and at once where the source itself reports a broker or volume as unknown.
3. Sources that are for single quota types (``TypedSources``) are read at the same time. They only slow: what they don't
   know is factor 1.
4. A new factor goes through the shim to Java's QuotaTable only if it differs by a step or in its state
   (``FactorInForce``). Java multiplies the quotas by it and closes the fence at 0. Its cause goes to the metrics.

**At a start** the factor is decided once before the broker serves anybody. A full disk of its own is known by then and
turns producers back from the first request on. As long as other volumes are unknown, for ``startup.grace`` at most, the
factor is 1, unless the broker stopped in a PAUSE (``PauseMemory``). Topics and partitions are refused only while a
volume is known to be at its hard limit.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

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

# A smaller change of the factor isn't worth the scan of all sensors by which Kafka takes it over, unless it is a tenth
# of the factor: near the hard limit small steps are large ones.
STEP: Final = 0.01
SHARE: Final = 0.1
_MOST_UNKNOWN: Final = 3  # sentences in a cause
_FOR_WRITERS: Final = "; for writers of "  # and of how many topics, at the end of a cause


class FactorLoop:
    """Reads the factor sources when they are due, and decides."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock, memory: "PauseMemory") -> None:
        self._shim, self._guard, self._clock, self._memory = shim, guard, clock, memory
        self._volumes = VolumeEvaluation(guard, clock, VolumeLimits(shim, guard))
        self._in_force = FactorInForce(shim)
        self._typed = TypedSources(shim, guard, clock)
        self._due = self._started = clock()
        self._known_at: float | None = None  # None: nothing has been known since the start
        # What was known last, at first by a host before this one; OPEN after the start of a broker.
        last = self._in_force.last
        self._known = replace(last, factor=Factor(last.factor.value, last.factor.cause.partition(_FOR_WRITERS)[0]))
        if shim.restarted():  # Java has what holds, and the file may not tell that yet
            memory.before = None
        self._shown = Shown(shim, "Factor")
        self._unknown = LoggedOnce(log, clock=clock)

    def forget(self) -> None:
        """After a live change: what was read before it counts no more, and the interval may be shorter."""
        self._volumes.forget()
        self._due = self._clock()

    def step(self, plugins: PluginSet, settings: Settings) -> None:
        now = self._clock()
        if now < self._due:
            return
        self._due = now + settings.factor_interval.total_seconds()
        self._typed.step(plugins.typed_sources)
        source = plugins.factor_source
        if source is None:
            self._volumes.hide()
            # A source that is configured later starts then, and is waited for from then on.
            self._started, self._known_at, self._known = now, None, Scoped(OPEN)
            self._show(lacking=False, unknown=False)
            self._memory.keep(None)
            self._in_force.replace(Scoped(OPEN))
        else:
            self._put(self._decide(now, settings, *self._read(source, plugins.policy, settings)), settings)
        if (budgets := self._volumes.slowed_budgets) is not None:
            # Without the fence nobody sees who writes where. Asked each time: a broker makes it after its callback.
            self._in_force.replace_budgets(budgets if self._shim.fence() else ())

    def _read(
        self, source: tuple[str, QuotaFactorSource], policy: Policy | None, settings: Settings
    ) -> tuple[Scoped, str, float]:
        """What the known makes; why the rest is unknown, "" if nothing is, and for how many seconds it may be so."""
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
        # In shadow no factor has any effect.
        in_force = 1.0 if settings.shadow.factor else self._in_force.last.factor.value
        scoped, failed = self._volumes.evaluate(answer, policy, settings.pause_resume_free_share, in_force)
        if answer.unknown:
            # No patience: a source names as unknown only what it has waited for itself (validity, startup.grace).
            more = " ..." if len(answer.unknown) > _MOST_UNKNOWN else ""
            unknown = "; ".join(map(_line, answer.unknown[:_MOST_UNKNOWN])) + more
            return scoped, unknown, 0
        # What a source that has just started waits for is no failure: startup.grace applies to it, not validity.
        return scoped, failed or _line(answer.waiting), patience if failed else grace

    def _decide(self, now: float, settings: Settings, known_now: Scoped, unknown: str, patience: float) -> Scoped:
        # The time runs from when everything was known last, not from the first failure after that.
        since = self._started if self._known_at is None else self._known_at
        waits = bool(unknown and patience and now - since <= patience)
        if known_now.full or not unknown:
            self._memory.keep(known_now if known_now.full else None, waits=waits)
        if not unknown:
            self._known_at, self._known = now, known_now
            self._show(lacking=False, unknown=False)
            return known_now
        if waits:
            # At a start the PAUSE in which the broker stopped holds, else the last factor. Without a fence a factor of
            # 0 is a floor for each new client, which delays it for minutes.
            remembered = self._memory.before if self._shim.fence() else None
            last = remembered or self._known
            self._show(lacking=remembered is not None and not known_now.full, unknown=True)
            # A volume that is known now may have become fuller than it was then.
            return smaller(known_now, last)
        action = State(settings.fallback_action)
        instead = Factor(float(action is State.OPEN), f"fallback.action={action}: {unknown}")
        if action is State.OPEN:  # a PAUSE has its cause in the log; the factor of this says nothing
            self._unknown.report("fallback.action=OPEN applies to what is unknown: %s", unknown)
        # With fallback.action=OPEN, too, a known volume above its soft limit still slows producers.
        decided = smaller(Scoped(instead), known_now)
        self._show(lacking=decided.factor.value < known_now.factor.value, unknown=True)
        return decided

    def _put(self, new: Scoped, settings: Settings) -> None:
        """Put a factor into the table, for the writers of its topics if it may be for them alone, else for all."""
        factor, affected = new.factor, new.affected
        if factor.value >= 1 or affected is None or settings.factor_scope != "topics" or not self._shim.fence():
            self._in_force.replace(replace(new, affected=None))
            return
        topics = counted(len(affected.places), "topics")
        self._in_force.replace(replace(new, factor=Factor(factor.value, factor.cause + _FOR_WRITERS + topics)))

    def _show(self, lacking: bool, unknown: bool) -> None:
        self._shown.show({"": {"LackOfData": float(lacking), "Unknown": float(unknown)}})
        if not unknown and self._unknown.healed():
            log.info("nothing is unknown any more")


def _line(text: str) -> str:
    """A plugin's text as part of a cause, which is one line of a log and an MBean's name."""
    return escaped(shortened(text))


def smaller(one: Scoped, other: Scoped) -> Scoped:
    """The smaller factor, for all whom either of the two slows. Of two equal ones the first."""
    factor = one.factor if one.factor.value <= other.factor.value else other.factor
    whom = together(scoped.affected for scoped in (one, other) if scoped.factor.value < 1)
    return Scoped(factor, whom, one.full or other.full)


def _is_step(last: float, new: float) -> bool:
    """Whether a factor differs enough from the one in force to be handed on.

    A change of state is, however small it is: the fence closes at exactly 0 and opens above it. The new factor is
    compared with the one in force, so slow changes add up to a step.
    """
    return Factor(new).state is not Factor(last).state or abs(new - last) >= min(STEP, SHARE * last)


def _stepped(last: float, new: float) -> float:
    return new if _is_step(last, new) else last


# ---- factors of single quota types -----------------------------------------------------------------------------


class TypedSources:
    """Reads the factor sources that are for single quota types (contract, sentence 14), such as ``load``."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock) -> None:
        self._shim, self._guard = shim, guard
        # Below 1, by quota type; None: a host before this one may have set some.
        self._in_force: dict[QuotaType, Factor] | None = None
        self._shown = Shown(shim, "TypedFactor", shim.left("TypedFactor"))
        self._slowing = defaultdict[str, LoggedOnce](lambda: LoggedOnce(log, clock=clock))  # by source

    def step(self, sources: Sequence[tuple[str, QuotaFactorSource, Collection[QuotaType]]]) -> None:
        """Read the sources, and put for each quota type the smallest factor into the table; of equal ones the first.

        As with the other factor, only the first and what differs by a step or in state. A cause stays with its factor,
        since it may tell a load, which is never at rest.
        """
        asked = {name: self._ask(name, plugin) for name, plugin, _ in sources}
        self._shown.show({name: {"Factor": factor.value} for name, factor in asked.items()})
        for name in [*asked, *(self._slowing.keys() - asked.keys())]:
            factor = asked.get(name, OPEN)  # it was taken out
            slowing = self._slowing[name] if name in asked else self._slowing.pop(name)
            if factor.value < 1:
                slowing.report("%s: THROTTLE, factor %s (%s)", name, show_factor(factor.value), factor.cause)
            elif slowing.healed():
                log.info("%s: OPEN, factor 1", name)
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
        # A load that isn't known must slow nobody, while an unknown disk may be full: so neither validity nor
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
        # A host before this one may have left another factor than OPEN, with its cause in the metrics.
        self.last = shim.factor()
        self._shown = Shown(shim, "Cause", shim.left("Cause"))
        self._budgets: tuple[SlowedBudget, ...] | None = None  # until the first those of a host before it hold
        shim.count("Factor", "", "Transitions", 0.0)

    def replace(self, new: Scoped) -> None:
        """Put a factor into the table, if it differs by a step or in state.

        Else at most its cause, the topics whose writers it is for, and whether a volume is known to be full.
        """
        # Another volume may be the cause now, which explain and the metrics have to show.
        last = self.last.factor
        new = replace(new, factor=Factor(_stepped(last.value, new.factor.value), new.factor.cause))
        now = new.factor
        if new != self.last:
            if now.state is not last.state:
                self._shim.count("Factor", "", "Transitions", 1)
                cause = f" ({now.cause})" if now.cause else ""
                log.log(_level(now), "%s -> %s: factor %s%s", last.state, now.state, show_factor(now.value), cause)
            elif now.state is State.PAUSE and now.cause != last.cause:  # or who mends the old one waits in vain
                log.warning("PAUSE goes on: %s", now.cause)
            self.last = new
            self._shim.set_factor(new)
        # The cause stands in the metrics, as the name of an MBean, while the factor is below 1.
        self._shown.show({now.cause: {"Factor": now.value}} if now.value < 1 and now.cause else {})

    def replace_budgets(self, new: tuple[SlowedBudget, ...]) -> None:
        before = {budget.name: budget for budget in self._budgets or ()}
        new = tuple(replace(b, factor=_stepped(before.get(b.name, b).factor, b.factor)) for b in new)
        if new != self._budgets:
            self._budgets = new
            self._shim.set_budgets(new)
            after = {budget.name: budget for budget in new}
            for name, budget in {**before, **after}.items():
                last, now = (Factor(of[name].factor) if name in of else OPEN for of in (before, after))
                if now.state is not last.state:
                    # Not from which state: after a restart of Python Java has the one before.
                    # Nobody knows the bytes of one that slows no more: it may have been changed or removed.
                    place = budget.place if name in after else f"budget {name}"
                    text = "%s: %s, factor %s for those who write to its topics"
                    log.log(_level(now), text, place, now.state, show_factor(now.value))


def _level(now: Factor) -> int:
    return logging.INFO if now.state is State.OPEN else logging.WARNING


# ---- a PAUSE remembered over a restart -------------------------------------------------------------------------


_PAUSE: Final = TypeAdapter(Scoped)  # the file, as JSON


class PauseMemory:
    """The PAUSE of this moment, and that of the broker's life before this one.

    A broker that starts looks at its own disks before it serves anybody, but learns from a topic how full those of
    other brokers are, some seconds after it serves. Until then nobody is turned back: most brokers start in a cluster
    that has room. But if the broker stopped in a PAUSE, it begins in that PAUSE, which holds for the same clients or
    topics. To know that, it keeps a file in its log directories while the PAUSE lasts; Kafka reads only directories
    there (its LogManager). ``write`` is for the disk monitor's thread, since a disk may hang.
    """

    FILE: ClassVar = "quotahost.paused"

    def __init__(self, directories: Sequence[str]) -> None:
        """Read what was kept in these log directories; with none, nothing outlives a restart.

        Kafka has read a file of each of them when it makes the callback, so none of them hangs.
        """
        self._files = [Path(directory, self.FILE) for directory in directories]
        self.before = next(filter(None, map(_read, self._files)), None)
        self._now: Scoped | None = None
        self._written: Scoped | None = self.before

    def keep(self, pause: Scoped | None, *, waits: bool = False) -> None:
        """The state is a PAUSE of known volumes; None: it isn't, and that is known.

        ``waits``: others are not known yet, so what was remembered still counts.
        """
        self._now, self.before = pause, self.before if waits else None

    def write(self) -> None:
        pause = self._now
        if self.before is not None or pause == self._written:
            return
        self._written = pause
        # As bytes, which are UTF-8 in any locale: a container may have none, and the name of a volume any letter.
        octets = _PAUSE.dump_json(pause) if pause else b""
        for file in self._files:
            new = file.with_name(f"{file.name}.new")
            # Where no file can be written, as on a full disk, the one before stays, and the next start looks at that
            # disk first. Where it can't be removed, the next start begins in a PAUSE that ends as soon as the volumes
            # are known.
            with suppress(OSError):
                if octets:
                    new.write_bytes(octets)
                    new.replace(file)
                else:
                    for each in (file, new):
                        each.unlink(missing_ok=True)


def _read(file: Path) -> Scoped | None:
    try:
        stored = _PAUSE.validate_json(file.read_bytes())
    except (OSError, ValueError):  # pydantic's ValidationError is one
        return None
    return Scoped(Factor(0.0, f"full when this broker stopped: {stored.factor.cause}"), stored.affected)
