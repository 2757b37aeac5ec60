"""The host asks the policy for the factor of each volume and budget, and decides which topics' writers the factors slow
and when a PAUSE ends. ``factor`` passes the volumes that the factor source has returned.

1. If the volumes are the same as at the last read, and the policy doesn't depend on time, the last result stays.
2. The host asks the policy about every volume, even if the policy fails for one: another may be at its hard limit.
3. A volume that reached its hard limit keeps the factor 0 until it has enough free space again (``Pauses``).
4. The smallest factor applies. With ``factor.scope=topics`` it is for the clients that write to the topics on volumes
   with factors below 1 (``affected``).
5. The host judges budgets of storage in the same way, each for the writers of its own topics (``slowed_budgets``).
6. The metrics show the factors and limits of this broker's own volumes and of all budgets (``VolumeLimits``).
"""

import logging
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from quotahost.api import LimitAware, QuotaPolicy
from quotahost.api.broker import Shown
from quotahost.base.background import Clock, LoggedOnce
from quotahost.base.text import printable
from quotahost.broker.host.exemptions import node_id
from quotahost.broker.host.messages import Scoped
from quotahost.broker.host.plugins import Guard
from quotahost.broker.host.protocol import Shim
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.model.volumes import MAX_AFFECTED, Affected, SlowedBudget, byte_limits
from quotahost.units.show import counted

log = logging.getLogger("quotahost.factor")

OPEN: Final = Factor(1.0)
LAST_FACTOR_HOLDS: Final = "the last factor stays in force for validity"  # the consequence in a failure's log line

_MOST_NAMED: Final = 3  # budgets, in a line of the log
_DIGITS: Final = 3  # leading digits of the bytes at which a PAUSE ends
_SOFT, _HARD = 1.0, 2.0  # values of the metric Breached: which limit is breached

Policy: TypeAlias = tuple[str, QuotaPolicy]  # name and plugin
Failure: TypeAlias = tuple[Volume, BaseException]  # the volume for which the policy failed, and its error


class Judged(NamedTuple):
    """A volume and its factor."""

    volume: Volume
    factor: float
    until: int | None = None  # its PAUSE ends at this many bytes used; None if no PAUSE is held (``Pauses``)


class VolumeEvaluation:
    """Asks the policy about the volumes in the latest answer of the factor source."""

    def __init__(self, guard: Guard, clock: Clock, limits: "VolumeLimits") -> None:
        self._guard, self._limits = guard, limits
        self._pauses, self._pauses_of_budgets = Pauses(guard), Pauses(guard)
        self._last: tuple[ClusterVolumes, Scoped] | None = None
        #: The budgets with factors below 1, also while no budgets are known; None: none were known since the start.
        self.slowed_budgets: tuple[SlowedBudget, ...] | None = None
        self._left_out = LoggedOnce(log, clock=clock)

    def forget(self) -> None:
        """Evaluate the same volumes anew, because the plugins or their settings have changed."""
        self._last = None

    def hide(self) -> None:
        self._last = None
        self.slowed_budgets = ()
        self._limits.show(None, [])
        self._limits.show_budgets([])

    def evaluate(
        self, answer: ClusterVolumes, policy: Policy | None, share: float, in_force: float
    ) -> tuple[Scoped, str]:
        """Return the smallest factor of all volumes, and a sentence if the policy fails for some of them, else "".

        If the policy fails for a budget, the budget keeps its factor: the disks are known, so no other client is
        stopped. If there is no policy, every volume is OPEN. ``share`` is ``pause.resume.free-share``. ``in_force`` is
        the factor that has applied since the last read.
        """
        if policy is None:
            self.hide()
            return Scoped(OPEN), ""
        name, plugin = policy
        self._guard.call_if_there(name, plugin, "factor_in_force", "it decides without the factor in force", in_force)
        # The policy took 44 ms for 20,000 volumes, and this runs every factor.interval. A comparison takes much less,
        # because a source returns the same object for a volume without news.
        last = None if getattr(plugin, "depends_on_time", False) else self._last
        if last and answer == last[0]:
            return last[1], ""
        told = answer.volumes or not answer.waiting  # if not, as before the first look, keep the PAUSEs
        judged, failure = self._pauses.judge(policy, share, answer.volumes) if told else (list[Judged](), None)
        of_budgets: Failure | None = None
        self._limits.show(policy, judged)
        # Judge budgets only if they have changed: there may be 1,000, and this broker's volumes change with each look.
        if answer.budgets is not None and (last is None or answer.budgets != last[0].budgets):
            budgets, of_budgets = self._pauses_of_budgets.judge(policy, share, answer.budgets)
            failed = {budget.name for budget in answer.budgets} - {each.volume.name for each in budgets}
            kept = tuple(slowed for slowed in self.slowed_budgets or () if slowed.name in failed)
            self.slowed_budgets = self._slowed(budgets) + kept
            self._limits.show_budgets(budgets)
        factor = smallest(judged)
        scoped = Scoped(factor, affected(judged), factor.value == 0)
        self._last = None if failure or of_budgets else (answer, scoped)
        if failure:
            where = place(failure[0].broker, failure[0].name)
            self._guard.report(name, "quota_factor()", f"{LAST_FACTOR_HOLDS}; it fails for {where}", failure[1])
            return scoped, f"the policy {name} fails for {where}"
        if of_budgets:
            what = f"it fails for budget {printable(of_budgets[0].name)}, which keeps its factor"
            self._guard.report(name, "quota_factor()", what, of_budgets[1])
        else:
            # judge() calls the policy without the guard, so report the success to the guard here.
            self._guard.heal(name, "quota_factor()")
        return scoped, ""

    def _slowed(self, judged: Iterable[Judged]) -> tuple[SlowedBudget, ...]:
        """The budgets with factors below 1. Budgets beyond MAX_AFFECTED topics in total are left out and logged.

        The texts of a budget don't name its bytes used: the host would send each change of them to Java.
        """
        slowed: list[SlowedBudget] = []
        left_out: list[str] = []
        left = MAX_AFFECTED
        # The smallest factor first: budgets that stop their writers take the room before budgets that slow them.
        for volume, factor, _ in sorted(judged, key=lambda one: (one.factor, one.volume.name)):
            if factor >= 1 or not volume.topics:
                continue
            if len(volume.topics) > left:
                left_out.append(volume.name)
            else:
                left -= len(volume.topics)
                size = f"{volume.name} of {counted(volume.capacity, 'bytes')}"
                error = f"the budget of storage {size} is used up: delete data or shorten the retention of its topics"
                told = f"quotahost: {error}; try again later"
                slowed.append(SlowedBudget(volume.name, factor, volume.topics, f"budget {size}", told))
        if left_out:
            text = "budgets slow the writers of at most %s topics here; beyond this, nobody is slowed by %s, such as %s"
            names = ", ".join(map(printable, left_out[:_MOST_NAMED]))
            self._left_out.report(text, f"{MAX_AFFECTED:,}", counted(len(left_out), "budgets"), names)
        else:
            self._left_out.healed()
        return tuple(slowed)


def smallest(judged: Iterable[Judged]) -> Factor:
    """The smallest factor, with its volume as the cause. If factors are equal, the first volume by name wins.

    OPEN has no cause. The same full volumes must give the same cause at each look, because the host logs a new cause
    and sends it to Java. So names decide, not the order in the pipeline's record, which begins with the fullest volume.
    And the bytes are rounded down, because the capacity of a volume in a shared pool (ZFS) changes all the time.
    """
    least = min(judged, key=attrgetter("factor", "volume.broker", "volume.name"), default=None)
    if least is None or least.factor >= 1:
        return OPEN
    cause = place(least.volume.broker, least.volume.name)
    if least.until is not None:
        cause += f": PAUSE {_ends(least.until)}"
    return Factor(least.factor, cause)


def _ends(until: int) -> str:
    if until < 0:
        return "that never ends: its hard limit allows no used byte"
    unit = 10 ** max(0, len(str(until)) - _DIGITS)
    return f"until {counted(until // unit * unit, 'bytes')} or fewer are used (pause.resume.free-share)"


def place(broker: str, volume: str) -> str:
    # These names come from other brokers' records, and a line break in a name must not forge a line of the log.
    return f"broker {printable(broker)}, volume {printable(volume)}"


def affected(judged: Iterable[Judged]) -> Affected | None:
    """The topics on volumes with factors below 1; the topics on volumes at factor 0 are held.

    None means all clients: a volume's topics are not known, or there are more than MAX_AFFECTED topics.
    """
    # Volumes at factor 0 come first, so that a topic's place is the volume that stops it. Then the order is by name, so
    # that the same volumes always give the same answer, which the host need not send to Java.
    lowered = [each for each in judged if each.factor < 1]
    lowered.sort(key=lambda one: (one.factor > 0, one.volume.broker, one.volume.name))
    return together(
        None if v.topics is None
        else Affected(dict.fromkeys(v.topics, place(v.broker, v.name)), frozenset() if factor else v.topics)
        for v, factor, _ in lowered
    )  # fmt: skip


def together(parts: Iterable[Affected | None]) -> Affected | None:
    """The parts' topics, each with its first place; None (all clients) if a part is None or there are too many."""
    places: dict[str, str] = {}
    held: set[str] = set()
    for part in parts:
        if part is None:
            return None
        for topic, where in part.places.items():
            places.setdefault(topic, where)
        held |= part.held
        if len(places) > MAX_AFFECTED:
            return None
    return Affected(places, frozenset(held))


# ---- how long a PAUSE lasts ------------------------------------------------------------------------------------


class Pauses:
    """Decides how long a volume that reached its hard limit stays in a PAUSE (``pause.resume.free-share``).

    A PAUSE that ended with the first free byte would begin again with the next append. So a volume that reached its
    hard limit keeps the factor 0 until it is far enough below it (``ByteLimits.lets_go_at``). This applies to every
    policy that is LimitAware (contract 12). Proposal 035 has no such rule; ``pause.resume.free-share=0`` is its form.

    Only this host's memory knows whether a volume between its limits is in a PAUSE. After a start the host knows of no
    PAUSE, and it forgets a volume that its source doesn't report. Then the policy's factor applies, which is small near
    the hard limit.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._held: set[tuple[str, str]] = set()  # broker and name of each volume in a PAUSE at the last call

    def judge(self, policy: Policy, share: float, volumes: Iterable[Volume]) -> tuple[list[Judged], Failure | None]:
        """Return the volumes that the policy can judge, and its first failure. A failure must not hide a full volume.

        Each volume is asked about once: the answer of a policy may depend on how often it is called.
        """
        judged: list[Judged] = []
        held: set[tuple[str, str]] = set()
        failure: Failure | None = None
        name, plugin = policy
        aware = plugin if isinstance(plugin, LimitAware) else None
        for volume in volumes:
            key = volume.broker, volume.name
            was_held = key in self._held
            try:
                # Factor() raises for a number outside 0..1, and this is the policy's failure (contract, sentence 6).
                factor = Factor(plugin.quota_factor(volume)).value
                until = None
                if aware is not None and (was_held or factor == 0):
                    until = self._until(name, aware, share, volume, was_held)
            except BaseException as error:  # see plugins.Guard
                failure = failure or (volume, error)
                if was_held:
                    held.add(key)
                continue
            if until is not None:
                held.add(key)
            judged.append(Judged(volume, factor if until is None else 0.0, until))
        self._held = held
        return judged, failure

    def _until(self, name: str, aware: LimitAware, share: float, volume: Volume, was_held: bool) -> int | None:
        """The bytes used at which the volume's PAUSE ends. ``was_held``: the volume is in a PAUSE already.

        None if there is no PAUSE, or if the policy has no limits for the volume or fails.
        """
        limits = self._guard.call(
            name, "soft_limit() or hard_limit()", "a PAUSE ends as soon as the factor is above 0",
            lambda: byte_limits(volume, aware.soft_limit(volume), aware.hard_limit(volume)),
        )  # fmt: skip
        if limits is None:
            return None
        ends = limits.lets_go_at(share)
        return ends if limits.breaches_hard(volume.consumed) or (was_held and volume.consumed > ends) else None


# ---- this broker's volumes in the metrics ----------------------------------------------------------------------

_ASKED: Final = "soft_limit(), hard_limit(), breaches_soft_limit() or breaches_hard_limit()"


class VolumeLimits:
    """Shows the factors and limits of this broker's volumes, and all budgets.

    Each broker shows its own volumes only, as ``disks.monitor`` does with their sizes: a cluster may have thousands.
    """

    def __init__(self, shim: Shim, guard: Guard) -> None:
        self._guard = guard
        self._broker = str(node_id(shim.broker()))
        self._volumes, self._budgets = (Shown(shim, type, shim.left(type)) for type in ("VolumeLimits", "Budget"))

    def show_budgets(self, judged: Iterable[Judged]) -> None:
        self._budgets.show({
            volume.name: {"Bytes": float(volume.capacity), "Used": float(volume.consumed), "Factor": factor}
            for volume, factor, _ in judged
        })  # fmt: skip

    def show(self, policy: Policy | None, judged: Iterable[Judged]) -> None:
        own = [each for each in judged if each.volume.broker == self._broker]

        def ask() -> dict[str, dict[str, float]]:
            plugin = policy and policy[1]
            return {v.name: _numbers(plugin, v) for v, *_ in own} if isinstance(plugin, LimitAware) else {}

        consequence = "the metrics show no limits of volumes"
        limits = self._guard.call(policy[0], _ASKED, consequence, ask, instead={}) if policy and own else {}
        self._volumes.show({v.name: {"Factor": factor, **limits.get(v.name, {})} for v, factor, _ in own})


def _numbers(policy: LimitAware, volume: Volume) -> dict[str, float]:
    """A volume's limits in bytes consumed, and which limit is breached."""
    limits = byte_limits(volume, policy.soft_limit(volume), policy.hard_limit(volume))
    over_soft, over_hard = policy.breaches_soft_limit(volume), policy.breaches_hard_limit(volume)
    numbers = {"Breached": _HARD if over_hard else _SOFT if over_soft else 0.0}
    return numbers if limits is None else {"Soft": float(limits.soft), "Hard": float(limits.hard), **numbers}
