"""The task ``publish-usage``: what clients demand, which of them it publishes, with which numbers, and when."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from quotahost.broker.plugins.cluster_quota import usage as usage_module
from quotahost.broker.plugins.cluster_quota.usage import Demands, PublishUsage, key_of
from quotahost.model import ClientUse, QuotaType
from quotahost.records.usage import ClientKey, Usage, decode
from quotahost.testing.broker import FakeBroker
from quotahost.throttling import SampledRate
from tests.fakes.kafka import FakeKafka, Publish
from tests.fakes.plugin_context import Clock, context
from tests.fakes.quotas import change, quota, set_quotas
from tests.unit.cli.top.uses import use as any_use


class World:
    def __init__(self, directory: Path, kafka: FakeKafka[Usage]) -> None:
        self.kafka, self.clock = kafka, Clock()
        (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
        self.broker = FakeBroker({"log.dirs": str(directory)}, brokers={1: False})
        self.context = context(self.broker, "publish-usage", supplier="cluster-quota")
        self.task = PublishUsage(self.context, self.clock)
        self.quotas = self.task._quotas
        set_quotas(self.quotas, quota("alice", None, 3e6), quota("bob", None, 2e6), quota("carol", None, math.inf))

    def run(self, *used: ClientUse, seconds: float = 0.5) -> int:
        """How many records are sent within this time; runs each half second."""
        before = len(self.kafka.sent)
        for _ in range(round(seconds / 0.5)):
            self.clock.now += 0.5
            self.broker.usages = list(used)
            self.task.run()
        return len(self.kafka.sent) - before


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, published: Publish[Usage], tmp_path: Path) -> Iterator[World]:
    monkeypatch.setattr(usage_module, "LooksPublisher", lambda *_: Mock())
    made = World(tmp_path, published(decode))
    yield made
    made.context.closing.close()


def use(user: str = "alice", rate: float = 1e6, **more: Any) -> ClientUse:
    return any_use(user, **{"rate": rate, "idle": 0.0} | more)


def test_it_publishes_at_once_and_then_every_five_seconds(world: World) -> None:
    assert world.run(use()) == 1
    (usage,) = world.kafka.sent
    assert (usage.broker, usage.cluster) == ("1", "abc")
    (one,) = usage.clients
    assert (one.key, one.rate, one.demand, one.quota) == (
        ClientKey("alice", "app", QuotaType.PRODUCE), 1e6, 1.25e6, 3e6,
    )  # fmt: skip
    assert world.run(use(), seconds=4.5) == 0
    assert world.run(use(), seconds=0.5) == 1
    assert [each[0] for each in world.kafka.made] == ["__quotahost_usage", "__quotahost_quotas"]
    assert {"Usage", "ClusterQuotas"} <= {type for type, *_ in world.broker.shown}
    world.context.closing.close()
    assert not {"Usage", "ClusterQuotas"} & {type for type, *_ in world.broker.shown}


@pytest.mark.parametrize(
    ("first", "then", "sent"),
    [
        (use(), use(rate=1.099e6), 0),
        (use(), use(rate=1.1e6), 1),
        (use(), use(rate=9e5), 1),
        (use(), use(rate=1.9e6), 1),  # it wants all now
        (use(), use("bob"), 1),
        (use(rate=100), use(rate=1000), 0),  # a small rate that wavers
    ],
)
def test_what_of_a_clients_use_is_news(world: World, first: ClientUse, then: ClientUse, sent: int) -> None:
    world.run(first)
    assert world.run(then) == sent


def test_a_client_that_is_silent_goes_once_its_rate_has_run_out(world: World) -> None:
    world.run(use())
    assert [world.run(use(idle=idle)) for idle in (0.5, 1.0, 1.5)] == [0, 0, 1]
    assert world.kafka.sent[-1].clients[0].demand == 0
    assert world.run(use(idle=13.0, rate=0.5)) == 1
    assert world.kafka.sent[-1].clients == ()
    assert world.broker.number("Usage", "Clients") == 0


def test_the_busiest_with_a_cluster_wide_quota_are_published(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "MOST", 1)
    world.run()  # the broker is one of the cluster
    fetched = use(quota_type=QuotaType.FETCH)
    world.run(use("dave", 9e6), use("carol"), fetched, use("bob", 2e6), use("alice", 1e6))
    assert [[each.key.principal for each in usage.clients] for usage in world.kafka.sent] == [[], ["bob"]]


def test_quotas_changed_live_are_published_at_once(world: World) -> None:
    world.run(use())
    change(world.quotas, quota("alice", None, 4e6))
    assert world.run(use()) == 1
    assert world.kafka.sent[-1].clients[0].quota == 4e6


def test_looks_that_take_long_are_made_less_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_: FakeBroker, most: int) -> list[ClientUse]:
        world.clock.now += 0.2
        return []

    monkeypatch.setattr(FakeBroker, "usage", slow)
    world.run()
    assert world.task.period.total_seconds() == pytest.approx(2.0)


@pytest.mark.parametrize(("windows", "every", "at_most"), [(2, 0.5, 1.1), (2, 60, 1.3), (11, 0.5, 1.05), (11, 60, 1.1)])
def test_records_add_up_to_what_clients_moved(world: World, windows: int, every: float, at_most: float) -> None:
    rate, moved = SampledRate(windows, 1000), 0
    for half in range(1200):
        now_ms = half * 500
        if half % (2 * every) == 0:
            rate.record(1e5, now_ms)
            moved += 100_000
        idle = half / 2 % every
        world.run(use(rate=rate.measure(now_ms + 499), idle=idle))
    world.run(use(rate=0, idle=60), seconds=30)
    told = sum(client.bytes or 0 for usage in world.kafka.sent for client in usage.clients)
    assert 0.95 <= told / moved <= at_most
    assert world.kafka.sent[-1].clients == (), "it leaves the records once all is told"


# ---- what a client demands ----

WINDOW = 12.0


class Looks:
    def __init__(self) -> None:
        self.demands, self.now = Demands(WINDOW), 100.0

    def look(
        self, rate: float, limit: float | None = 1e6, idle: float = 0.0, delay: float = 0.0, after: float = 0.5
    ) -> float | None:
        self.now += after
        used = use(rate=rate, limit=limit, delay_ms=1000 * delay, idle=idle)
        return self.demands.look([used], self.now)[key_of(used)]


@pytest.fixture
def looks() -> Looks:
    return Looks()


Look = tuple[float, dict[str, Any], float | None]  # a rate, its circumstances, and the demand at that look
COURSES: dict[str, list[Look]] = {
    **{f"near its limit of {limit} it wants all": [(rate, {"limit": limit}, demand)] for rate, limit, demand in (
        (0.0, 1e6, 0.0), (4e5, 1e6, 5e5), (8.9e5, 1e6, 1.1125e6), (9e5, 1e6, None), (3e6, 1e6, None),
        (3e6, None, 3.75e6))},
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


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_the_demand_of_a_client_from_look_to_look(looks: Looks, course: list[Look]) -> None:
    for rate, circumstances, demand in course:
        assert looks.look(rate, **circumstances) == (demand if demand is None else pytest.approx(demand))
    looks.demands.look([], looks.now)
    assert looks.look(1e5, idle=5) == 0, "a client that is no longer seen is forgotten"
