"""Tests how volumes are judged: how long a PAUSE lasts, whom a factor is for, and the metrics of own volumes."""

import logging
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost.broker.host.messages import Scoped
from quotahost.broker.host.volume_evaluation import Judged, affected
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.model import ClusterVolumes, Factor, Limit, LimitType, Volume
from quotahost.model.volumes import MAX_AFFECTED, Affected
from tests.fakes.plugin_context import context, fails, settings
from tests.fakes.shim import FakeShim
from tests.unit.broker.host.factor_world import EMPTY, TIMES, Policy, World, cluster

SOFT, HARD = 500, 1000
CONSUMED, FREE, _ = LimitType
LIMITS = {"static__storage__hard": f"{HARD}", "static__storage__soft": f"{SOFT}"}


def world(share: str = "0.1", *, policy: Any = None, shim: Any = None, **limits: str) -> World:
    made = World(policy=policy or Limits(context()), shim=shim)
    change(made, **(limits or LIMITS), pause__resume__free_share=share)
    return made


def used(consumed: int, name: str = "/d", **limits: Any) -> Volume:
    return Volume("1", name, 2000, consumed, **limits)


def factors(one: World, *consumed: int) -> list[float]:
    return [one.step(cluster(used(each))) for each in consumed]


def change(one: World, **given: str) -> None:
    """A live change of the broker's properties."""
    one.settings = settings(factor__source="mine", **TIMES | given)
    if isinstance(one.policy, Limits):
        one.policy._context.settings = one.settings
    one.loop.forget()


def test_each_volume_is_held_by_itself_and_the_reason_says_until_when() -> None:
    one = world()
    one.step(cluster(used(1000, "/a"), used(960, "/b")))
    assert one.step(cluster(used(940, "/a"), used(960, "/b"))) == 0.08
    assert one.cause == "broker 1, volume /b"
    one.step(cluster(used(1000, "/a"), used(1000, "/b")))
    assert one.step(cluster(used(940, "/a"), used(960, "/b"))) == 0
    assert one.cause == "broker 1, volume /b: PAUSE until 950 bytes or fewer are used (pause.resume.free-share)"
    assert [one.shim.shown["VolumeLimits", "/b", name] for name in ("Factor", "Breached")] == [0, 1]
    for_good = world(static__storage__hard__min_free_bytes="2001")  # more than the capacity
    assert factors(for_good, 0) == [0]
    assert for_good.cause == "broker 1, volume /d: PAUSE that never ends: its hard limit allows no used byte"


def test_a_volume_that_swings_around_its_hard_limit_in_a_pause_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    for share, end in (("0.1", "950"), ("0", "999")):
        caplog.clear()
        factors(world(share), 1000, int(end) + 1, 1000, int(end) + 1, 1001)
        until = f"PAUSE until {end} bytes or fewer are used (pause.resume.free-share)"
        assert caplog.messages == [f"OPEN -> PAUSE: factor 0 (broker 1, volume /d: {until})"]


def test_full_volumes_in_another_order_or_whose_capacity_moves_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    one = world(static__storage__hard__min_free_percent="0.1", static__storage__soft__min_free_percent="0.2")
    for more in (0, 3700, 1_230_000):
        full = [Volume("1", name, 2_000_000_000 + more, 1_900_000_000) for name in ("/a", "/b")]
        one.step(cluster(*full[:: -1 if more else 1]))
    until = "PAUSE until 1,780,000,000 bytes or fewer are used (pause.resume.free-share)"
    assert caplog.messages == [f"OPEN -> PAUSE: factor 0 (broker 1, volume /a: {until})"]


def test_it_holds_for_any_policy_that_tells_its_limits_and_for_no_other() -> None:
    def half(volume: Volume) -> float:
        return 0.5 if volume.consumed < HARD else 0

    assert factors(world(policy=SimpleNamespace(quota_factor=half)), 1000, 999) == [0, 0.5]
    aware: Any = Asked()
    aware.soft, aware.hard = Limit(CONSUMED, SOFT), Limit(FREE, 2000 - HARD)
    aware.quota_factor, aware.breaches_hard_limit = half, lambda volume: volume.consumed >= HARD
    one = world(policy=aware)
    assert factors(one, 1000, 951, 950) == [0, 0, 0.5]
    factors(one, 1000)
    aware.fails.add("/d")
    assert factors(one, 951) == [0.5], "if the policy's limits fail, the factor isn't held at 0"


def test_a_pause_outlives_a_failure_of_the_policy_and_a_source_that_a_change_builds_anew() -> None:
    one = world()
    one.step(cluster(used(1000)))
    one.step(cluster(waiting="the cluster has not listed its brokers yet"))
    assert one.step(cluster(used(960))) == 0
    judges, one.policy.quota_factor = one.policy.quota_factor, fails
    one.step(cluster(used(961)))
    one.policy.quota_factor = judges
    assert factors(one, 960, 950) == [0, 0.1]


def test_a_policy_hears_which_factor_was_in_force_whatever_it_came_from() -> None:
    one, heard = World(before=Scoped(Factor(0.25))), list[float]()
    one.policy.factor_in_force = heard.append
    half, empty = cluster(used(1000)), cluster(used(0))
    one.step(half)
    one.step(cluster(used(0), unknown=("broker 2: no snapshot",)))  # fallback.action=PAUSE
    one.step(half)
    one.step(empty)
    assert heard == [0.25, 0.5, 0, 0.5], "the first factor is from before this host"
    for shadow in ({"shadow": "all"}, {"shadow": "factor"}):
        one.settings = settings(factor__source="mine", **shadow, **TIMES)
        one.step(half)
        one.step(empty)
    assert heard[4:] == [1, 1, 1, 1], "in shadow no client is slowed, so the factor in force is 1"


# ---- random limits and volumes ---------------------------------------------------------------------

shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 1.0, 1e-300]))
places = st.one_of(st.integers(HARD - 600, HARD + 10), st.sampled_from([SOFT, SOFT + 1, HARD - 1, HARD, 950, 951]))


@pytest.mark.proves("proposal-035.pause")
@example(False, 2**52 + 1, [(1.0, HARD), (1.0, SOFT)])  # as a float, hard - soft would be too large
@given(st.booleans(), st.sampled_from([1, 2**52 + 1]), st.lists(st.tuples(shares, places), min_size=1, max_size=6))
def test_a_pause_lasts_from_hard_to_the_release_point(switch: bool, unit: int, looks: list[tuple[float, int]]) -> None:
    soft, hard = SOFT * unit, HARD * unit
    limits = {"static__storage__hard": f"{hard}"} | ({} if switch else {"static__storage__soft": f"{soft}"})
    one = world(**limits)
    way = hard // 20 if switch else hard - soft
    paused = False
    for share, place in looks:
        change(one, **limits, pause__resume__free_share=f"{share:.20f}")
        point = hard - int(way * Fraction(str(float(f"{share:.20f}"))))
        paused = place * unit >= hard or (paused and place * unit > point)
        assert (one.step(cluster(Volume("1", "/d", 2000 * unit, place * unit))) == 0) == paused


OWN = Volume("1", "/own", 100, 60)
OTHER = Volume("2", "/other", 100, 99)


class Asked(Policy):
    """A policy that returns its limits: 50 and 90 bytes."""

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


def test_this_brokers_volumes_are_shown_with_their_limits_in_bytes_used_while_they_are_judged() -> None:
    one = World(policy=(policy := Asked()))
    one.step(cluster(OWN, OTHER, Volume("1", "/full", 100, 95)))
    own = {"/own": {"Factor": 0.4, "Soft": 50, "Hard": 90, "Breached": 1}}
    full = {"/full": {"Factor": pytest.approx(0.05), "Soft": 50, "Hard": 90, "Breached": 2}}
    assert one.shown("VolumeLimits") == own | full
    policy.questions.clear()
    one.step(cluster(OWN), 2)
    one.step(None, 5)
    assert one.shown("VolumeLimits") == own, "if the source fails, the last numbers stay"
    assert policy.questions == ["/own"], "the numbers need no further question to the policy"
    one.step(Factor(0.5, "by hand"))
    assert one.shown("VolumeLimits") == {}
    one.step(cluster(OWN))
    one.has_source = False
    one.step()
    assert one.shown("VolumeLimits") == {}
    nothing_to_ask = World(policy=Policy())
    nothing_to_ask.step(cluster(OWN))
    assert (nothing_to_ask.shown("VolumeLimits"), nothing_to_ask.shim.failed) == ({"/own": {"Factor": 0.4}}, [])


@pytest.mark.parametrize("broken", ["raises", "soft", "hard"])
def test_limits_that_fail_leave_the_factor_alone_and_are_counted(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    policy = Asked()
    one = World(policy=policy)
    one.step(cluster(OWN))
    if broken == "raises":
        policy.fails = {"/own"}
        policy.quota_factor = lambda volume: 0.4  # type: ignore[method-assign]
    else:
        setattr(policy, broken, 0.5)
    with caplog.at_level(logging.ERROR):
        assert one.step(cluster(OWN, EMPTY)) == 0.4
    assert one.shown("VolumeLimits") == {"/own": {"Factor": 0.4}}
    assert len(one.shim.failed) == 1
    assert "the metrics show no limits of volumes" in caplog.text
    policy.soft, policy.hard, policy.is_over, policy.fails = None, Limit(CONSUMED, 70), False, set()
    one.step(cluster(OWN))
    assert one.shown("VolumeLimits") == {"/own": {"Factor": 0.4, "Soft": 70, "Hard": 70, "Breached": 0}}


def test_what_a_host_before_has_shown_and_nobody_has_any_more_leaves_the_metrics() -> None:
    shim = FakeShim(second_life=True, last=Scoped(Factor(0.5, "broker 1, volume /own")))
    for type in (types := ("VolumeLimits", "Budget", "TypedFactor", "Cause")):
        shim.gauge(type, "gone", "Factor", 0.5)
    shim.gauge("Plugin", "gone", "Errors", 1)
    World(shim=shim).step(cluster(EMPTY))
    assert [name for kind, name, _ in shim.shown if kind in types] == []
    assert shim.shown["Plugin", "gone", "Errors"] == 1


def test_too_many_topics_make_it_for_all() -> None:
    most = [Volume("1", str(n), 1, 1, topics=frozenset(f"{n}.{m}" for m in range(1000))) for n in range(11)]
    judged = [Judged(each, 0.5) for each in most]
    assert len((affected(judged[:10]) or Affected({}, frozenset())).places) == MAX_AFFECTED
    assert affected(judged) is None


def test_a_budget_of_too_many_topics_is_left_out_alone_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def budget(name: str, used: int, topics: int) -> Volume:
        return Volume("", name, 100, used, topics=frozenset(f"{name}-{n}" for n in range(topics)))

    one = World(fence=True)
    for used in (60, 59):  # a change, so that the policy judges the budgets again
        budgets = budget("huge", used, MAX_AFFECTED - 1), budget("orders", 100, 2), budget("logs", 50, 2)
        one.step(ClusterVolumes((EMPTY,), budgets=budgets))
    assert [slowed.name for slowed in one.shim.budgets[-1]] == ["orders", "logs"]
    (line,) = [record.getMessage() for record in caplog.records if "huge" in record.getMessage()]
    assert "10,000 topics" in line
