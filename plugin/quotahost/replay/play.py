"""Leads two hosts through the history: one sees what was recorded, the other what would have been.

Both look at the same times, a ``step`` apart. The second one has the new settings, and sees each volume as full as it
would have become by its own factors (:mod:`quotahost.replay.growth`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import Final

from quotahost.replay.clients import courses as held_back
from quotahost.replay.group import Group, Plan
from quotahost.replay.limits import own_limits
from quotahost.replay.track import Track
from quotahost.replay.values import Course, Replay
from quotahost.report.values import Report
from quotahost.settings.broker import Settings
from quotahost.simulation.world import quiet

MOST_STEPS: Final = 20_000
_QUESTIONS: Final = 4_000_000  # to a policy in one pass: more take minutes
_LEAST_STEPS: Final = 1_000
_SILENT: Final = 3  # steps or readings after which a volume without a new one isn't known any more
_LOCAL: Final = "local"


def play(found: Report, plan: Plan) -> Replay:
    """What the settings of the plan would have done.

    Raises:
        PluginError: a policy can't be had.
        SettingsError: one of its properties is wrong.
    """
    since, until = found.since.timestamp(), found.until.timestamp()
    now = since

    def clock() -> float:
        return now

    groups = list(_groups(found, plan, clock))
    step = _step(plan.new, until - since, max(len(group.tracks) for group in groups))
    silent = max(plan.new.validity.total_seconds(), _SILENT * step, _SILENT * _apart(found))
    with quiet():
        last = ceil((until - since) / step)
        for number in range(last + 1):
            now = since + number * step
            for group in groups:
                group.step(now, step if number < last else 0.0, silent)
    courses = [track.course() for group in groups for track in group.tracks if track.points]
    courses.sort(key=lambda each: (-each.new.pause_s, -each.new.throttle_s, -each.peak_new / max(1, each.capacity)))
    where = tuple(group.where() for group in groups)
    clients = held_back(found.clients or (), where, until)
    notes = [*_notes(plan, courses, any(group.failed for group in groups))]
    if found.clients is None:
        notes.append("the history has no usage of that time, so it isn't known which clients would have been slowed")
    return Replay(since, until, step, where, tuple(courses), clients, tuple(notes))


def _groups(found: Report, plan: Plan, clock: Callable[[], float]) -> Iterator[Group]:
    limits = own_limits(plan.new, [c.name for c in found.curves])
    local = plan.new.factor_source == _LOCAL
    tracks: dict[tuple[str, str], list[Track]] = {}
    for curve in found.curves:
        where = curve.name.cluster, curve.name.broker if local else ""
        tracks.setdefault(where, []).append(Track(curve, limits[curve.name]))
    for where in sorted(tracks):
        yield Group(*where, tracks[where], plan, clock)


def _step(own: Settings, span: float, volumes: int) -> float:
    steps = max(_LEAST_STEPS, min(MOST_STEPS, _QUESTIONS // volumes))
    return max(own.factor_interval.total_seconds(), span / steps)


def _apart(found: Report) -> float:
    """Seconds between two readings, in the mean of the volume that is read most often."""
    several = [curve for curve in found.curves if len(curve.buckets) > 1]
    return min(((c.newest.at - c.buckets[0].at) / (len(c.buckets) - 1) for c in several), default=0.0)


def _notes(plan: Plan, courses: list[Course], failed: bool) -> Iterator[str]:
    if not plan.new.factor_source:
        yield "these settings name no factor.source, so no volume would have slowed anybody"
    elif plan.new.in_shadow.factor:
        yield "the factor is in shadow in these settings: it is shown, and nobody would have been slowed"
    if plan.then.in_shadow.factor:
        yield "the factor was in shadow then, so nobody was slowed by it"
    if (
        plan.new.factor_source == _LOCAL != plan.then.factor_source
        or plan.then.factor_source == _LOCAL != plan.new.factor_source
    ):
        yield "then and now differ in factor.source; what brokers knew of each other is taken from the new settings"
    if not any(course.points[-1].hard is not None or course.points[-1].soft is not None for course in courses):
        yield "these settings give no limits to any of the volumes"
    if plan.new.factor_scope == "topics":
        yield "factor.scope=topics: the history has no topics, so a volume's growth follows its own factor"
    if any(course.estimated for course in courses):
        yield "estimated: clients were paused then; what they would have written is as before that PAUSE"
    if failed:
        yield "the policy failed for a volume, which was left out then"
