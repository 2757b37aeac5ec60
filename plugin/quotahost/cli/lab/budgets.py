"""For how long budgets would have slowed or stopped their writers, for ``replay``, by the sums that ``history`` reads.

A budget is not played, as volumes are: the history has means of ten minutes, and in one of them a budget may stop its
writers and let them go on. So policies have no say, and only that is told which holds for all of them: for how long the
bytes were beyond the soft limit and beyond the hard one, by the limits of the brokers' own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quotahost.base.text import bounded
from quotahost.model.budgets import Budget, as_volume
from quotahost.model.volumes import ByteLimits, byte_limits

_MOST_NAMED: Final = 5  # budgets in a note


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What a budget's topics took in a cluster, by parts of the time."""

    cluster: str
    budget: str
    width: float  # seconds of a part
    #: When each begins, and bytes: the mean of ten minutes; of a longer part the largest one.
    parts: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class BudgetTimes:
    """For how many seconds writers were held back, slowed or turned back, and for how many all bytes were used."""

    held_s: float
    used_up_s: float


@dataclass(frozen=True, slots=True)
class ReplayedBudget:
    """One budget in a cluster."""

    cluster: str
    budget: str
    sizes: tuple[int, int]  # its bytes then and new
    peak: int  # the most that was used
    peak_at: float
    unknown_s: float  # seconds of which the history has nothing
    then: BudgetTimes
    #: None if a larger budget follows one that held its writers back: how much they would have written is not known.
    new: BudgetTimes | None


#: By name what is declared, each with its ``budget.soft.share``: then and new.
Declared = Mapping[str, tuple[tuple[Budget, float], tuple[Budget, float]]]


def judged(uses: Sequence[BudgetUse], declared: Declared, seconds: float) -> tuple[list[ReplayedBudget], list[str]]:
    """The budgets that can be judged, the longest held first, and notes on the others, of a time so long."""
    # The history has the sum of each name alone, not of each topic.
    others = [name for name, each in declared.items() if len({(b.replicas, frozenset(b.topics)) for b, _ in each}) > 1]
    lacking = declared.keys() - others - {use.budget for use in uses}
    found = [_judged(use, *declared[use.budget], seconds) for use in uses if use.budget not in others]
    found.sort(key=lambda budget: (budget.new or budget.then).held_s, reverse=True)
    left_out = {"the history has no bytes of them": lacking, "other topics or replicas counted then": others}
    return found, [
        f"budgets not judged, since {why}: {', '.join(bounded(sorted(names), _MOST_NAMED, 'budgets'))}"
        for why, names in left_out.items()
        if names
    ]


def _judged(use: BudgetUse, then: tuple[Budget, float], new: tuple[Budget, float], seconds: float) -> ReplayedBudget:
    (before, was), (after, would_be) = (_beyond(use, *of) for of in (then, new))
    is_hidden = was.held_s > 0 and (after.soft > before.soft or after.hard > before.hard)
    at, most = max(use.parts, key=lambda part: part[1])
    unknown_s = max(0.0, seconds - use.width * len(use.parts))
    sizes = then[0].bytes, new[0].bytes
    return ReplayedBudget(use.cluster, use.budget, sizes, most, at, unknown_s, was, None if is_hidden else would_be)


def _beyond(use: BudgetUse, budget: Budget, soft_share: float) -> tuple[ByteLimits, BudgetTimes]:
    volume = as_volume(budget, 0, frozenset(), soft_share)
    limits = byte_limits(volume, volume.soft, volume.hard)
    assert limits is not None
    held, used_up = (
        use.width * sum(breaches(used) for _, used in use.parts)
        for breaches in (limits.breaches_soft, limits.breaches_hard)
    )
    return limits, BudgetTimes(held, used_up)
