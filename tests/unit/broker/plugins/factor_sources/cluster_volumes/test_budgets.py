"""Budgets of storage by the pipeline's sums."""

from collections.abc import Callable
from typing import Any

import pytest

from quotahost.model.budgets import Budget
from tests.unit.broker.plugins.factor_sources.cluster_volumes.world import EMPTY, World

BY_NAME = {"orders": Budget("orders", ("orders.*",), 100), "all": Budget("all", ("*",), 100, replicas=True)}


@pytest.fixture
def world(make: Callable[..., World]) -> World:
    world = make(budgets="on")
    world.started()
    followed: Any = world.source._budgets
    followed.by_name = BY_NAME
    return world


def used(world: World) -> dict[str, int]:
    return {volume.name: volume.consumed for volume in world.read().budgets}


def test_the_record_s_sums_count_of_brokers_out_of_service_those_of_replicas_alone(world: World) -> None:
    assert used(world) == {"orders": 0, "all": 0}, "nothing is known yet"
    world.publishes(EMPTY, budgets=(("orders", 40, 7), ("all", 50, 8), ("gone", 1, 0)))
    assert used(world) == {"orders": 40, "all": 58}


def test_an_older_pipeline_is_told_once_and_slows_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.publishes(EMPTY)
    assert used(world) == used(world) == {"orders": 0, "all": 0}
    assert caplog.text.count("the pipeline is older and doesn't sum them") == 1


def test_while_the_standby_answers_its_sums_count(world: World) -> None:
    world.publishes(EMPTY, budgets=(("orders", 40, 0),))
    world.passes(31)
    assert used(world)["orders"] == 40
    world.standby.answer = world.read().__class__((), budgets=())
    world.passes(30)
    assert used(world) == {}
