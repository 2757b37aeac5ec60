"""The task ``publish-usage``: which clients it publishes, with which numbers, and when."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotahost.broker.plugins.cluster_quota import quotas as quotas_module
from quotahost.broker.plugins.cluster_quota import usage as usage_module
from quotahost.broker.plugins.cluster_quota.usage import PublishUsage
from quotahost.kafka import publisher as module
from quotahost.model import ClientUsage, QuotaType
from quotahost.records.usage import ClientKey, Usage, decode
from quotahost.testing.broker import FakeBroker
from quotahost.throttling import SampledRate
from tests.fakes.kafka import FakeKafka, FakeThread
from tests.fakes.plugin_context import Clock, context
from tests.fakes.quotas import change, quota, set_quotas

OWN = {"supplier": "cluster-quota"}


class NoStatus:
    def __init__(self, *_: object) -> None: ...

    def run(self) -> None: ...

    def close(self) -> None: ...


class World:
    def __init__(self, directory: Path) -> None:
        self.kafka: FakeKafka[Usage] = FakeKafka(decode)
        self.clock = Clock()
        (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
        self.broker = FakeBroker({"log.dirs": str(directory)}, brokers={1: False})
        self.context = context(self.broker, "publish-usage", **OWN)
        self.task = PublishUsage(self.context, self.clock)
        self.quotas = self.task._quotas
        set_quotas(self.quotas, quota("alice", None, 3e6), quota("bob", None, 2e6), quota("carol", None, math.inf))

    def run(self, *used: ClientUsage, seconds: float = 0.5) -> int:
        """How many records are sent within this time; runs each half second."""
        before = len(self.kafka.sent)
        for _ in range(round(seconds / 0.5)):
            self.clock.now += 0.5
            self.broker.usages = list(used)
            self.task.run()
        return len(self.kafka.sent) - before


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    monkeypatch.setattr(quotas_module, "Follower", FakeThread)
    monkeypatch.setattr(usage_module, "StatusPublisher", NoStatus)
    made = World(tmp_path)
    monkeypatch.setattr(module, "ensure_compacted", made.kafka.ensure)
    monkeypatch.setattr(module, "Producer", made.kafka.producer)
    yield made
    made.task.close()


def use(
    user: str = "alice", rate: float = 1e6, limit: float = 2e6, idle: float = 0.0, delay: float = 0.0
) -> ClientUsage:
    return ClientUsage(user, "app", QuotaType.PRODUCE, rate, limit, delay, idle)


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
def test_a_tenth_is_news_and_so_is_a_client_that_comes_goes_or_is_held_back(
    world: World, first: ClientUsage, then: ClientUsage, sent: int
) -> None:
    world.run(first)
    assert world.run(then) == sent


def test_a_client_that_is_silent_goes_once_its_rate_has_run_out(world: World) -> None:
    world.run(use())
    assert [world.run(use(idle=idle)) for idle in (0.5, 1.0, 1.5)] == [0, 0, 1]
    assert world.kafka.sent[-1].clients[0].demand == 0
    assert world.run(use(idle=13.0, rate=0.5)) == 1
    assert world.kafka.sent[-1].clients == ()
    assert world.broker.number("Usage", "Clients") == 0


def test_clients_without_a_cluster_wide_quota_are_left_out(world: World) -> None:
    fetched = ClientUsage("alice", "app", QuotaType.FETCH, 1e6, 2e6, 0.0, 0.0)
    world.run(use("carol"), use("dave"), fetched, use("bob"))
    assert [each.key.principal for each in world.kafka.sent[0].clients] == ["bob"]


def test_the_busiest_are_published_or_an_empty_list(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "MOST", 1)
    world.run()  # the broker is one of the cluster
    world.run(use("dave", 9e6), use("bob", 2e6), use("alice", 1e6))
    assert [[each.key.principal for each in usage.clients] for usage in world.kafka.sent] == [[], ["bob"]]


def test_quotas_changed_live_are_published_at_once(world: World) -> None:
    world.run(use())
    change(world.quotas, quota("alice", None, 4e6))
    assert world.run(use()) == 1
    assert world.kafka.sent[-1].clients[0].quota == 4e6


def test_looks_that_take_long_are_made_less_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_: FakeBroker, most: int) -> list[ClientUsage]:
        world.clock.now += 0.2
        return []

    monkeypatch.setattr(FakeBroker, "usage", slow)
    world.run()
    assert world.task.period.total_seconds() == pytest.approx(2.0)


def test_a_topic_of_quotas_that_somebody_deleted_is_made_again(world: World) -> None:
    world.run(use())
    world.kafka.made.clear()
    world.task._publisher.make_topics()
    world.run(use(), seconds=5.5)
    assert "__quotahost_quotas" in [each[0] for each in world.kafka.made]


@pytest.mark.parametrize(("windows", "every", "at_most"), [(2, 0.5, 1.1), (2, 60, 1.3), (11, 0.5, 1.05), (11, 60, 1.1)])
def test_what_records_tell_adds_up_to_what_clients_moved(
    world: World, windows: int, every: float, at_most: float
) -> None:
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
