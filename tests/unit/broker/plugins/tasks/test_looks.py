"""Looks are published while somebody watches, and else not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from quotahost.broker.plugins.tasks import broker_status as module
from quotahost.broker.plugins.tasks.broker_status import StatusPublisher
from quotahost.kafka import publisher
from quotahost.model import Client
from quotahost.records.look import Answered, BrokerLook, decode
from quotahost.records.watch import VolumeOf, Watch, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.kafka import FakeKafka, FakeThread
from tests.fakes.plugin_context import Clock, context
from tests.unit.cli.top.uses import look, use

ALICE, BOB = Client("alice", "app"), Client("bob", "web")
DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class World:
    def __init__(self, directory: Path) -> None:
        self.kafka: FakeKafka[BrokerLook] = FakeKafka(decode)
        self.clock = Clock()
        (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
        self.broker = FakeBroker({"log.dirs": str(directory)}, brokers={1: False})
        self.broker.looked = look([use("alice"), use("bob")])
        self.broker.explained = {ALICE: ["broker\t42\t1", "state\tfactor\t1.0"]}
        self.context = context(self.broker, "publish-usage")
        self.looks = StatusPublisher(self.context, self.clock)

    def record(self, value: bytes, live: bool = True) -> None:
        self.looks._watchers.record(b"watch", value, live)

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
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    monkeypatch.setattr(module, "Follower", FakeThread)
    made = World(tmp_path)
    monkeypatch.setattr(publisher, "ensure_compacted", made.kafka.ensure)
    monkeypatch.setattr(publisher, "Producer", made.kafka.producer)
    yield made
    made.looks.close()


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


def test_without_the_rights_it_tries_rarely_and_says_so_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.kafka.delivers = DENIED
    assert len(world.run(60)) <= 12
    assert caplog.text.count("this broker's look can't be published") <= 1


def test_a_broker_that_cannot_be_looked_at_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(5)
    world.broker.looked = ConnectionError("no sensors")
    world.watch()
    assert world.run(3) == []
    world.broker.looked = look([use()])
    assert world.run(3)[0].uses
