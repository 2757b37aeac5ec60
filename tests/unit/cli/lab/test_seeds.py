"""Tests thousands of scenes in which nothing may go wrong; the checks must find all mutants of policy, loop and tap."""

from dataclasses import replace
from itertools import islice
from typing import Any, Final

import pytest

from harness.loop import cluster
from harness.loop.checks import failing, violations
from quotahost.broker.host import volume_evaluation
from quotahost.broker.host.volume_evaluation import Pauses
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterState, ClusterVolumesSource
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.broker.plugins.policies.setpoint import Setpoint
from quotahost.cli.lab.traffic import Slowing
from quotahost.cli.lab.world import Broker
from quotahost.model.volumes import ByteLimits
from quotahost.throttling import Tap

SEEDS = 500  # the checks find each mutant below within these
MORE = 10_000


@pytest.mark.parametrize("seeds", [range(SEEDS), pytest.param(range(SEEDS, MORE), marks=pytest.mark.long)], ids=str)
def test_in_thousands_of_scenes_nothing_goes_wrong(seeds: range) -> None:
    lines = list(islice(failing(seeds), 20))
    assert not lines, "\n".join(lines)


_ramp, _view = ByteLimits.ramp, Roster.view
#: The broken attributes of objects, their replacements, and the checks that must find the mutant.
MUTANTS: Final[dict[str, tuple[list[tuple[Any, str, Any]], set[str]]]] = {
    "a PAUSE ends at once": ([(Pauses, "_until", lambda *_: None)], {"hold"}),
    "limits rise at once": ([(Slowing, "share", lambda *_: 1.0)], {"burst"}),
    "limits fall in one step": (
        [(Tap, "_lowest", lambda *_: 0.0), (Tap, "_mean", lambda tap, *_: tap._factor)], {"mute"}
    ),
    "limits never rise to the end": ([(Tap, "_mean", lambda tap, *_: min(0.9, tap._factor))], {"open"}),
    "the hard limit only slows": ([(ByteLimits, "ramp", lambda own, used: max(0.02, _ramp(own, used)))], {"hard"}),
    "setpoint knows no hard limit": ([(Setpoint, "quota_factor", lambda *_: 0.5)], {"hard"}),
    "the lease never ends": ([(cluster.MortalBroker, "_in_force", Broker._in_force)], {"lease"}),
}  # fmt: skip
#: Only scenes with several brokers show these mutants; every sixth seed has several.
OF_SEVERAL: Final[dict[str, tuple[list[tuple[Any, str, Any]], set[str]]]] = {
    "a full disk is no news": ([(cluster, "has_changed", lambda *_: False)], {"hard"}),
    "a lost snapshot is an empty one": (
        [(Roster, "view", lambda roster, *of: replace(_view(roster, *of), unknown=[], waiting=""))], {"unknown"}
    ),
    "every topic is affected": ([(volume_evaluation, "affected", lambda *_: None)], {"bystander"}),
    "an old record answers for ever": ([(ClusterVolumesSource, "_is_silent", lambda *_: False)], {"release"}),
    "the pipeline forgets silent brokers": ([(ClusterState, "_heard", lambda *_: ())], {"unknown"}),
}  # fmt: skip


@pytest.mark.parametrize("mutant", [*MUTANTS, *OF_SEVERAL])
def test_a_mutant_is_found_within_500_seeds(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutants show that each check can fail, so the scenes above prove something."""
    broken, checks = (MUTANTS | OF_SEVERAL)[mutant]
    for place, name, instead in broken:
        monkeypatch.setattr(place, name, instead)
    seeds = range(1, 3_000, 6) if mutant in OF_SEVERAL else range(500)
    assert any({each.check for each in violations(seed)} & checks for seed in seeds), "a seed finds the mutant"
