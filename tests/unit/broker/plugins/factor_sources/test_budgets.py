"""The budgets of the topic as volumes: which are read, and what is known of their use."""

from collections.abc import Iterator
from typing import Any

import pytest

from quotahost.broker.plugins.factor_sources.budgets import Budgets
from quotahost.model.budgets import Budget, Part
from quotahost.records.budgets import encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context, monitor, settings

KEY, ORDERS = b"budgets/orders", Budget("orders", ("orders.*",), 100)


class World:
    def __init__(self) -> None:
        self.broker = FakeBroker()
        given: Any = {"factor__source": "snapshots", "budgets": "on", "budget__soft__share": "0.5"}
        self.context = context(self.broker, **given)
        self.look = self.context.disks.budgets
        self.budgets = Budgets(self.context)
        self.begin()

    def begin(self) -> None:
        """The topic is read from its beginning, with one budget in it."""
        self.budgets.volumes(list)
        self.budgets.record(b"users/alice", b"no budget", False)
        self.budgets.record(KEY, encode(ORDERS), False)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.budgets.close()
    monitor(made.context).close()


def test_a_budget_is_a_volume_with_what_is_used_in_the_cluster_and_its_topics_here(world: World) -> None:
    assert world.budgets.volumes(list) == (), "until the topic is read to its end"
    world.budgets.caught_up()
    world.budgets.volumes(list)
    assert list(world.look.wanted) == ["orders"]
    world.look.parts = {"orders": Part(7, frozenset({"orders.eu"}))}
    assert world.budgets.here() == [("orders", 7)]
    (volume,) = world.budgets.volumes(lambda: [([("orders", 7)], True), ([("orders", 35), ("gone", 1)], True)])
    assert (volume.name, volume.consumed, volume.capacity) == ("orders", 42, 100)
    assert (volume.topics, volume.soft and volume.soft.level) == (frozenset({"orders.eu"}), 50)


def test_the_volumes_are_the_same_object_while_nothing_changes(world: World) -> None:
    world.budgets.caught_up()
    made = world.budgets.volumes(lambda: [([("orders", 7)], True)])
    assert world.budgets.volumes(lambda: [([("orders", 7)], True)]) is made
    assert world.budgets.volumes(lambda: [([("orders", 8)], True)]) is not made


def test_a_refused_record_leaves_what_was_there_and_a_tombstone_removes_it(world: World) -> None:
    world.budgets.caught_up()
    world.budgets.record(KEY, b"{}", True)
    assert world.broker.number("Refused", "Records", "schema") or world.broker.number("Refused", "Records", "version")
    assert world.budgets.volumes(list)[0].capacity == 100
    # Also where the topic is read again, and the record that was good is gone.
    world.budgets.record(KEY, b"{}", False)
    world.budgets.caught_up()
    assert world.budgets.volumes(list)[0].capacity == 100
    world.budgets.record(KEY, None, True)
    assert world.budgets.volumes(list) == ()


def test_switched_off_it_reads_nothing_and_switched_on_again_it_begins_anew(world: World) -> None:
    world.budgets.caught_up()
    on, world.context.settings = world.context.settings, settings()
    assert (world.budgets.volumes(list), world.budgets._follower, dict(world.look.wanted)) == ((), None, {})
    world.context.settings = on
    assert world.budgets.volumes(list) == ()
    world.begin()
    world.budgets.caught_up()
    assert [volume.name for volume in world.budgets.volumes(list)] == ["orders"]
