"""Tests the tasks ``publish-volumes`` and ``cordon``.

``publish-volumes`` publishes the disks' volumes if they are news, and nothing old as news. ``cordon`` cordons log
directories and frees them, and leaves directories that operators cordon to the operators.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from quotahost.api import DiskState
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.plugins.tasks import cordon
from quotahost.broker.plugins.tasks.cordon import ADDED, CORDONED, Cordon
from quotahost.broker.plugins.tasks.publish_volumes import PublishVolumes, has_changed
from quotahost.kafka.admin import Listed
from quotahost.kafka.client import NoAnswer
from quotahost.model import Limit, LimitType, Volume
from quotahost.model.budgets import Budget, Part
from quotahost.records.snapshot import Snapshot, decode
from quotahost.testing.broker import FakeBroker
from tests.fakes.kafka import FakeKafka, Publish
from tests.fakes.plugin_context import Clock, context, monitor, settings

SMALL = Volume("1", "/d", 1_000_000, 100_000)
AT_HALF = Limit(LimitType.CONSUMED_BYTES, 500_000)
GIVEN = {"snapshots__period": "5s", "volumes__period": "250ms", "startup__grace": "30s"}


class World:
    def __init__(self, kafka: FakeKafka[Snapshot]) -> None:
        self.kafka, self.clock, self.broker = kafka, Clock(), FakeBroker(brokers={1: False, 2: False})
        self.disks, self.hangs = DiskState((SMALL,)), False

    def start(self) -> None:
        self.context = context(self.broker, "publish-volumes", clock=self.clock, **GIVEN | {"volumes__period": "1h"})
        self.task = PublishVolumes(self.context, self.clock)
        self.set()

    def set(self, **more: str) -> None:
        """Change properties live."""
        self.context.settings = settings(**GIVEN | more)

    def run(self, seconds: float = 0.25, consumed: int | None = None) -> int:
        """The number of records that the task sends within this time; it runs each 250 ms."""
        before = len(self.kafka.sent)
        if consumed is not None:
            self.disks = DiskState((replace(SMALL, consumed=consumed),))
        for _ in range(round(seconds / 0.25)):
            self.clock.now += 0.25
            if not self.hangs:
                monitor(self.context).look()
            self.task.run()
        return len(self.kafka.sent) - before


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, published: Publish[Snapshot]) -> Iterator[World]:
    made = World(published(decode))
    monkeypatch.setattr(disk_monitor, "read_disks", lambda *_: replace(made.disks, looked_at=datetime.now(UTC)))
    made.start()
    yield made
    made.context.closing.close()


@pytest.mark.proves("proposal-035.topic")
def test_it_publishes_at_the_start_and_then_every_period_also_one_that_is_shortened_live(world: World) -> None:
    assert world.run() == 1
    (snapshot,) = world.kafka.sent
    assert (snapshot.broker, snapshot.volumes) == ("1", (SMALL,))
    assert (world.run(4.75), world.run(0.5)) == (0, 1)
    assert world.kafka.made == [("__quotahost_snapshots", 2, True)], "the topic is looked up only once"
    world.set(snapshots__period="1h", volumes__period="1h", validity="3h")
    assert world.run(10) == 0
    world.set()
    assert world.run() == 1
    world.set(static__storage__hard="500K")
    assert world.run() == 1
    assert world.kafka.sent[-1].hard == AT_HALF, "a live change of a limit is published immediately"
    assert world.task.period <= timedelta(milliseconds=250)


def test_a_budget_that_came_went_or_moved_a_thousandth_is_news(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.set(factor__source="snapshots", budgets="on")
    world.run()
    budgets = monitor(world.context).budgets
    monkeypatch.setattr(budgets, "look", lambda _: None)  # only the test sets the budgets' bytes
    budgets.wanted = {"b": Budget("b", ("t",), 10_000), "zero": Budget("zero", ("t",), 0)}

    def news(**used: int) -> int:
        budgets.parts = {name: Part(octets, frozenset("t")) for name, octets in used.items()}
        return world.run()

    assert [news(b=100), news(b=109), news(b=110), news(b=100)] == [1, 0, 1, 1]
    assert [news(b=100, zero=0), news(b=100, zero=0), news(b=100, zero=1), news(b=100)] == [1, 0, 1, 1]
    assert world.kafka.sent[-1].budgets == (("b", 100),)
    world.hangs = True
    assert news(b=200) == 0, "no news from the same look: the pipeline can't order two such records"
    world.hangs = False
    assert (news(b=200), news(b=200)) == (1, 0)


@pytest.mark.parametrize("known", [True, False])
def test_a_start_waits_for_this_brokers_part_of_budgets_until_others_would_miss_it(world: World, known: bool) -> None:
    world.set(factor__source="snapshots", budgets="on")
    assert world.run(14) == 0, "meanwhile what was said of budgets before the start counts"
    monitor(world.context).budgets.parts = {"b": Part(100, frozenset("t"))} if known else None
    assert (world.run(0.75), world.run()) == ((1, 0) if known else (0, 1))
    assert world.kafka.sent[-1].budgets == ((("b", 100),) if known else None)


def test_the_news_follow_once_a_record_has_arrived_or_is_lost(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.kafka.delivers = ...
    world.run()
    assert world.run(consumed=900_000, seconds=10) == 0
    world.kafka.delivers = None
    assert world.run() == 1
    assert world.kafka.sent[-1].volumes[0].consumed == 900_000
    world.kafka.delivers = KafkaError(KafkaError._MSG_TIMED_OUT)
    assert world.run(10) > 2, "a lost record is sent again"
    assert "the leader of __quotahost_snapshots has confirmed no record in time" in caplog.messages[0]
    assert len(world.kafka.made) > 2, "the topic is looked up each time, since it may be gone"
    assert world.kafka.made[-1] == ("__quotahost_snapshots", 2, False), "the task no longer waits for more brokers"


@pytest.mark.proves("proposal-035.snapshot-time")
def test_snapshots_tell_when_the_look_was_for_half_of_validity(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "quotahost")
    world.run()
    looked_at = world.kafka.sent[0].captured_at
    assert abs((datetime.now(UTC) - looked_at).total_seconds()) < 3600
    world.hangs = True
    assert world.run(30) == 6, "a slow disk doesn't stop the records"
    assert [each.age_ms for each in world.kafka.sent] == [n * 5000 for n in range(7)]
    assert {each.captured_at for each in world.kafka.sent} == {looked_at}, "all records have the time of one look"
    assert world.run(60) == 0
    world.hangs = False
    assert world.run() == 1
    silent = "the disks don't answer, or this broker stood still; no snapshot until they answer"
    assert caplog.messages == [silent, "the disks answer again"]
    latest = world.kafka.sent[-1]
    assert (latest.age_ms, latest.captured_at > looked_at) == (0, True)


def snapshot(*volumes: Volume, offline: tuple[str, ...] = (), hard: Limit | None = None) -> Snapshot:
    return Snapshot("1", datetime(2026, 1, 1, tzinfo=UTC), volumes, hard=hard, offline=offline)


def filled(consumed: int, **more: Any) -> Snapshot:
    return snapshot(replace(SMALL, consumed=consumed, **more))


OTHER, EMPTY = Volume("1", "/e", 100, 1), Volume("1", "/z", 0, 0)


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (snapshot(SMALL), snapshot(SMALL, OTHER), True),
        (snapshot(SMALL, OTHER), snapshot(SMALL), True),
        (snapshot(SMALL, OTHER), snapshot(OTHER, SMALL), False),
        (snapshot(SMALL), snapshot(SMALL, offline=("/e: gone",)), True),
        (snapshot(SMALL), replace(snapshot(SMALL), cluster="c-1"), True),  # the log directories have the id now
        (filled(100_000), filled(100_999), False),
        (filled(100_000), filled(101_000), True),  # a thousandth of the capacity
        (filled(100_000), filled(99_000), True),
        (filled(1), filled(1, capacity=1_000_001), True),
        (snapshot(SMALL), snapshot(SMALL, hard=AT_HALF), True),
        (filled(1), filled(1, soft=AT_HALF), True),
        (filled(499_999, hard=AT_HALF), filled(500_000, hard=AT_HALF), True),
        (filled(500_000, hard=AT_HALF), filled(499_999, hard=AT_HALF), True),
        (filled(500_001, hard=AT_HALF), filled(500_002, hard=AT_HALF), False),
        (filled(500_000, soft=AT_HALF), filled(500_001, soft=AT_HALF), True),  # above the soft limit, not at it
        (filled(999_999, soft=AT_HALF), filled(1_000_000, soft=AT_HALF), True),  # the volume is full
        (snapshot(EMPTY), snapshot(EMPTY), False),
        (filled(1), filled(1, topics=frozenset("a")), True),
        (filled(1, topics=frozenset("a")), filled(1, topics=frozenset("ab")), True),
    ],
)
def test_news_is_a_difference_by_which_others_decide(before: Snapshot, now: Snapshot, news: bool) -> None:
    assert has_changed(before, now) is news


# ---- cordon ----

FULL, SLACK = 90, 10  # bytes of 100
LIMITS = {"static__storage__soft": "50", "static__storage__hard": "95"}
Lists = Mapping[str, Iterable[str]]


class Kafka:
    """The broker's dynamic properties, as Kafka changes them; ``answer`` replaces the answer unless it is a text."""

    def __init__(self) -> None:
        self.cordoned: list[str] = []
        self.added: str | None = None
        self.asked = self.changes = 0
        self.answer: Listed | Exception | str | None = "what is cordoned"

    def listed(self, name: str) -> Listed | None:
        assert name == CORDONED
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return Listed(tuple(self.cordoned)) if isinstance(self.answer, str) else self.answer

    def change(
        self, append: Lists | None = None, subtract: Lists | None = None, put: Mapping[str, str | None] | None = None
    ) -> None:
        self.changes += 1
        self.cordoned += [each for each in (append or {}).get(CORDONED, ()) if each not in self.cordoned]
        self.cordoned = [each for each in self.cordoned if each not in (subtract or {}).get(CORDONED, ())]
        self.added = (put or {})[ADDED]


class Disks:
    """Two volumes, /a with one log directory and /b with two."""

    def __init__(self) -> None:
        self.used = {"/a": SLACK, "/b": SLACK}
        self.age, self.lost = 0.0, False

    def latest(self) -> tuple[float, DiskState | None]:
        volumes = tuple(Volume("1", name, 100, used) for name, used in self.used.items())
        places = () if self.lost else (("/a", "/a"), ("/b", "/b"), ("/b/2", "/b"))
        return self.age, DiskState(volumes, (), places)


class Broker:
    """A broker with the task, the properties that Kafka has stored for it, and its disks."""

    def __init__(self) -> None:
        self.kafka, self.disks, self.clock = Kafka(), Disks(), Clock()
        self.context = context(FakeBroker(), "cordon", Cordon.Section(), self.clock, **LIMITS)
        self.context.open_disks = lambda: self.disks  # type: ignore[assignment,return-value]
        self.restart()

    def restart(self) -> None:
        """Restart the broker, which gets the stored properties."""
        self.task = Cordon(self.context, self.clock)
        self.stored()

    def stored(self) -> None:
        self.task.reconfigure(Cordon.Section.model_validate({"added": self.kafka.added or ""}))

    def run(self, seconds: float = 120) -> list[str]:
        """The cordoned log directories after ``seconds``; the task runs every 10 s."""
        for _ in range(round(seconds / 10)):
            self.clock.now += 10
            self.task.run()
            self.stored()
        return sorted(self.kafka.cordoned)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(cordon, "login", lambda _: Mock())
    monkeypatch.setattr(cordon, "BrokerConfig", lambda *_: made.kafka)
    return made


def test_the_directories_of_a_full_volume_are_cordoned_until_somebody_saw_room_for_a_while(broker: Broker) -> None:
    assert broker.run() == []
    assert broker.kafka.asked == 0, "the task doesn't ask Kafka without a reason"
    broker.disks.used["/b"] = FULL
    assert broker.run() == ["/b", "/b/2"]
    assert broker.kafka.added == "/b,/b/2"
    assert broker.kafka.asked == 2, "the first answer only shows that the broker has read its stored properties"
    broker.restart()
    assert broker.run() == ["/b", "/b/2"]
    broker.disks.used["/b"] = SLACK
    for _ in range(2):
        assert broker.run(50) == ["/b", "/b/2"], "the directories stay cordoned: the volume may fill again soon"
        broker.restart()  # the new task doesn't know how long the volume has had room
    assert broker.run(80) == []
    assert broker.kafka.added is None
    assert broker.kafka.changes == 2
    shown: Any = broker.context.metrics
    assert shown.number("Cordon", "LogDirs") == 0
    broker.context.closing.close()
    assert not shown.shown, "the metric is removed, so it can't show an old value"


def test_what_an_operator_freed_stays_free_until_the_volume_had_room(broker: Broker) -> None:
    broker.disks.used["/a"] = FULL
    broker.run(20)
    broker.kafka.cordoned = []
    assert broker.run() == []
    broker.task = Cordon(broker.context, broker.clock)
    broker.task.run()  # before it gets the stored properties, a moment after its start
    broker.stored()
    assert broker.run() == []
    broker.disks.used["/a"] = SLACK
    broker.run()
    broker.disks.used["/a"] = FULL
    assert broker.run() == ["/a"]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (None, "this Kafka has no cordoned.log.dirs"),
        (Listed(("/b",), elsewhere=True), "--entity-default --delete-config cordoned.log.dirs"),
        (NoAnswer("no right"), "can't be read or changed: no right"),
        ("in shadow", "shadow=all: the task would cordon ['/a']"),
    ],
)
def test_what_keeps_it_from_working_is_logged_once(
    broker: Broker, caplog: pytest.LogCaptureFixture, answer: Listed | Exception | str | None, line: str
) -> None:
    broker.kafka.answer = answer
    broker.context.settings = settings(shadow="all" if answer == "in shadow" else "", **LIMITS)
    broker.disks.used["/a"] = FULL
    assert broker.run(600) == []
    assert [line in each for each in caplog.messages] == [True]
    assert broker.kafka.changes == 0


def test_unknown_disks_change_nothing_nor_where_an_operator_has_cordoned_all(broker: Broker) -> None:
    broker.disks.used["/a"] = FULL
    broker.disks.age = 1e6
    assert broker.run() == []
    broker.kafka.cordoned = ["*"]
    broker.disks.age = 0.0
    assert (broker.run(), broker.kafka.changes) == (["*"], 0)
    broker.kafka.cordoned = []
    assert broker.run(20) == ["/a"]
    broker.disks.lost = True
    assert broker.run() == ["/a"], "an offline directory may be as full as before"
