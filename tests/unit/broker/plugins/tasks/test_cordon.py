"""The task ``cordon``: which log directories it cordons, which it frees, and what it leaves to operators."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import pytest

from quotahost.api import Context, DiskState
from quotahost.broker.plugins.tasks import cordon
from quotahost.broker.plugins.tasks.cordon import ADDED, CORDONED, Cordon
from quotahost.kafka.admin import Listed
from quotahost.kafka.client import NoAnswer
from quotahost.model import Volume
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context, settings

FULL, SLACK = 90, 10  # bytes of 100
LIMITS = {"static__storage__soft": "50", "static__storage__hard": "95"}
Lists = Mapping[str, Iterable[str]]


class Kafka:
    """The broker's dynamic properties, as Kafka changes them; ``answer`` is what it answers instead."""

    def __init__(self) -> None:
        self.cordoned: list[str] = []
        self.added: str | None = None
        self.asked = self.changes = 0
        self.passwords: list[str | None] = []
        self.answer: Listed | Exception | str | None = "what is cordoned"

    def asked_as(self, password: str | None) -> "Kafka":
        self.passwords.append(password)
        return self

    def listed(self, name: str) -> Listed | None:
        assert name == CORDONED
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.passwords[-1] == "old":
            raise NoAnswer("refused")
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


class World:
    def __init__(self) -> None:
        self.kafka, self.disks, self.clock = Kafka(), Disks(), Clock()
        self.context = context(FakeBroker(), "cordon", Cordon.Section(), self.clock, **LIMITS)
        self.context.open_disks = lambda: self.disks  # type: ignore[assignment,return-value]
        self.restart()

    def restart(self) -> None:
        """The broker starts again, and gets what Kafka has stored."""
        self.task = Cordon(self.context, self.clock)
        self.stored()

    def stored(self) -> None:
        self.task.reconfigure(Cordon.Section.model_validate({"added": self.kafka.added or ""}))

    def run(self, seconds: float = 120) -> list[str]:
        """What is cordoned after so many seconds, in which the task runs every 10 s."""
        for _ in range(round(seconds / 10)):
            self.clock.now += 10
            self.task.run()
            self.stored()
        return sorted(self.kafka.cordoned)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    def login(context: Context[object]) -> SimpleNamespace:
        given = context.broker.client_config()
        return SimpleNamespace(admin=lambda topic: given.get("sasl.password"), config=lambda *, careful: given)

    monkeypatch.setattr(cordon, "login", login)
    monkeypatch.setattr(cordon, "BrokerConfig", lambda admin, broker, config: made.kafka.asked_as(admin))
    return made


def test_the_directories_of_a_full_volume_are_cordoned_until_somebody_saw_room_for_a_while(world: World) -> None:
    assert world.run() == []
    assert world.kafka.asked == 0, "while nothing has to change"
    world.disks.used["/b"] = FULL
    assert world.run() == ["/b", "/b/2"]
    assert world.kafka.added == "/b,/b/2"
    assert world.kafka.asked == 2, "the first answer shows that the broker has read what is stored"
    world.restart()
    assert world.run() == ["/b", "/b/2"]
    world.disks.used["/b"] = SLACK
    for _ in range(2):
        assert world.run(50) == ["/b", "/b/2"], "not at once: it may be above its limit again in a moment"
        world.restart()  # nobody saw for how long the volume has had room
    assert world.run(80) == []
    assert world.kafka.added is None
    assert world.kafka.changes == 2


def test_what_an_operator_freed_stays_free_until_the_volume_had_room(world: World) -> None:
    world.disks.used["/a"] = FULL
    world.run(20)
    world.kafka.cordoned = []
    assert world.run() == []
    world.task = Cordon(world.context, world.clock)
    world.task.run()  # before what is stored reaches it, a moment after its start
    world.stored()
    assert world.run() == []
    world.disks.used["/a"] = SLACK
    world.run()
    world.disks.used["/a"] = FULL
    assert world.run() == ["/a"]


def test_where_an_operator_has_cordoned_all_nothing_is_added(world: World) -> None:
    world.kafka.cordoned = ["*"]
    world.disks.used["/a"] = FULL
    assert world.run() == ["*"]
    assert world.kafka.changes == 0


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (None, "this Kafka has no cordoned.log.dirs"),
        (Listed(("/b",), elsewhere=True), "--entity-default --delete-config cordoned.log.dirs"),
        (NoAnswer("no right"), "can't be read or changed: no right"),
    ],
)
def test_what_keeps_it_from_working_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture, answer: Listed | Exception | None, line: str
) -> None:
    world.kafka.answer = answer
    world.disks.used["/a"] = FULL
    assert world.run(600) == []
    assert [line in each for each in caplog.messages] == [True]
    assert world.kafka.changes == 0


def test_a_cluster_that_gives_no_answer_is_asked_with_the_configuration_of_the_next_moment(world: World) -> None:
    """After a change of credentials, say, or of the listener by which the broker reaches itself."""
    world.context.broker = broker = FakeBroker(client={"sasl.password": "old"})
    world.disks.used["/a"] = FULL
    assert world.run(60) == []
    broker.client["sasl.password"] = "new"
    assert world.run() == ["/a"]


def test_in_shadow_it_only_says_what_it_would_do(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.context.settings = settings(shadow="all", **LIMITS)
    world.disks.used["/a"] = FULL
    assert world.run() == []
    assert "shadow=all: ['/a'] would be cordoned" in caplog.text


def test_unknown_disks_change_nothing(world: World) -> None:
    world.disks.used["/a"] = FULL
    world.disks.age = 1e6
    assert world.run() == []
    world.disks.age = 0.0
    assert world.run(20) == ["/a"]
    world.disks.lost = True
    assert world.run() == ["/a"], "an offline directory may be as full as it was"
