"""The demand of a client: all it can get where it is held back, nothing where it is silent, else a bit more."""

import pytest

from quotahost.broker.plugins.cluster_quota.usage import Demands, key_of
from quotahost.model import ClientUsage, QuotaType

WINDOW = 12.0


class World:
    def __init__(self) -> None:
        self.demands, self.now = Demands(WINDOW), 100.0

    def look(
        self, rate: float, limit: float | None = 1e6, idle: float = 0.0, delay: float = 0.0, after: float = 0.5
    ) -> float | None:
        self.now += after
        used = ClientUsage("alice", "app", QuotaType.PRODUCE, rate, limit, delay, idle)
        return self.demands.look([used], self.now)[key_of(used)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("rate", "limit", "demand"),
    [(0.0, 1e6, 0.0), (4e5, 1e6, 5e5), (8.9e5, 1e6, 1.1125e6), (9e5, 1e6, None), (3e6, 1e6, None), (3e6, None, 3.75e6)],
)
def test_a_client_near_its_limit_wants_all_and_any_other_a_quarter_more(
    world: World, rate: float, limit: float | None, demand: float | None
) -> None:
    assert world.look(rate, limit) == (demand if demand is None else pytest.approx(demand))


@pytest.mark.parametrize("idle", [0.0, 0.3, 0.6, 0.9])
def test_a_client_that_asks_now_and_then_is_not_one_that_waits(world: World, idle: float) -> None:
    world.look(0)
    assert world.look(4e5, idle=idle, after=1.0) == pytest.approx(5e5)


def test_a_client_that_asked_nothing_for_a_second_wants_nothing_however_slowly_its_rate_falls(world: World) -> None:
    world.look(8e5)
    assert world.look(8e5, idle=0.5) == pytest.approx(1e6)
    assert world.look(8e5, idle=1.2, after=0.7) == 0
    assert world.demands.silent


def test_a_client_that_waits_out_its_throttle_time_is_silent_only_a_second_later(world: World) -> None:
    world.look(0)
    assert world.look(2e6) is None  # (2 - 1) / 1 x 12 s
    for waited in range(1, 13):
        assert world.look(1e5, idle=float(waited), after=1.0) is None
    assert world.look(1e5, idle=13.1, after=1.1) == 0


def test_a_limit_that_is_lowered_while_it_is_silent_makes_it_no_less_silent(world: World) -> None:
    world.look(0)
    world.look(1e6, limit=3e6)
    assert world.look(1e6, limit=3e6, idle=1.5, after=1.5) == 0
    assert world.look(9.5e5, limit=3e5, idle=2.0) == 0


def test_a_limit_that_is_raised_while_it_waits_changes_nothing_about_its_wait(world: World) -> None:
    world.look(0)
    world.look(2e6, limit=1e6)
    assert world.look(1e6, limit=9e6, idle=5.0, after=5.0) is None


def test_a_client_first_seen_while_it_is_delayed_waits_as_long_as_its_delays_were(world: World) -> None:
    assert world.look(1e5, idle=4.0, delay=5.0) is None
    assert world.look(1e5, idle=6.1, delay=5.0, after=2.1) == 0


def test_a_new_delay_shows_that_kafka_holds_the_client_back(world: World) -> None:
    assert world.look(5e5, delay=0.2) == pytest.approx(6.25e5)
    assert world.look(5e5, delay=0.3) is None
    assert world.look(5e5, delay=0.3, after=1.0) is None
    assert world.look(5e5, delay=0.3, after=1.0) == pytest.approx(6.25e5)
    assert world.look(5e5, delay=0.0) == pytest.approx(6.25e5), "Kafka has only forgotten the last delay"


def test_a_client_that_is_no_longer_seen_is_forgotten(world: World) -> None:
    world.look(2e6)
    world.demands.look([], world.now)
    assert world.look(1e5, idle=5) == 0
