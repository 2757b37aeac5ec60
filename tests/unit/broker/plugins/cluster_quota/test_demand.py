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


Look = tuple[float, dict[str, float], float | None]  # a rate, its circumstances, and the demand at that look
COURSES: dict[str, list[Look]] = {
    "it asks now and then": [(0, {}, 0), (4e5, {"idle": 0.9, "after": 1.0}, 5e5)],
    "it asked nothing for a second": [
        (8e5, {}, 1e6), (8e5, {"idle": 0.5}, 1e6), (8e5, {"idle": 1.2, "after": 0.7}, 0),
    ],
    "it waits out its throttle time and is silent a second later": [
        (0, {}, 0), (2e6, {}, None),  # (2 - 1) / 1 x 12 s
        *((1e5, {"idle": float(waited), "after": 1.0}, None) for waited in range(1, 13)),
        (1e5, {"idle": 13.1, "after": 1.1}, 0),
    ],
    "a limit that is lowered while it is silent makes it no less silent": [
        (0, {}, 0), (1e6, {"limit": 3e6}, 1.25e6), (1e6, {"limit": 3e6, "idle": 1.5, "after": 1.5}, 0),
        (9.5e5, {"limit": 3e5, "idle": 2.0}, 0),
    ],
    "a limit that is raised while it waits changes nothing about its wait": [
        (0, {}, 0), (2e6, {"limit": 1e6}, None), (1e6, {"limit": 9e6, "idle": 5.0, "after": 5.0}, None),
    ],
    "first seen while it is delayed it waits as long as its delays were": [
        (1e5, {"idle": 4.0, "delay": 5.0}, None), (1e5, {"idle": 6.1, "delay": 5.0, "after": 2.1}, 0),
    ],
    "a new delay shows that Kafka holds it back, and none that Kafka has forgotten the last one": [
        (5e5, {"delay": 0.2}, 6.25e5), (5e5, {"delay": 0.3}, None), (5e5, {"delay": 0.3, "after": 1.0}, None),
        (5e5, {"delay": 0.3, "after": 1.0}, 6.25e5), (5e5, {"delay": 0.0}, 6.25e5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("looks", COURSES.values(), ids=COURSES)
def test_the_demand_of_a_client_from_look_to_look(world: World, looks: list[Look]) -> None:
    for rate, circumstances, demand in looks:
        assert world.look(rate, **circumstances) == (demand if demand is None else pytest.approx(demand))


def test_a_client_that_is_no_longer_seen_is_forgotten(world: World) -> None:
    world.look(2e6)
    world.demands.look([], world.now)
    assert world.look(1e5, idle=5) == 0
