"""Fixtures: the factor source ``cluster-volumes`` with a world around it."""

from collections.abc import Callable, Iterator

import pytest

from quotahost.api import DiskState
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.plugins.factor_sources import budgets, cluster_record
from tests.fakes.kafka import FakeThread
from tests.fakes.plugin_context import monitor
from tests.unit.broker.plugins.factor_sources.cluster_volumes.world import FULL, OWN, World


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    monkeypatch.setattr(cluster_record, "Follower", FakeThread)
    monkeypatch.setattr(budgets, "Follower", FakeThread)
    monkeypatch.setattr(disk_monitor, "read_disks", lambda *_: DiskState((OWN,)))
    monkeypatch.setattr(disk_monitor, "cluster_id", lambda *_: "c-1")
    made: list[World] = []

    def new(**more: str) -> World:
        made.append(World(**more))
        return made[-1]

    yield new
    for each in made:
        each.source.close()
        monitor(each.context).close()


@pytest.fixture
def world(make: Callable[..., World]) -> World:
    return make()


@pytest.fixture
def begun(world: World) -> World:
    """A record with a full volume came a moment ago."""
    world.started()
    world.publishes(FULL)
    assert world.read().volumes == (OWN, FULL)
    return world
