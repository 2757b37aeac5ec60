"""Looks are published while somebody watches, and an opened volume is measured on a thread of its own."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.system.waiting import eventually
from quotahost.api import DiskState
from quotahost.broker.plugins.tasks import publish_looks
from quotahost.broker.plugins.tasks.publish_looks import LooksPublisher, OpenedVolumes
from quotahost.model import Client
from quotahost.model.use import MeasuredVolume
from quotahost.records.look import Answered, BrokerLook, decode
from quotahost.records.watch import VolumeOf, Watch, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.kafka import FakeKafka, Publish
from tests.fakes.plugin_context import Clock, context
from tests.fakes.quotas import follower
from tests.unit.cli.top.uses import look, use

ALICE, BOB = Client("alice", "app"), Client("bob", "web")


class World:
    def __init__(self, directory: Path, kafka: FakeKafka[BrokerLook]) -> None:
        self.kafka, self.clock = kafka, Clock()
        (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
        self.broker = FakeBroker({"log.dirs": str(directory)}, brokers={1: False})
        self.broker.looked = look([use("alice"), use("bob")])
        self.broker.explained = {ALICE: ["broker\t42\t1", "state\tfactor\t1.0"]}
        self.context = context(self.broker, "publish-usage")
        self.looks = LooksPublisher(self.context, self.clock)

    def record(self, value: bytes, live: bool = True) -> None:
        follower(self.looks).take(b"watch", value, live)

    def watch(self, seconds: int = 30, client: Client | None = None, watcher: str = "me") -> None:
        self.record(encode(Watch(watcher, seconds, client)))

    def run(self, seconds: float = 0.5) -> list[BrokerLook]:
        """What is sent within this time; runs each half second."""
        before = len(self.kafka.sent)
        for _ in range(round(seconds / 0.5)):
            self.clock.now += 0.5
            self.looks.run()
        return self.kafka.sent[before:]


@pytest.fixture
def world(published: Publish[BrokerLook], tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, published(decode))
    yield made
    made.context.closing.close()


def test_while_somebody_watches_it_publishes_every_two_seconds_and_then_one_look_without_clients(world: World) -> None:
    (first,) = world.run(60)
    assert (first.broker, first.cluster, first.uses, first.watched) == ("1", "abc", (), False), "once at its start"
    assert [each[0] for each in world.kafka.made] == ["__quotahost_looks", "__quotahost_watch"]
    world.watch()
    (first,) = world.run()  # at once
    assert ([each.user for each in first.uses], first.watched) == (["alice", "bob"], True)
    assert len(world.run(10)) == 5
    shown = world.run(25)
    assert 9 <= len(shown) <= 10
    assert (shown[-1].uses, shown[-1].watched) == ((), False)
    assert world.run(60) == []


def test_who_leaves_ends_it_unless_another_one_watches(world: World) -> None:
    world.run(5)
    world.watch(watcher="a")
    world.watch(watcher="b")
    world.watch(0, watcher="a")
    assert world.run(4)[-1].uses
    world.watch(0, watcher="b")
    assert not world.run(4)[-1].uses
    assert world.run(60) == []


def test_a_question_is_answered_at_once_and_only_while_it_is_asked(world: World) -> None:
    world.run(5)
    world.watch()
    world.run(2.5)
    world.watch(client=ALICE)
    (answered,) = world.run()
    assert answered.answers == (Answered("me", ("broker\t42\t1", "state\tfactor\t1.0")),)
    world.watch()
    assert world.run()[0].answers == ()


def test_old_records_and_those_of_strangers_are_no_reason_to_publish(world: World) -> None:
    world.run(5)
    world.record(encode(Watch("me", 30)), live=False)
    world.record(b"{}")
    world.record(b"x" * 10)
    world.record(encode(Watch("me", 30)).replace(b"30", b"3000000"))
    assert world.run(30) == []
    assert world.broker.number("Refused", "Records", "schema") == 1.0
    # However many watch, one look is for all of them, and those who are too many get none of their own.
    for number in range(1000):
        world.watch(watcher=str(number), client=ALICE)
    found = world.run(4)
    assert len(found) <= 3
    assert len(found[0].answers) == 4


@pytest.mark.proves("faults.watchers")
def test_whoever_asks_last_is_answered_in_a_crowd(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(5)
    for number in range(16):
        world.watch(watcher=f"invented-{number}", client=BOB)
    world.watch(watcher="operator", client=ALICE)
    world.record(encode(Watch("other", 30, volume=VolumeOf("1", "/dev/sdb"))))
    assert "operator" in [answer.watcher for answer in world.run()[0].answers]
    assert world.broker.number("Refused", "Records", "crowd") == 2.0
    assert caplog.text.count("more than 16 watch: the newest questions are answered") == 1


def test_who_has_left_displaces_nobody(world: World) -> None:
    for number in range(16):
        world.watch(watcher=str(number))
        world.watch(0, watcher=str(number))
    world.watch(watcher="operator", client=ALICE)
    assert [answer.watcher for answer in world.run()[0].answers] == ["operator"]
    assert world.broker.number("Refused", "Records", "crowd") is None


def test_a_broker_that_cannot_be_looked_at_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(5)
    world.broker.looked = ConnectionError("no sensors")
    world.watch()
    assert world.run(3) == []
    world.broker.looked = look([use()])
    assert world.run(3)[0].uses


# ---- what fills an opened volume ----


def volumes(
    sleep: Callable[[float], object], clock: Callable[[], float] = time.monotonic, **places: Path
) -> OpenedVolumes:
    """Measures volumes of these names, each of which is a directory."""
    given = context(FakeBroker(), "publish-usage")
    state = DiskState((), (), tuple((str(place), name) for name, place in places.items()))
    given.open_disks = lambda: cast("Any", SimpleNamespace(latest=lambda: (0.0, state)))
    return OpenedVolumes(given, sleep, clock)


def topic(directory: Path) -> Path:
    log = directory / "orders-0" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 8192)
    return log


def measured(opened: OpenedVolumes, *names: str) -> Sequence[MeasuredVolume]:
    return eventually(lambda: found if len(found := opened.of(names)) == len(names) else None)


def test_what_fills_a_volume_is_told_once_it_is_measured(tmp_path: Path) -> None:
    log, goes_on = topic(tmp_path), threading.Event()

    def sleep(seconds: float) -> None:
        goes_on.wait(30)
        log.write_bytes(b"x" * 16384)

    opened = volumes(sleep, full=tmp_path)
    assert [*opened.of(["full"]), *opened.of(["full"])] == [], "it waits for no disk"
    goes_on.set()
    (found,) = measured(opened, "full")
    assert (found.name, found.directories) == ("full", [str(tmp_path)])
    assert found.capacity > found.consumed > 0
    assert [(each.name, each.written > 0) for each in found.topics] == [("orders", True)]
    assert opened.of(["full"])[0] is found, "as long as it is asked for"
    opened.of([])
    assert opened.of(["full"]) == []
    opened._closing.set()


def test_after_a_volume_that_takes_a_core_for_long_it_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic(tmp_path)
    clock = Clock()
    monkeypatch.setattr(time, "thread_time", lambda: 1.5)
    opened = volumes(lambda _: None, clock, full=tmp_path)
    measured(opened, "full")
    opened.of([])
    clock.now += 29
    assert opened.of(["full"]) == []
    assert not opened._running
    clock.now += 1
    measured(opened, "full")


def test_several_are_measured_one_after_the_other(tmp_path: Path) -> None:
    topic(tmp_path / "1")
    topic(tmp_path / "2")
    goes_on = threading.Event()
    opened = volumes(lambda _: goes_on.wait(30), a=tmp_path / "1", b=tmp_path / "2")
    assert [*opened.of(["a", "b"]), *opened.of(["b", "a"])] == []
    # That of another test may be about to end.
    eventually(lambda: [each.name for each in threading.enumerate()].count("quotahost-opened-volume") == 1)
    goes_on.set()
    assert [each.name for each in measured(opened, "a", "b")] == ["a", "b"]


def test_a_disk_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic(tmp_path / "sound")
    clock, back = Clock(), threading.Event()

    def measure(name: str, *arguments: Any) -> Any:
        assert name == "sound" or back.wait(30)
        return MeasuredVolume(name, 1, 1, [], 1.0, 0.0, ()), None

    monkeypatch.setattr(publish_looks, "measure", measure)
    opened = volumes(lambda _: None, clock, dead=tmp_path, sound=tmp_path / "sound")
    assert opened.of(["dead", "sound"]) == []
    assert opened.of(["sound", "dead"]) == []
    clock.now += 30
    assert [each.name for each in eventually(lambda: opened.of(["dead", "sound"]))] == ["sound"]
    clock.now += 3600
    back.set()
    assert [each.name for each in measured(opened, "dead", "sound")] == ["dead", "sound"]
    opened.of(["dead"])
    clock.now += 5
    measured(opened, "dead", "sound")


@pytest.mark.parametrize("name", ["gone", "unknown"])
def test_of_a_volume_that_cannot_be_read_it_tells_why(tmp_path: Path, name: str) -> None:
    (found,) = measured(volumes(lambda _: None, gone=tmp_path / "none"), name)
    assert (found.name, found.topics) == (name, ())
    assert found.unread
