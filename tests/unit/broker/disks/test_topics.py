"""Tests the topics on a volume and the bytes of budgets: which directories are replicas, and when a look reads them."""

from pathlib import Path

import pytest

from quotahost.broker.disks import file_stores
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.disks import topics as listing
from quotahost.broker.disks.budgets import BudgetSizes
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.broker.disks.topics import LIST_EVERY, topics
from quotahost.model.budgets import Budget, Part
from quotahost.model.volumes import MAX_TOPICS
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, settings

ID = "0123456789abcdef" * 2


def made(directory: Path, *names: str) -> str:
    for name in names:
        (directory / name).mkdir(parents=True)
    return str(directory)


REPLICAS = {
    "orders-0": "orders", "my-orders.v1_x-12": "my-orders.v1_x", "5-5": "5", f"moving-3.{ID}-future": "moving",
    f"a-0.{ID}-delete-7": f"a-0.{ID}-delete", "__consumer_offsets-49": "__consumer_offsets",
    "t" * 249 + "-0": "t" * 249,
}  # fmt: skip
OTHERS = [
    f"gone-3.{ID}-delete", f"lost-3.{ID}-stray", "__cluster_metadata-0", "t" * 250 + "-0", "orders", "orders-x", "-0",
    "lost+found", "line\nbreak-0", "orders-0\n", "b\udcff-0",  # the last name is no UTF-8
]  # fmt: skip


@pytest.mark.parametrize(("name", "topic"), [*REPLICAS.items(), *((name, None) for name in OTHERS)])
def test_only_a_directory_named_as_a_replica_tells_its_topic(tmp_path: Path, name: str, topic: str | None) -> None:
    assert topics([made(tmp_path, name)]) == frozenset([topic] if topic else ())


def test_what_can_not_be_told_whole_stands_for_all_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = made(tmp_path / "1", "a-0", "a-1"), made(tmp_path / "2", "a-2", "b-0")
    assert topics([one, other]) == frozenset("ab"), "the two directories of a volume make one set"
    assert topics([one, str(tmp_path / "gone")]) is None
    many = made(tmp_path / "many", "__cluster_metadata-0", *(f"t{n}-0" for n in range(MAX_TOPICS)))
    assert len(topics([many]) or ()) == MAX_TOPICS
    made(tmp_path / "many", "one.more-0")
    assert topics([many]) is None
    monkeypatch.setattr(listing, "MAX_ENTRIES", 2)
    assert topics([one]) == frozenset("a")
    made(tmp_path / "1", "junk")
    assert topics([one]) is None, "a directory that isn't read to its end stands for all topics"


def test_topics_are_listed_above_soft_only_and_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, directory = Clock(), made(tmp_path, "a-0")
    (volume,) = file_stores.read_disks("1", [directory]).volumes
    in_force, broker = [settings()], FakeBroker({"log.dirs": directory})
    monitor = DiskMonitor(broker, broker, 1, lambda: in_force[0], clock)

    def seen(**limit: int) -> frozenset[str] | None:
        in_force[0] = settings(**{f"static__storage__{side}": str(level) for side, level in limit.items()})
        monitor.look()
        (volume,) = monitor.known().volumes
        return volume.topics

    assert seen(soft=volume.capacity) is None
    assert seen(soft=1) == frozenset("a")
    made(tmp_path, "b-0")
    clock.now += LIST_EVERY / 2
    assert seen(soft=1) == frozenset("a")
    clock.now += LIST_EVERY / 2
    assert seen(soft=1) == frozenset("ab")
    assert seen(soft=volume.capacity) is None
    # Near a hard limit, topics are listed, too: otherwise a PAUSE that holds below it would be for all clients.
    assert seen(hard=volume.consumed * 102 // 100) == frozenset("ab")
    assert seen(hard=volume.consumed * 110 // 100) is None
    monkeypatch.setattr(disk_monitor, "topics", lambda _: setattr(clock, "now", clock.now + 7))
    seen(soft=1)
    assert monitor.latest()[0] == 7, "a slow listing doesn't make the numbers look younger"


# ---- the bytes of budgets on this broker ----


ORDERS = {"orders": Budget("orders", ("orders.*",), 100)}


class World:
    def __init__(self, directory: Path) -> None:
        made(directory, "orders.eu-0", "orders.eu-1", "logs-0", f"orders.eu-2.{ID}-delete", f"orders.eu-1.{ID}-future")
        self.directory, self.broker, self.clock, self.processor = directory, FakeBroker(), Clock(), Clock()
        self.broker.sizes = {("orders.eu", 0): (10, True), ("orders.eu", 1): (7, False), ("logs", 0): (5, True)}
        self.sizes = BudgetSizes(lambda replicas: self.broker.replicas(replicas), self.clock, self.processor)
        self.directories = [str(directory)]
        self.sizes.wanted = ORDERS

    def look(self, seconds: float = 1.0) -> dict[str, Part]:
        self.clock.now += seconds
        self.sizes.look(self.directories)
        return dict(self.sizes.parts or {})


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_bytes_of_leaders_count_or_those_of_all_replicas(world: World) -> None:
    made(world.directory, "orders.us-0")
    world.broker.sizes |= {("orders.us", 0): (3, False)}
    leaders, all_of_them = Budget("l", ("orders.*",), 100), Budget("r", ("orders.eu", "orders.*"), 100, replicas=True)
    followed, nowhere = Budget("f", ("orders.us",), 1), Budget("n", ("payments",), 1)
    world.sizes.wanted = {budget.name: budget for budget in (leaders, all_of_them, followed, nowhere)}
    made(world.directory, "payments-0")  # Kafka doesn't know this replica
    parts = world.look()
    assert {name: part.used for name, part in parts.items()} == {"l": 10, "r": 20, "f": 0}
    assert parts["l"].topics == parts["r"].topics == {"orders.eu", "orders.us"}


#: Steps: a replica, whether this broker leads it from now on, a pause in seconds, and the bytes that count afterwards.
MOVES: dict[str, list[tuple[int, bool, float, int]]] = {
    "a new leader counts once the old one no longer does": [(1, True, 1, 10), (1, True, 8.9, 10), (1, True, 1.1, 17)],
    "the old leader counts for the same time": [(0, False, 1, 10), (0, False, 7, 10), (0, False, 1.1, 0)],
    "a leader that loses its role for a moment keeps counting": [(0, leads, 6, 10) for leads in (False, True) * 6],
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_whoever_leads_a_replica_its_bytes_count_once(world: World, moves: list[tuple[int, bool, float, int]]) -> None:
    world.look()
    for replica, leads, seconds, used in moves:
        world.broker.sizes["orders.eu", replica] = (world.broker.sizes["orders.eu", replica][0], leads)
        assert world.look(seconds)["orders"].used == used


def test_it_looks_twice_a_second_or_for_news_and_seldom_for_much(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.look() == {"orders": Part(10, frozenset({"orders.eu"}))}
    world.broker.sizes["orders.eu", 0] = (20, True)
    assert world.look(0.4)["orders"].used == 10
    assert world.look(0.1)["orders"].used == 20
    world.sizes.wanted = {"logs": Budget("logs", ("logs",), 9)}
    assert world.look(0.1) == {"logs": Part(5, frozenset({"logs"}))}
    world.sizes.wanted = {}
    assert world.look(0.1) == {}
    answer = FakeBroker.replicas

    def slow(broker: FakeBroker, replicas: list[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        world.clock.now += 0.5
        world.processor.now += working
        return answer(broker, replicas)

    monkeypatch.setattr(FakeBroker, "replicas", slow)
    world.broker.sizes |= {("orders.us", number): (0, True) for number in range(1_000)}
    made(world.directory, *(f"orders.us-{number}" for number in range(1_000)))
    world.sizes.wanted, working = ORDERS, 0.0
    world.look()
    for used in (30, 40, 50):  # each look waits for the processor, and Java works for 10 ms, perhaps in another process
        world.broker.sizes["orders.eu", 0] = (used, True)
        assert [world.look(seconds)["orders"].used for seconds in (0.9, 0.2)] == [used - 10, used]
    working = 0.4
    world.look(1.1)
    world.broker.sizes["orders.eu", 0] = (60, True)
    assert [world.look(seconds)["orders"].used for seconds in (40, 1.1)] == [50, 60]


def test_what_can_not_be_read_counts_as_it_was_last(world: World, caplog: pytest.LogCaptureFixture) -> None:
    known = world.look()
    sizes, world.broker.sizes = world.broker.sizes, {}
    assert world.look(9.9) == known
    assert not caplog.text, "a stopping broker has no sizes for a moment, so nothing is logged"
    assert world.look() == known
    assert "the last known ones stay" in caplog.text
    world.broker.sizes = sizes | {("orders.eu", 0): (20, True)}
    world.directories.append(str(world.directory / "gone"))
    assert world.look() == known
    del world.directories[1]
    assert world.look() == {"orders": Part(20, frozenset({"orders.eu"}))}, "an offline directory isn't waited for"


def test_the_largest_topics_are_told_with_their_growth_of_the_last_minutes(world: World) -> None:
    made(world.directory, "orders.us-0", "orders.us-1")
    world.broker.sizes |= {("orders.us", 0): (30, True)}
    world.look()
    assert world.sizes.largest("orders") == [("orders.us", 30, None), ("orders.eu", 10, None)], "no growth is known yet"
    world.broker.sizes |= {("orders.us", 0): (630, True), ("orders.us", 1): (900, True)}
    world.look(100)
    # A replica that came later has no growth, because it was moved here or is new.
    assert world.sizes.largest("orders") == [("orders.us", 1530, 6.0), ("orders.eu", 10, 0.0)]
    for _ in range(2):
        world.look(300)
    assert world.sizes.largest("orders")[0] == ("orders.us", 1530, 0.0), "older growth is forgotten"
    assert world.sizes.largest("other") == []
