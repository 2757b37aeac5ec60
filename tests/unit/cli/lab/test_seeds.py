"""Thousands of scenes in which nothing may go wrong, and mutants of policy, loop and tap that must all be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from harness.loop import cluster
from harness.loop.checks import Checks, failing, violations
from harness.loop.cluster import Cluster
from harness.loop.seeds import scene_of_seed
from quotahost.broker.host import factor, volume_evaluation
from quotahost.broker.host.factor import FactorInForce, FactorLoop
from quotahost.broker.host.volume_evaluation import Pauses, Scoped
from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterVolumesSource
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.broker.plugins.policies.setpoint import Setpoint
from quotahost.cli.lab.broker import Broker
from quotahost.cli.lab.traffic import Slowing
from quotahost.model import Factor, Volume
from quotahost.model.volumes import Affected, ByteLimits
from quotahost.throttling import Tap

SEEDS = 500  # each mutant below is found within these
MORE = 10_000


def found_in(seeds: range) -> None:
    lines = list(islice(failing(seeds), 20))
    assert not lines, "\n".join(lines)


def test_in_five_hundred_scenes_nothing_goes_wrong() -> None:
    found_in(range(SEEDS))


@pytest.mark.long
def test_in_ten_thousand_scenes_nothing_goes_wrong() -> None:
    found_in(range(SEEDS, MORE))


def end(seed: int, watched: bool) -> tuple[object, ...]:
    world = Cluster(scene_of_seed(seed))

    def look() -> None:
        for disk in world.disks:
            disk.used()

    if watched:
        Checks(world)
        for ms in range(0, world.scene.ms, 100):
            world.events.at(ms, look)
    world.run()
    brokers = [(broker.factor, broker.cause, broker.tap.value) for broker in world.brokers]
    return brokers, [client.sent for client in world.clients], [disk.used() for disk in world.disks]


def test_the_same_seed_always_ends_the_same_whoever_looks() -> None:
    seeds = [*range(21), 26, 55]  # some have writers without a quota, or clients that get slowed tags
    assert [end(seed, watched=False) for seed in seeds] == [end(seed, watched=True) for seed in seeds]


Patch = Callable[[pytest.MonkeyPatch], None]
_replace, _decide, _view = FactorInForce.replace, FactorLoop._decide, Roster.view
_judged, _step, _ramp = volume_evaluation.evaluated, Tap.step, ByteLimits.ramp
_affected, _affect = volume_evaluation.affected, Slowing.affect


def never_lets_go(patch: pytest.MonkeyPatch) -> None:
    full: set[str] = set()

    def held(self: Pauses, policy: Any, share: float, volume: Volume, factor: float) -> int | None:
        if factor == 0:
            full.add(volume.broker)
        return 0 if volume.broker in full else None

    patch.setattr(Pauses, "held", held)


def lets_go_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pauses, "held", lambda *arguments: None)


def up_at_once(patch: pytest.MonkeyPatch) -> None:
    def step(self: Tap, factor: float, held: bool, now_ms: int) -> bool:
        if held:
            return False
        moved = _step(self, factor, held, now_ms)
        self._value = max(self._value, factor)
        return moved

    patch.setattr(Tap, "step", step)


def step_without_max_mute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tap, "_lowest", lambda self, *times: 0.0)
    patch.setattr(Tap, "_mean", lambda self, *times: self._factor)


def tap_never_arrives(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tap, "_mean", lambda self, *times: min(0.9, self._factor))


def pause_ignored_while_another_is_unknown(patch: pytest.MonkeyPatch) -> None:
    def decide(self: FactorLoop, known: Scoped, unknown: str, patience: float, now: float, settings: Any) -> Scoped:
        decided = _decide(self, known, unknown, patience, now, settings)
        return Scoped(Factor(1.0)) if unknown and settings.fallback_action == "OPEN" else decided

    patch.setattr(FactorLoop, "_decide", decide)


def largest_factor(patch: pytest.MonkeyPatch) -> None:
    def judged(policy: Any, volumes: Any, broker: str, hold: Any) -> Any:
        each = [_judged(policy, [volume], broker, hold) for volume in volumes]
        return max(each, key=lambda one: one[0].value, default=_judged(policy, [], broker, hold))

    patch.setattr(volume_evaluation, "evaluated", judged)


def lost_snapshot_is_empty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Roster, "view", lambda self, *of: replace(_view(self, *of), unknown=(), waiting=""))


def full_disk_is_no_news(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster, "has_changed", lambda before, now: False)


def small_change_of_state_is_swallowed(patch: pytest.MonkeyPatch) -> None:
    def put(self: FactorInForce, new: Scoped) -> None:
        if self._last is None or abs(new.factor.value - self.value) >= factor.STEP:
            _replace(self, new)

    patch.setattr(FactorInForce, "replace", put)


def ramp_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ByteLimits, "ramp", lambda self, consumed: max(0.02, _ramp(self, consumed)))


def setpoint_without_hard_limit(patch: pytest.MonkeyPatch) -> None:
    def quota_factor(self: Setpoint, volume: Volume) -> float:
        return 0.5

    patch.setattr(Setpoint, "quota_factor", quota_factor)


def unknown_stays_as_it_was(patch: pytest.MonkeyPatch) -> None:
    def decide(self: FactorLoop, known: Scoped, unknown: str, patience: float, now: float, settings: Any) -> Scoped:
        return _decide(self, Scoped(known.factor, full=known.full), "", 0.0, now, settings)

    patch.setattr(FactorLoop, "_decide", decide)


def lease_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Broker, "_in_force", property(lambda self: self.factor))


def every_topic_is_affected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(volume_evaluation, "affected", lambda lowered: None)


def no_topic_is_held(patch: pytest.MonkeyPatch) -> None:
    def affected(lowered: Any) -> Any:
        found = _affected(lowered)
        return found and Affected(found.places, frozenset())

    patch.setattr(volume_evaluation, "affected", affected)


def marks_never_end(patch: pytest.MonkeyPatch) -> None:
    def affect(self: Slowing, affected: Affected | None, now: int) -> None:
        before = self.affected.places if self.affected else {}
        _affect(self, affected and Affected({**before, **affected.places}, affected.held), now)

    patch.setattr(Slowing, "affect", affect)


def empty_windows_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Slowing, "share", lambda self, tags, now: 1.0)


def old_record_answers_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterVolumesSource, "_is_silent", lambda self, *arguments: False)


def pipeline_forgets_silent_brokers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterState, "_heard", lambda self, *arguments: ())


MUTANTS: dict[Patch, set[str]] = {
    never_lets_go: {"release"}, lets_go_at_once: {"hold"}, up_at_once: {"burst"}, step_without_max_mute: {"mute"},
    tap_never_arrives: {"open"}, pause_ignored_while_another_is_unknown: {"hard"}, largest_factor: {"hard"},
    lost_snapshot_is_empty: {"unknown"}, full_disk_is_no_news: {"hard"},
    small_change_of_state_is_swallowed: {"open", "hard"}, ramp_never_ends: {"hard"},
    setpoint_without_hard_limit: {"hard"}, unknown_stays_as_it_was: {"unknown"}, lease_never_ends: {"lease"},
    every_topic_is_affected: {"bystander"}, no_topic_is_held: {"hard"}, marks_never_end: {"bystander"},
    empty_windows_at_once: {"burst"}, old_record_answers_for_ever: {"release"},
    pipeline_forgets_silent_brokers: {"unknown"},
}  # fmt: skip


# These show only among several brokers, which every sixth seed has.
OF_SEVERAL = (
    pause_ignored_while_another_is_unknown, largest_factor, lost_snapshot_is_empty, full_disk_is_no_news,
    unknown_stays_as_it_was, every_topic_is_affected, marks_never_end, old_record_answers_for_ever,
    pipeline_forgets_silent_brokers,
)  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_found_within_500_seeds(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    for seed in range(1, 3_000, 6) if mutant in OF_SEVERAL else range(500):
        if {each.check for each in violations(seed)} & MUTANTS[mutant]:
            return
    pytest.fail("no seed finds it")
