"""Reads the factor source and has the policy judge its volumes: how much of the quotas is left, as far as is known.

A factor source returns volumes, or a factor itself where it knows no volumes. The policy is asked for every volume, and
the smallest factor is the judgement, beside a sentence about everything that is unknown. ``factor`` then decides what
applies to the unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from quotahost.api import QuotaFactorSource, QuotaPolicy
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.pauses import Pauses
from quotahost.broker.host.scope import Scoped, affected, place
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.model.volumes import Affected, as_answer
from quotahost.settings.broker import Settings
from quotahost.text import escaped

OPEN: Final = Factor(1.0)
_CONSEQUENCE: Final = "its last factor holds for validity"
_MOST_UNKNOWN: Final = 3  # sentences in a cause
_LONGEST: Final = 1000  # characters of such a sentence


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one read of the factor source.

    Attributes:
        factor: the factor of everything that is known.
        unknown: why the rest is unknown, "" if nothing is.
        patience: how many seconds the rest may stay unknown before ``fallback.action`` applies.
        affected: the topics on the volumes that lower the factor; None if it is for all clients.
    """

    factor: Factor
    unknown: str = ""
    patience: float = 0.0
    affected: Affected | None = None


class Shown(Protocol):
    """Takes the factors of the volumes of ``broker``, or of all if that is None; ``VolumeLimits`` in a broker."""

    @property
    def broker(self) -> str | None:
        """Whose volumes."""

    def show(self, policy: tuple[str, QuotaPolicy] | None, judged: Sequence[tuple[Volume, float]]) -> None:
        """The volumes were judged, these are theirs."""


class Judge:
    """Asks the factor source and the policy; a failure of either leaves things unknown."""

    def __init__(self, guard: Guard, shown: Shown, clock: Callable[[], float]) -> None:
        """``shown`` puts the limits and the factors of this broker's volumes into the metrics; ``replay`` keeps all.

        ``clock`` in seconds, monotonic.
        """
        self._guard, self._shown = guard, shown
        self._pauses = Pauses(guard, clock)
        self._last: tuple[ClusterVolumes, Scoped] | None = None

    def forget(self) -> None:
        """The plugins or their settings have changed: judge the same volumes anew."""
        self._last = None

    def judge(
        self,
        source: tuple[str, QuotaFactorSource],
        policy: tuple[str, QuotaPolicy] | None,
        settings: Settings,
        starting: bool,
        in_force: float,
    ) -> Judgement:
        """Read the source once.

        Args:
            source: the factor source and its name.
            policy: the policy and its name; without one every volume is OPEN.
            settings: those in force.
            starting: whether nothing has been known yet, so that a failure is waited for as long as at a start.
            in_force: the factor that has applied since the last read.
        """
        name, plugin = source
        answer = self._guard.call(
            name, "read()", _CONSEQUENCE, lambda: as_answer(plugin.read(), f"factor source {name}")
        )
        grace, validity = settings.startup_grace.total_seconds(), settings.validity.total_seconds()
        patience = grace if starting else validity
        if isinstance(answer, Factor):
            self.hide()
            return Judgement(Factor(answer.value, _line(answer.cause)))
        if isinstance(answer, ClusterVolumes):
            self._tell(policy, in_force)
            scoped, failed = self._factor(answer, policy, settings.pause_resume_free_share)
            if answer.unknown:
                # No patience: a source names as unknown only what it has waited for itself (validity, startup.grace).
                more = " ..." if len(answer.unknown) > _MOST_UNKNOWN else ""
                unknown = "; ".join(map(_line, answer.unknown[:_MOST_UNKNOWN])) + more
                return Judgement(scoped.factor, unknown, affected=scoped.affected)
            # What a source that has just started waits for is no failure: startup.grace applies to it, not validity.
            unknown = failed or _line(answer.waiting)
            return Judgement(scoped.factor, unknown, patience if failed else grace, scoped.affected)
        return Judgement(OPEN, f"factor source {name} doesn't know", patience)

    def hide(self) -> None:
        """No volumes are judged any more: their limits and factors leave the metrics."""
        self._last = None
        self._shown.show(None, ())

    def _tell(self, policy: tuple[str, QuotaPolicy] | None, in_force: float) -> None:
        if policy is not None and callable(tell := getattr(policy[1], "factor_in_force", None)):
            self._guard.call(policy[0], "factor_in_force()", "it decides without that", lambda: tell(in_force))

    def _factor(
        self, answer: ClusterVolumes, policy: tuple[str, QuotaPolicy] | None, release: float
    ) -> tuple[Scoped, str]:
        """The smallest factor of all volumes, and the sentence that the policy fails for some, or ""."""
        if policy is None:
            self.hide()
            return Scoped(OPEN), ""
        name, plugin = policy
        # A source returns the same object while nothing has changed, so `is` is enough: to ask the policy about 20,000
        # volumes took 44 ms, and this runs every factor.interval.
        if self._last and answer is self._last[0] and not self._depends_on_time(name, plugin):
            self._pauses.last()
            return self._last[1], ""
        self._pauses.forget()
        hold = partial(self._pauses.held, policy, release)
        factor, failure, own, lowered = judged(plugin, answer.volumes, self._shown.broker, hold)
        scoped = Scoped(factor, affected(lowered))
        self._shown.show(policy, own)
        if failure is None:
            # judged() calls the policy without the guard, so the guard has to hear of the success here.
            self._guard.heal(name, "quota_factor()")
            self._last = answer, scoped
            return scoped, ""
        self._guard.report(name, "quota_factor()", _CONSEQUENCE, failure)
        self._last = None
        return scoped, f"the policy {name} fails"

    def _depends_on_time(self, name: str, policy: QuotaPolicy) -> bool:
        # A property is a call of the plugin, too. One that fails, or is neither true nor false, counts as true.
        consequence = "it is asked about every volume each time"
        return (
            self._guard.call(
                name, "depends_on_time", consequence, lambda: bool(getattr(policy, "depends_on_time", False))
            )
            is not False
        )


def _line(text: str) -> str:
    """A plugin's text as part of a cause, which is one line of a log and an MBean's name."""
    return escaped(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


def judged(
    policy: QuotaPolicy, volumes: Iterable[Volume], broker: str | None, hold: Callable[[Volume, float], int | None]
) -> tuple[Factor, BaseException | None, list[tuple[Volume, float]], list[tuple[Volume, float]]]:
    """The smallest factor of the volumes that the policy can judge, its first failure, and the factors of volumes.

    The factors are those of one broker's volumes, and then those below 1.

    A volume for which the policy fails must not hide one at its hard limit, so all are asked. Each is asked once: the
    answer of a policy may depend on how often it was asked.

    Args:
        policy: is asked.
        volumes: of all brokers.
        broker: the id of the one whose volumes are returned with their factors; None for all volumes.
        hold: tells of a volume with this factor, in bytes used, where its PAUSE ends, if it is in one.
    """
    smallest: tuple[float, Volume, int | None] | None = None
    failure: BaseException | None = None
    own: list[tuple[Volume, float]] = []
    lowered: list[tuple[Volume, float]] = []
    for volume in volumes:
        try:
            # Factor refuses a number outside 0..1, which then is the policy's failure (contract, sentence 6).
            value = Factor(policy.quota_factor(volume)).value
            until = hold(volume, value)
            if until is not None:
                value = 0.0
            if broker is None or volume.broker == broker:
                own.append((volume, value))
        except BaseException as error:  # see quotahost.broker.host.guard
            failure = failure or error
        else:
            if value < 1:
                lowered.append((volume, value))
            if smallest is None or value < smallest[0]:
                smallest = value, volume, until
    if smallest is None:
        return OPEN, failure, own, lowered
    # Other brokers' records bring these names, and a line break in one must not forge a line of the log.
    value, volume, until = smallest
    held = f": PAUSE until {until:,} bytes or fewer are used (pause.resume.free-share)" if until is not None else ""
    return Factor(value, f"{place(volume)}{held}"), failure, own, lowered
