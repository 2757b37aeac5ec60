"""The factor and the limits of this broker's volumes stand in the metrics, whatever the policy does."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quotahost.broker.host.volume_evaluation import MOST_SHOWN as MOST
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.metrics import CATALOGUE
from quotahost.model import ClusterVolumes, Factor, Limit, LimitType, Volume
from tests.fakes.plugin_context import context, settings
from tests.unit.broker.host.test_factor import EMPTY, TIMES, Policy, World, cluster

CONSUMED, FREE, _ = LimitType
OWN = Volume("1", "/own", 100, 60)
OTHER = Volume("2", "/other", 100, 99)


class Asked(Policy):
    """A policy that can be asked for its limits: 50 and 90 bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []
        self.soft: Any = Limit(CONSUMED, 50)
        self.hard: Any = Limit(FREE, 10)
        self.is_over: Any = True

    def soft_limit(self, volume: Volume) -> Any:
        self.questions.append(volume.name)
        if volume.name in self.fails:
            raise SystemExit("no idea")
        return self.soft

    def hard_limit(self, volume: Volume) -> Any:
        return self.hard

    def breaches_soft_limit(self, volume: Volume) -> Any:
        return self.is_over

    def breaches_hard_limit(self, volume: Volume) -> bool:
        return volume.consumed >= 90


def world(policy: Any) -> World:
    made = World()
    made.policy = policy
    return made


def shown(world: World) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for (kind, name, attribute), value in world.shim.shown.items():
        if kind == "VolumeLimits":
            found.setdefault(name, {})[attribute] = value
    return found


def test_this_brokers_volumes_are_shown_with_their_limits_in_bytes_used() -> None:
    one = world(Asked())
    one.step(cluster(OWN, OTHER, Volume("1", "/full", 100, 95)))
    assert shown(one) == {
        "/own": {"Factor": 0.4, "Soft": 50, "Hard": 90, "Breached": 1},
        "/full": {"Factor": pytest.approx(0.05), "Soft": 50, "Hard": 90, "Breached": 2},
    }
    catalogue = {metric.attribute for metric in CATALOGUE if metric.type == "VolumeLimits"}
    assert set(shown(one)["/own"]) == catalogue


def test_of_a_policy_that_can_not_be_asked_the_factors_are_shown() -> None:
    one = world(Policy())
    assert one.step(cluster(OWN)) == 0.4
    assert shown(one) == {"/own": {"Factor": 0.4}}
    assert one.shim.failed == []


def test_the_policy_is_asked_as_often_as_for_the_factor() -> None:
    policy = Asked()
    one = world(policy)
    one.step(cluster(OWN), seconds=5)
    assert (policy.questions, policy.asked) == (["/own"], 1)
    one.step(cluster(OWN, OTHER))
    assert (policy.questions, policy.asked) == (["/own", "/own"], 3)


@pytest.mark.parametrize("broken", ["raises", "soft", "hard", "is_over"])
def test_limits_that_fail_leave_the_factor_alone_and_are_counted(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    policy = Asked()
    one = world(policy)
    one.step(cluster(OWN))
    if broken == "raises":
        policy.fails = {"/own"}
        policy.quota_factor = lambda volume: 0.4  # type: ignore[method-assign]
    else:
        setattr(policy, broken, 0.5)
    with caplog.at_level(logging.ERROR):
        assert one.step(cluster(OWN, EMPTY)) == 0.4
    assert shown(one) == {"/own": {"Factor": 0.4}}
    assert len(one.shim.failed) == 1
    assert "the metrics show no limits of volumes" in caplog.text
    policy.soft, policy.hard, policy.is_over, policy.fails = None, Limit(CONSUMED, 70), False, set()
    one.step(cluster(OWN))
    assert shown(one) == {"/own": {"Factor": 0.4, "Soft": 70, "Hard": 70, "Breached": 0}}


def test_what_is_no_longer_judged_leaves_the_metrics() -> None:
    one = world(Asked())
    one.step(cluster(OWN, Volume("1", "/gone", 10, 1)))
    one.step(cluster(OWN))
    assert list(shown(one)) == ["/own"]
    one.step(Factor(0.5, "by hand"))
    assert shown(one) == {}
    one.step(cluster(OWN))
    one.has_source = False
    one.step()
    assert shown(one) == {}


def test_while_the_source_fails_the_last_numbers_stand() -> None:
    one = world(Asked())
    one.step(cluster(OWN))
    one.step(None, 5)
    assert list(shown(one)) == ["/own"]


def test_a_live_change_of_the_limits_is_shown_though_the_volumes_are_the_same() -> None:
    policy = Limits(context())
    one = world(policy)
    volumes = cluster(OWN)
    one.step(volumes)
    assert shown(one) == {"/own": {"Factor": 1.0, "Breached": 0.0}}
    policy._context.settings = settings(**TIMES | {"static__storage__soft": "50", "static__storage__hard": "90"})
    one.loop.forget()
    one.step(volumes)
    assert shown(one) == {"/own": {"Factor": 0.75, "Soft": 50, "Hard": 90, "Breached": 1}}
    policy._context.settings = settings(**TIMES)
    one.loop.forget()
    one.step(volumes)
    assert shown(one) == {"/own": {"Factor": 1.0, "Breached": 0.0}}


def test_of_many_volumes_those_with_the_smallest_factors_are_shown() -> None:
    one = world(Asked())
    many = [Volume("1", f"/{n}", 1000, n) for n in range(MOST + 50)]
    one.step(ClusterVolumes(tuple(many)))
    assert set(shown(one)) == {f"/{n}" for n in range(50, MOST + 50)}


@pytest.mark.proves("proposal-035.factor-alone")
def test_a_bare_number_of_a_source_is_the_factor_and_the_source_its_cause() -> None:
    one = World()
    assert one.step(0.25) == 0.25
    assert one.cause == "factor source mine"
    assert one.step(1) == 1.0
    assert one.step(0) == 0.0


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), True, "0.5"])
def test_a_number_that_is_no_factor_is_a_failure_of_the_source(wrong: Any) -> None:
    one = World()
    one.step(0.25)
    assert one.step(wrong) == 0.25
    assert one.shim.failed == ["mine"]
