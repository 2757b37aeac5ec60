"""What this broker's replicas take of the budgets: which count, how often it looks, and what a failure leaves."""

from pathlib import Path

import pytest

from quotahost.broker.disks.budgets import BudgetSizes
from quotahost.model.budgets import Budget, Part
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock

ID = "0123456789abcdef" * 2
ORDERS = {"orders": Budget("orders", ("orders.*",), 100)}


class World:
    def __init__(self, directory: Path, *names: str) -> None:
        for name in names:
            (directory / name).mkdir()
        self.directory, self.broker, self.clock = directory, FakeBroker(), Clock()
        self.broker.sizes = {("orders.eu", 0): (10, True), ("orders.eu", 1): (7, False), ("logs", 0): (5, True)}
        self.sizes = BudgetSizes(lambda replicas: self.broker.replicas(replicas), [str(directory)], self.clock)
        self.sizes.wanted = ORDERS

    def look(self, seconds: float = 1.0) -> dict[str, Part]:
        self.clock.now += seconds
        self.sizes.look()
        return dict(self.sizes.parts)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        tmp_path, "orders.eu-0", "orders.eu-1", "logs-0", f"orders.eu-2.{ID}-delete", f"orders.eu-1.{ID}-future"
    )


def test_the_replicas_of_budgeted_topics_count_and_no_others(world: World) -> None:
    assert world.look() == {"orders": Part(10, frozenset({"orders.eu"}))}


def test_after_a_failover_bytes_count_with_the_new_leader_when_they_no_longer_do_with_the_old_one(world: World) -> None:
    world.look()
    world.broker.sizes["orders.eu", 1] = (7, True)
    assert world.look()["orders"].used == 10
    assert world.look(8.9)["orders"].used == 10
    assert world.look(1.1)["orders"].used == 17
    world.broker.sizes["orders.eu", 1] = (7, False)
    assert world.look()["orders"].used == 10


def test_it_looks_once_a_second_but_at_once_for_other_budgets(world: World) -> None:
    world.look()
    world.broker.sizes["orders.eu", 0] = (20, True)
    assert world.look(0.5)["orders"].used == 10
    assert world.look(0.5)["orders"].used == 20
    world.sizes.wanted = {"logs": Budget("logs", ("logs",), 9)}
    assert world.look(0.1) == {"logs": Part(5, frozenset({"logs"}))}
    world.sizes.wanted = {}
    assert world.look(0.1) == {}


def test_a_look_that_takes_long_is_taken_so_much_more_seldom(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = FakeBroker.replicas

    def slow(broker: FakeBroker, replicas: list[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        world.clock.now += 0.5
        return answer(broker, replicas)

    monkeypatch.setattr(FakeBroker, "replicas", slow)
    world.look()
    world.broker.sizes["orders.eu", 0] = (20, True)
    assert world.look(49)["orders"].used == 10
    assert world.look(1.1)["orders"].used == 20


def test_what_can_not_be_read_counts_as_it_was_last(world: World, caplog: pytest.LogCaptureFixture) -> None:
    known = world.look()
    sizes, world.broker.sizes = world.broker.sizes, {}
    assert world.look() == known
    assert "the last ones count on" in caplog.text
    world.broker.sizes = sizes
    world.sizes._directories = [str(world.directory / "gone")]
    assert world.look() == known


def test_the_largest_topics_are_told_with_their_growth_of_the_last_minutes(world: World) -> None:
    for name in ("orders.us-0", "orders.us-1"):
        (world.directory / name).mkdir()
    world.broker.sizes |= {("orders.us", 0): (30, True)}
    world.look()
    assert world.sizes.largest("orders") == [("orders.us", 30, None), ("orders.eu", 10, None)], (
        "nothing is known of growth"
    )
    world.broker.sizes |= {("orders.us", 0): (630, True), ("orders.us", 1): (900, True)}
    world.look(100)
    # A replica that has come since then has not grown: it was moved here, or is new.
    assert world.sizes.largest("orders") == [("orders.us", 1530, 6.0), ("orders.eu", 10, 0.0)]
    for _ in range(2):
        world.look(300)
    assert world.sizes.largest("orders")[0] == ("orders.us", 1530, 0.0), "what grew longer ago is forgotten"
    assert world.sizes.largest("other") == []


def test_of_a_budget_of_replicas_those_that_follow_count_too(world: World) -> None:
    world.sizes.wanted = {"orders": Budget("orders", ("orders.*",), 100, replicas=True)}
    world.look()
    assert world.sizes.largest("orders") == [("orders.eu", 17, None)]
