"""The rate that a client is given: its newest share, in steps, and an equal part without shares."""

from datetime import UTC, datetime

import pytest

from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.broker.plugins.cluster_quota.shares import GivenRates
from quotahost.model import ClientUsage, QuotaType
from quotahost.records.shares import Share, Shares
from quotahost.records.usage import ClientKey
from tests.fakes.plugin_context import Clock, context, settings
from tests.fakes.quotas import quota, remove, set_quotas

KEY = ClientKey("alice", "app", QuotaType.PRODUCE)
QUOTA = 3e6
WINDOW, MUTE = 12.0, 30.0
STEP = WINDOW / (WINDOW + MUTE)
SETTINGS = settings(validity="60s", floor__bytes="35000", max__mute="30s")
WALL = datetime(2026, 11, 21, tzinfo=UTC)


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.quotas = ClusterQuotas(context())
        set_quotas(self.quotas, quota("alice", None, 3e6))
        self.wall = Clock(WALL.timestamp())
        self.rates = GivenRates(WINDOW, self.clock, self.wall)
        self.rates.brokers = 3
        self.sequence = 0

    def share(self, share: float, quota: float = QUOTA, key: ClientKey = KEY) -> None:
        self.sequence += 1
        assert self.rates.take(Shares("1", 1, self.sequence, WALL, (Share(key, share, quota),)), True, 60)

    def look(self, rate: float | None = None, idle: float = 0.0, after: float = 0.5) -> list[ClientKey]:
        self.clock.now += after
        used = [] if rate is None else [ClientUsage(*KEY, rate, self.given, 0.0, idle)]
        return self.rates.look(self.quotas, used, SETTINGS)

    def active(self, share: float, rate: float) -> None:
        """The client uses so much, and its share is there."""
        self.look(min(rate, 5e5))
        self.clock.now += 5
        self.share(share)
        self.look(min(rate, 5e5))
        self.look(rate)

    @property
    def given(self) -> float:
        return self.rates.rate(KEY, QUOTA)


@pytest.fixture
def world() -> World:
    return World()


def test_without_shares_a_client_has_an_equal_part(world: World) -> None:
    assert world.given == 1e6
    world.rates.brokers = 4
    assert world.given == 0.75e6
    assert world.look(5e5) == []


def test_only_a_tenth_is_handed_on_at_once_and_less_when_it_has_settled(world: World) -> None:
    world.active(2e6, 1e6)
    world.share(2.19e6)
    assert world.look(1e6) == []
    world.share(2.2e6)
    assert world.look(1e6) == [KEY]
    world.share(2.25e6)
    assert world.look(1e6, after=9) == []
    assert world.look(1e6, after=1) == [KEY]
    assert world.given == 2.25e6


def test_that_shares_have_come_or_gone_is_handed_on_however_small_the_difference(world: World) -> None:
    world.share(1.001e6)
    assert world.look(5e5) == [KEY]
    assert world.look(5e5, after=61) == [KEY]
    assert world.given == 1e6


def test_a_client_that_uses_little_is_taken_down_at_once(world: World) -> None:
    world.active(2.9e6, 1e4)
    world.share(50e3)
    assert world.look(1e4) == [KEY]
    assert world.given == 50e3


def test_a_client_that_is_silent_here_has_its_equal_part_and_keeps_it_for_its_first_seconds(world: World) -> None:
    world.share(50e3)
    world.look()
    assert world.given == 1e6
    world.look(2e5)
    assert world.given == 1e6
    world.look(2e5, after=2.4)
    assert world.given == 1e6, "the shares may not know of it yet"
    world.look(2e5, after=0.6)
    assert world.given == pytest.approx(2e5 * STEP)


def test_a_client_that_has_left_has_its_equal_part_again(world: World) -> None:
    world.active(2.9e6, 2.9e6)
    world.share(50e3)
    world.look(2.5e6, idle=3.0, after=3.0)
    world.look(2.2e6, idle=4.5, after=1.5)
    assert world.given == 1e6


def test_no_share_goes_below_the_floor_unless_the_equal_part_does(world: World) -> None:
    world.active(2e6, 1.0)
    world.share(10.0)
    world.look(1.0)
    assert world.given == 35e3
    world.rates.brokers = 1000
    world.look(1.0)
    assert world.given == 3e3


def test_shares_that_are_stale_leave_an_equal_part_in_steps_and_are_announced(world: World) -> None:
    world.active(2.9e6, 2.9e6)
    assert world.look(2.9e6, after=61) == [KEY]
    assert not world.rates.fresh(60)
    assert world.given == 1e6
    assert world.look(2.9e6) == []
    assert world.rates.shared == 0


def test_a_client_that_is_no_longer_listed_has_its_equal_part(world: World) -> None:
    world.active(2e6, 1e5)
    world.share(1.0, key=KEY._replace(principal="bob"))
    assert world.look(1e5) == [KEY]
    assert world.given == 1e6


def test_a_share_of_another_quota_is_scaled_to_the_quota(world: World) -> None:
    world.active(4e6, 1e5)
    assert world.given == 3e6, "never more than the quota"
    world.share(2e6, quota=6e6)
    world.look(1e5)
    assert world.given == 1e6


@pytest.mark.parametrize(
    ("share", "quota", "given"), [(0.0, 5e-324, 35e3), (5e-324, 5e-324, QUOTA), (0.1, 1e-300, QUOTA)]
)
def test_of_an_invented_quota_counts_the_given_part_alone(
    world: World, share: float, quota: float, given: float
) -> None:
    world.active(2e6, 1e5)
    world.share(share, quota)
    world.look(1e5)
    world.look(1e5, after=10)
    assert world.given == pytest.approx(given)


def test_a_client_whose_quota_is_gone_is_forgotten(world: World) -> None:
    world.active(2e6, 1e5)
    remove(world.quotas, "alice")
    assert world.look(1e5) == []
    assert world.rates.shared == 0
