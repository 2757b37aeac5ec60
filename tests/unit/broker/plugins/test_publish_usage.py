"""Tests the task ``publish-usage``: clients' demands, which clients it publishes, with which numbers, and when.

The task publishes looks while somebody watches, and measures an opened volume on a thread of its own.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from harness.system.waiting import eventually
from quotahost.api import DiskState
from quotahost.broker.plugins.cluster_quota import usage as usage_module
from quotahost.broker.plugins.cluster_quota.usage import Demands, PublishUsage, by_client
from quotahost.broker.plugins.tasks import publish_looks
from quotahost.broker.plugins.tasks.publish_looks import LooksPublisher, OpenedVolumes
from quotahost.model import Client, ClientUse, QuotaType
from quotahost.model.use import MeasuredVolume, VolumeUse
from quotahost.records import look as look_records
from quotahost.records import usage as usage_records
from quotahost.records.look import Answered
from quotahost.records.usage import ClientKey
from quotahost.records.watch import VolumeOf, Watch, encode
from quotahost.testing.broker import FakeBroker
from quotahost.throttling import SampledRate
from tests.fakes.kafka import FakeKafka, Publish
from tests.fakes.plugin_context import Clock, context, fails
from tests.fakes.quotas import change, follower, quota, set_quotas
from tests.unit.cli.top.uses import look
from tests.unit.cli.top.uses import use as any_use


class World:
    """A task of broker 1, the records that it sends, and its clock."""

    task: Any

    def __init__(self, directory: Path, kafka: FakeKafka[Any], **given: str) -> None:
        self.kafka, self.clock = kafka, Clock()
        (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
        self.broker = FakeBroker({"log.dirs": str(directory)}, brokers={1: False})
        self.context = context(self.broker, "publish-usage", **given)

    def passes(self, seconds: float) -> list[Any]:
        """The records that the task sends within this time; it runs each half second."""
        before = len(self.kafka.sent)
        for _ in range(round(seconds / 0.5)):
            self.clock.now += 0.5
            self.task.run()
        return self.kafka.sent[before:]


class Usages(World):
    def __init__(self, directory: Path, kafka: FakeKafka[Any]) -> None:
        super().__init__(directory, kafka, supplier="cluster-quota")
        self.task = PublishUsage(self.context, self.clock)
        self.quotas = self.task._quotas
        set_quotas(self.quotas, quota("alice", None, 3e6), quota("bob", None, 2e6), quota("carol", None, math.inf))

    def run(self, *used: ClientUse, seconds: float = 0.5) -> int:
        """The number of records that the task sends within this time."""
        self.broker.usages = list(used)
        return len(self.passes(seconds))


@pytest.fixture
def usages(monkeypatch: pytest.MonkeyPatch, published: Publish[Any], tmp_path: Path) -> Iterator[Usages]:
    monkeypatch.setattr(usage_module, "LooksPublisher", lambda *_: Mock())
    made = Usages(tmp_path, published(usage_records.decode))
    yield made
    made.context.closing.close()


def use(user: str = "alice", rate: float = 1e6, **more: Any) -> ClientUse:
    return any_use(user, **{"rate": rate, "idle": 0.0} | more)


def test_it_publishes_at_once_and_then_every_five_seconds(usages: Usages) -> None:
    assert usages.run(use()) == 1
    (usage,) = usages.kafka.sent
    assert (usage.broker, usage.cluster) == ("1", "abc")
    (one,) = usage.clients
    assert (one.key, one.rate, one.demand, one.quota) == (
        ClientKey("alice", "app", QuotaType.PRODUCE), 1e6, 1.25e6, 3e6,
    )  # fmt: skip
    assert (usages.run(use(), seconds=4.5), usages.run(use())) == (0, 1)
    change(usages.quotas, quota("alice", None, 4e6))
    assert usages.run(use()) == 1, "a live change of a quota is published immediately"
    assert usages.kafka.sent[-1].clients[0].quota == 4e6
    assert {"Usage", "ClusterQuotas"} <= {type for type, *_ in usages.broker.shown}
    usages.context.closing.close()
    assert not {"Usage", "ClusterQuotas"} & {type for type, *_ in usages.broker.shown}


@pytest.mark.parametrize(("was_read", "more"), [(False, ["__quotahost_quotas"]), (True, [])])
def test_it_creates_the_quotas_topic_only_if_it_was_never_read(usages: Usages, was_read: bool, more: list[str]) -> None:
    follower(usages.quotas).has_read = was_read
    usages.run()
    assert [each[0] for each in usages.kafka.made] == ["__quotahost_usage", *more]


@pytest.mark.parametrize(
    ("first", "then", "sent"),
    [
        (use(), use(rate=1.099e6), 0),
        (use(), use(rate=1.1e6), 1),
        (use(), use(rate=9e5), 1),
        (use(), use(rate=1.9e6), 1),  # the client demands all now
        (use(), use("bob"), 1),
        (use(rate=100), use(rate=1000), 0),  # a small rate that varies
    ],
)
def test_what_of_a_clients_use_is_news(usages: Usages, first: ClientUse, then: ClientUse, sent: int) -> None:
    usages.run(first)
    assert usages.run(then) == sent


def test_the_busiest_with_a_cluster_wide_quota_are_published(usages: Usages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "MOST", 1)
    usages.run()  # the first record, without clients
    fetched = use(quota_type=QuotaType.FETCH)
    usages.run(use("dave", 9e6), use("carol"), fetched, use("bob", 2e6), use("alice", 1e6))
    assert [[each.key.principal for each in usage.clients] for usage in usages.kafka.sent] == [[], ["bob"]]


def test_looks_that_take_long_are_made_less_often(usages: Usages, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_: FakeBroker, most: int) -> list[ClientUse]:
        usages.clock.now += 0.2
        return []

    monkeypatch.setattr(FakeBroker, "usage", slow)
    usages.run()
    assert usages.task.period.total_seconds() == pytest.approx(2.0)


@pytest.mark.parametrize(("windows", "every", "at_most"), [(2, 0.5, 1.1), (2, 60, 1.3), (11, 0.5, 1.05), (11, 60, 1.1)])
def test_records_add_up_to_what_clients_moved(usages: Usages, windows: int, every: float, at_most: float) -> None:
    rate, moved = SampledRate(windows, 1000), 0
    for half in range(1200):
        now_ms = half * 500
        if half % (2 * every) == 0:
            rate.record(1e5, now_ms)
            moved += 100_000
        idle = half / 2 % every
        usages.run(use(rate=rate.measure(now_ms + 499), idle=idle))
    usages.run(use(rate=0, idle=60), seconds=30)
    told = sum(client.bytes or 0 for usage in usages.kafka.sent for client in usage.clients)
    assert 0.95 <= told / moved <= at_most
    assert usages.kafka.sent[-1].clients == (), "the client leaves the records when all its bytes are reported"


# ---- clients' demands ----

Look = tuple[float, dict[str, Any], float | None]  # a rate, other values, and the demand at this look
COURSES: dict[str, list[Look]] = {
    **{f"near its limit of {limit} a client wants all": [(rate, {"limit": limit}, demand)] for rate, limit, demand in (
        (0.0, 1e6, 0.0), (4e5, 1e6, 5e5), (8.9e5, 1e6, 1.1125e6), (9e5, 1e6, None), (3e6, 1e6, None),
        (3e6, None, 3.75e6))},
    "the client asks now and then": [(0, {}, 0), (4e5, {"idle": 0.9, "after": 1.0}, 5e5)],
    "the client asked nothing for a second": [
        (8e5, {}, 1e6), (8e5, {"idle": 0.5}, 1e6), (8e5, {"idle": 1.2, "after": 0.7}, 0),
    ],
    "the client waits out its throttle time and is silent a second later": [
        (0, {}, 0), (2e6, {}, None),  # throttled for (2 - 1) / 1 x 12 s
        *((1e5, {"idle": float(waited), "after": 1.0}, None) for waited in range(1, 13)),
        (1e5, {"idle": 13.1, "after": 1.1}, 0),
    ],
    "a silent client stays silent if its limit is lowered": [
        (0, {}, 0), (1e6, {"limit": 3e6}, 1.25e6), (1e6, {"limit": 3e6, "idle": 1.5, "after": 1.5}, 0),
        (9.5e5, {"limit": 3e5, "idle": 2.0}, 0),
    ],
    "a waiting client still waits if its limit is raised": [
        (0, {}, 0), (2e6, {"limit": 1e6}, None), (1e6, {"limit": 9e6, "idle": 5.0, "after": 5.0}, None),
    ],
    "a client that is first seen while it is delayed waits as long as its delays were": [
        (1e5, {"idle": 4.0, "delay": 5.0}, None), (1e5, {"idle": 6.1, "delay": 5.0, "after": 2.1}, 0),
    ],
    "a new delay shows that Kafka holds the client back, and no delay that Kafka forgot the last one": [
        (5e5, {"delay": 0.2}, 6.25e5), (5e5, {"delay": 0.3}, None), (5e5, {"delay": 0.3, "after": 1.0}, None),
        (5e5, {"delay": 0.3, "after": 1.0}, 6.25e5), (5e5, {"delay": 0.0}, 6.25e5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_the_demand_of_a_client_from_look_to_look(course: list[Look]) -> None:
    demands, now = Demands(12.0), 100.0
    for rate, circumstances, demand in course:
        given: dict[str, Any] = {"limit": 1e6, "idle": 0.0, "delay": 0.0, "after": 0.5} | circumstances
        now += given.pop("after")
        used = use(rate=rate, delay_ms=1000 * given.pop("delay"), **given)
        assert list(demands.look(by_client([used]), now).values()) == [demand and pytest.approx(demand)]
    demands.look({}, now)
    silent = use(rate=1e5, limit=1e6, idle=5)
    assert list(demands.look(by_client([silent]), now).values()) == [0], "a client that is no longer seen is forgotten"


# ---- looks, while somebody watches ----

ALICE, BOB = Client("alice", "app"), Client("bob", "web")


class Looks(World):
    def __init__(self, directory: Path, kafka: FakeKafka[Any]) -> None:
        super().__init__(directory, kafka)
        self.broker.looked = look([any_use("alice"), any_use("bob")])
        self.broker.explained = {ALICE: ["broker\t42\t1", "state\tfactor\t1.0"]}
        self.task = LooksPublisher(self.context, self.clock)

    def record(self, value: bytes, live: bool = True) -> None:
        follower(self.task).take(b"watch", value, live)

    def watch(self, seconds: int = 30, client: Client | None = None, watcher: str = "me") -> None:
        self.record(encode(Watch(watcher, seconds, client)))


@pytest.fixture
def looks(published: Publish[Any], tmp_path: Path) -> Iterator[Looks]:
    made = Looks(tmp_path, published(look_records.decode))
    yield made
    made.context.closing.close()


def test_while_somebody_watches_it_publishes_every_two_seconds_and_then_one_look_without_clients(looks: Looks) -> None:
    (first,) = looks.passes(60)
    assert (first.broker, first.cluster, first.uses, first.watched) == ("1", "abc", (), False), "one look at the start"
    assert [each[0] for each in looks.kafka.made] == ["__quotahost_looks", "__quotahost_watch"]
    looks.watch()
    (first,) = looks.passes(0.5)  # at once
    assert ([each.user for each in first.uses], first.watched) == (["alice", "bob"], True)
    assert len(looks.passes(10)) == 5
    shown = looks.passes(25)
    assert 9 <= len(shown) <= 10
    assert (shown[-1].uses, shown[-1].watched) == ((), False)
    assert looks.passes(60) == []
    follower(looks.task).absent()
    assert (len(looks.passes(4)), len(looks.kafka.made)) == (1, 4), "a deleted topic of watchers is created again"
    for watcher in "ab":
        looks.watch(watcher=watcher)
    for watcher, watched in (("a", True), ("b", False)):  # looks end when the last watcher leaves
        looks.watch(0, watcher=watcher)
        assert looks.passes(4)[-1].watched is watched


def test_a_question_is_answered_at_once_and_only_while_it_is_asked_and_a_failed_look_ends_nothing(looks: Looks) -> None:
    looks.passes(5)
    looks.watch()
    looks.passes(2.5)
    looks.watch(client=ALICE)
    (answered,) = looks.passes(0.5)
    assert answered.answers == (Answered("me", ("broker\t42\t1", "state\tfactor\t1.0")),)
    looks.watch()
    assert looks.passes(0.5)[0].answers == ()
    seen, looks.broker.looked = looks.broker.looked, ConnectionError("no sensors")
    assert looks.passes(3) == []
    looks.broker.looked = seen
    assert looks.passes(3)[0].uses, "publishing goes on after a failed look"


def test_old_records_and_those_of_strangers_are_no_reason_to_publish(looks: Looks) -> None:
    looks.passes(5)
    looks.record(encode(Watch("me", 30)), live=False)
    looks.record(b"{}")
    looks.record(b"x" * 10)
    looks.record(encode(Watch("me", 30)).replace(b"30", b"3000000"))
    assert looks.passes(30) == []
    assert looks.broker.number("Refused", "Records", "schema") == 1.0


@pytest.mark.proves("faults.watchers")
def test_whoever_asks_last_is_answered_in_a_crowd(looks: Looks, caplog: pytest.LogCaptureFixture) -> None:
    looks.passes(5)
    for number in range(16):
        looks.watch(watcher=str(number))
        looks.watch(0, watcher=str(number))
    looks.watch(watcher="operator", client=ALICE)
    assert [answer.watcher for answer in looks.passes(0.5)[0].answers] == ["operator"]
    assert looks.broker.number("Refused", "Records", "crowd") is None, "a watcher that left displaces no other"
    for number in range(16):
        looks.watch(watcher=f"invented-{number}", client=BOB)
    looks.watch(watcher="operator", client=ALICE)
    looks.record(encode(Watch("other", 30, volume=VolumeOf("1", "/dev/sdb"))))
    (one_for_all,) = looks.passes(0.5)
    assert "operator" in [answer.watcher for answer in one_for_all.answers]
    assert len(one_for_all.answers) == 4
    assert looks.broker.number("Refused", "Records", "crowd") == 3.0
    assert caplog.text.count("more than 16 watchers: only the latest are answered") == 1


def test_slow_looks_are_published_less_often_whoever_asks(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(name: str, seconds: float) -> None:
        quick = getattr(FakeBroker, name)

        def late(*arguments: Any) -> Any:
            looks.clock.now += seconds
            return quick(*arguments)

        monkeypatch.setattr(FakeBroker, name, late)

    slow("registered", 10)  # to connect, while the controllers have no quorum; that delays no further look
    assert looks.passes(5)
    slow("look", 0.5)
    looks.watch()
    assert len(looks.passes(10)) == 1, "looks take at most a twentieth of the time"
    looks.watch(client=ALICE)
    assert looks.passes(0.5)[0].answers
    looks.watch(client=BOB)
    assert looks.passes(9) == []


def test_of_opened_volumes_a_broker_measures_its_own_alone(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish_looks, "measure", lambda name, *_: (MeasuredVolume(name, 1, 1, [], 1.0, 0.0, ()), None))
    looks.broker.looked = look(volumes=[VolumeUse(name, 100.0, 10.0) for name in ("/own", "/both")])

    def opened(*other: str) -> list[str]:
        for watcher, volume in (("a", VolumeOf("1", "/own")), ("b", VolumeOf(*other))):
            looks.record(encode(Watch(watcher, 30, volume=volume)))
        return [each.name for each in looks.passes(4)[-1].opened]

    for other in (("2", "/both"), ("1", "/none")):
        eventually(partial(opened, *other))
        eventually(lambda: "quotahost-opened-volume" not in {each.name for each in threading.enumerate()})
        assert opened(*other) == ["/own"]


# ---- opened volumes ----


def volumes(clock: Callable[[], float] = time.monotonic, **places: Path) -> OpenedVolumes:
    """Measures volumes of these names; each volume is a directory."""
    given = context(FakeBroker(), "publish-usage")
    state = DiskState((), (), tuple((str(place), name) for name, place in places.items()))
    given.open_disks = lambda: cast("Any", SimpleNamespace(latest=lambda: (0.0, state)))
    return OpenedVolumes(given, clock)


def measured(opened: OpenedVolumes, *names: str) -> Sequence[MeasuredVolume]:
    return eventually(lambda: found if len(found := opened.of(names)) == len(names) else None)


def test_a_volume_whose_first_thread_cannot_start_is_measured_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = volumes(full=tmp_path)
    with monkeypatch.context() as busy:
        busy.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError):
            opened.of(["full"])
    assert measured(opened, "full")


def test_after_a_volume_that_takes_a_core_for_long_it_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "thread_time", lambda: 1.5)
    opened = volumes(clock, full=tmp_path)
    measured(opened, "full")
    opened.of([])
    clock.now += 29
    assert (opened.of(["full"]), opened._running) == ([], set())
    clock.now += 1
    measured(opened, "full")


def test_a_disk_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back = threading.Event()

    def measure(name: str, *arguments: Any) -> Any:
        assert name == "sound" or back.wait(30)
        return MeasuredVolume(name, 1, 1, [], 1.0, 0.0, ()), None

    monkeypatch.setattr(publish_looks, "measure", measure)
    opened = volumes(dead=tmp_path, sound=tmp_path)
    (sound,) = eventually(lambda: opened.of(["dead", "sound"]))
    assert sound.name == "sound"
    back.set()
    assert [each.name for each in measured(opened, "dead", "sound")] == ["dead", "sound"]
    assert opened.of(["sound"])[0] is sound, "the volume is kept while a watcher asks for it"
    assert opened.of(["dead"]) == []


@pytest.mark.parametrize("name", ["gone", "unknown"])
def test_of_a_volume_that_cannot_be_read_it_tells_why(tmp_path: Path, name: str) -> None:
    (found,) = measured(volumes(gone=tmp_path / "none"), name)
    assert (found.name, found.topics) == (name, ())
    assert found.unread
