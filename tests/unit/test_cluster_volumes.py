"""The source ``cluster-volumes``: records, this broker's own disks, and the second source that answers in between."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotahost import diskwatch
from quotahost.api import Context
from quotahost.broker import Broker
from quotahost.disks import Disks
from quotahost.factors import cluster_volumes as module
from quotahost.factors import clusterreader
from quotahost.factors.cluster_volumes import ClusterVolumesSource
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.testing import FakeBroker
from quotahost.wire_cluster import ClusterRecord, Filling, encode
from tests.unit.onbroker import Clock, context, eventually, settings

WALL = 1_700_000_000.0
OWN = Volume("1", "/own", 100, 10)
FULL, EMPTY = Volume("2", "/d", 100, 99), Volume("2", "/d", 100, 1)
READS = ClusterVolumes((), waiting="it reads")
GIVEN = {
    "factor__source": "cluster-volumes", "validity": "60s", "startup__grace": "30s", "volumes__period": "1h",
}  # fmt: skip


class Topic:
    """Stands for the follower of the topic and for the members of the cluster."""

    def __init__(self, context: Any, *given: Any) -> None:
        self.topic = self.tell = given[0]
        self.ever = False

    def close(self) -> None: ...


@dataclass
class SecondSource:
    """What the second source answers or raises; its builder can be held or fail."""

    context: Context
    broker: Broker
    answer: Any = READS
    closed: bool = False

    @property
    def plugin(self) -> SecondSource:
        return self

    def read(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed = True


class World:
    def __init__(self, **more: str) -> None:
        self.clock, self.wall, self.broker = Clock(), Clock(WALL), FakeBroker()
        self.built: list[SecondSource] = []
        self.may_build = threading.Event()
        self.may_build.set()
        self.trouble: BaseException | None = None
        self.context = context(self.broker, "cluster-volumes", **(GIVEN | more))
        self.context.factor_source = self.build
        self.source = ClusterVolumesSource(self.context, self.wall, self.clock)
        self.sequence = 0

    def build(self, name: str, broker: Broker) -> SecondSource:
        assert self.may_build.wait(10)
        if self.trouble:
            raise self.trouble
        self.built.append(SecondSource(context(name=name), broker))
        return self.built[-1]

    @property
    def second(self) -> SecondSource:
        """The second source, once it is built."""
        wanted = len(self.built) if self.built and not self.built[-1].closed else len(self.built) + 1
        eventually(lambda: len(self.built) == wanted)
        return self.built[-1]

    def started(self) -> None:
        """The topic is read, and the cluster consists of two."""
        self.knows("1", "2")
        self.source._reader.caught_up()

    def knows(self, *brokers: str) -> None:
        members: Any = self.source._members
        tell: Callable[[Mapping[str, bool]], None] = members.tell
        tell(dict.fromkeys(brokers, False))
        members.ever = True

    def publishes(
        self, *volumes: Volume, live: bool = True, run: int = 1, at: float = 0.0, **fields: Any
    ) -> None:
        self.sequence += 1
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.wall.now + at)
        told: dict[str, Any] = {
            "reporting": 2,
            "volume_count": len(volumes),
            "fullest": tuple(map(Filling, volumes)),
        } | fields
        record = ClusterRecord("c-1", run, self.sequence, when, **told)
        self.source._reader.record(b"c-1", encode(record), live)

    def passes(self, seconds: float) -> None:
        """In steps in which it is read, while this broker's own disks answer."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            step = min(1.0, end - self.clock.now)
            self.clock.now += step
            self.wall.now += step
            self.source._watch._look()
            self.source.read()

    def read(self) -> Any:
        return self.source.read()

    def number(self, attribute: str, name: str = "cluster-volumes") -> float | None:
        return self.broker.number("FactorSource", attribute, name)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    monkeypatch.setattr(clusterreader, "Follower", Topic)
    monkeypatch.setattr(module, "Members", Topic)
    monkeypatch.setattr(diskwatch, "read_disks", lambda *_: Disks((OWN,)))
    monkeypatch.setattr(diskwatch, "cluster_id", lambda *_: "c-1")
    made: list[World] = []

    def new(**more: str) -> World:
        made.append(World(**more))
        return made[-1]

    yield new
    for each in made:
        each.may_build.set()
        each.source.close()


@pytest.fixture
def world(make: Callable[..., World]) -> World:
    return make()


@pytest.fixture
def begun(world: World) -> World:
    """A full volume has been told a moment ago."""
    world.started()
    world.publishes(FULL)
    assert world.read().volumes == (OWN, FULL)
    return world


# ---- records ---------------------------------------------------------------------------------------


def test_the_own_disks_count_from_the_first_read_on_while_the_rest_is_waited_for(world: World) -> None:
    assert world.read() == ClusterVolumes((OWN,), waiting="topic __quotahost_cluster_volumes is not read yet")
    world.publishes(FULL, live=False)
    world.source._reader.caught_up()
    assert world.read() == ClusterVolumes((OWN, FULL), waiting="the cluster has not told its brokers yet")
    world.knows("1", "2")
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert not world.built


def test_nothing_is_read_before_the_cluster_is_known(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diskwatch, "cluster_id", lambda *_: "")
    world = make()
    assert world.read().waiting == "the log directories have not told the cluster's id yet"
    monkeypatch.setattr(diskwatch, "cluster_id", lambda *_: "c-1")
    world.source._watch._look()
    assert world.read().waiting == "topic __quotahost_cluster_volumes is not read yet"


def test_records_of_other_clusters_and_what_is_no_record_change_nothing(begun: World) -> None:
    before = begun.read()
    take = begun.source._reader.record
    take(b"c-2", encode(ClusterRecord("c-2", 9, 9, datetime.now(UTC))), True)
    take(b"c-2", b"{", True)
    take(None, None, True)
    assert not [key for key in begun.broker.shown if key[0] == "Refused"]
    for value in (b"{", b'{"version": 1}', b'{"version": 2}'):
        take(b"c-1", value, True)
    assert begun.read() is before
    counted = {key[1]: n for key, n in begun.broker.shown.items() if key[0] == "Refused"}
    assert counted == {"json": 1, "schema": 1, "version": 1}


def test_a_refused_record_is_told_once_for_each_reason(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        begun.source._reader.record(b"c-1", b'{"version": 2}', True)
    (line,) = [r.getMessage() for r in caplog.records if "refused" in r.getMessage()]
    assert "version: Input should be less than or equal to 1, not 2" in line


def test_two_runs_at_once_are_counted_and_said_once(begun: World, caplog: pytest.LogCaptureFixture) -> None:
    begun.publishes(FULL, run=2)
    for _ in range(3):
        begun.publishes(EMPTY, run=1)
    assert FULL in begun.read().volumes
    assert begun.broker.number("Refused", "Records", "rival") == 3
    assert caplog.text.count("two pipelines run for this cluster: records of run 1 are passed over") == 1


def test_what_a_pipeline_tells_that_reads_old_snapshots_again_does_not_count(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=begun.wall.now)
    for _ in range(3):
        begun.publishes(EMPTY, run=2, newest_snapshot_at=now - timedelta(seconds=61))
    assert FULL in begun.read().volumes
    assert begun.broker.number("Refused", "Records", "behind") == 3
    assert caplog.text.count("the pipeline is behind: its records tell of a time before validity (60 s)") == 1
    stale: dict[str, Any] = {"reporting": 0, "stale": 2, "stale_brokers": ("1", "2")}
    begun.publishes(run=2, newest_snapshot_at=now - timedelta(seconds=61), **stale)
    assert begun.read().unknown == ("broker 2: its newest snapshot is stale",), (
        "unless nobody reports any more"
    )
    begun.publishes(EMPTY, run=2, newest_snapshot_at=now - timedelta(seconds=59))
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


def test_a_late_record_changes_nothing(begun: World) -> None:
    begun.publishes(EMPTY)
    begun.sequence -= 2
    begun.publishes(FULL)
    assert begun.read().volumes == (OWN, EMPTY)
    assert begun.broker.number("Refused", "Records", "late") == 1


def test_it_is_the_same_object_as_long_as_nothing_changes(begun: World) -> None:
    before = begun.read()
    begun.publishes(FULL)
    assert begun.read() is before
    begun.publishes(EMPTY)
    assert begun.read() is not before


def test_what_is_unknown_in_the_cluster_is_told(begun: World) -> None:
    begun.publishes(reporting=1, stale=1, stale_brokers=("2",))
    assert begun.read() == ClusterVolumes((OWN,), ("broker 2: its newest snapshot is stale",))


def test_a_record_of_a_pipeline_that_has_not_heard_of_all_brokers_lets_nothing_through(begun: World) -> None:
    begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    assert begun.read() == ClusterVolumes((OWN, FULL)), "what was known of it counts on"
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))
    begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    for _ in range(33):
        begun.passes(1)
        begun.publishes(run=2, reporting=1, missing=1, missing_brokers=("2",))
    assert begun.read() == ClusterVolumes((OWN,), ("broker 2: no snapshot",))


def test_the_record_and_the_brokers_are_shown(begun: World) -> None:
    begun.publishes(EMPTY, run=7, stale=1, stale_brokers=("2",))
    begun.passes(5)
    number = begun.broker.number
    assert [number("ClusterRecord", name) for name in ("Age", "Run", "Sequence")] == [5, 7, 2]
    assert (number("Brokers", "Stale"), number("Brokers", "Missing")) == (1, 0)
    begun.source._reader.record(b"c-1", None, True)
    begun.passes(1)
    assert number("ClusterRecord", "Age") is None


# ---- the second source -----------------------------------------------------------------------------


def test_while_records_come_the_second_source_is_not_even_built(begun: World) -> None:
    for _ in range(10):
        begun.passes(29)
        begun.publishes(FULL)
    assert not begun.built
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (1, 0)


def test_it_is_built_after_half_of_validity_and_asked_after_validity(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    begun.passes(30)
    assert not begun.source._second._life
    begun.passes(1)
    begun.second.answer = ClusterVolumes((OWN, EMPTY))
    begun.passes(29)
    assert FULL in begun.read().volumes, "the record is not too old yet"
    assert begun.number("Answers") == 1
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    begun.passes(1)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (0, 1)
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (0, 1)
    (told,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert told.getMessage() == (
        "no record of this cluster in __quotahost_cluster_volumes for validity (60 s): factor source snapshots answers"
    )


def test_until_the_second_source_has_answered_the_last_record_counts_with_its_unknowns(begun: World) -> None:
    begun.publishes(FULL, stale=1, stale_brokers=("2",))
    unknown = ("broker 2: its newest snapshot is stale",)
    begun.may_build.clear()
    begun.passes(61)
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "factor source snapshots is being built")
    begun.may_build.set()
    second = begun.second
    eventually(lambda: begun.read().waiting == "it reads")
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "it reads")
    second.answer = None
    assert begun.read() == ClusterVolumes((OWN, FULL), unknown, "factor source snapshots doesn't know")
    second.answer = ClusterVolumes((OWN, EMPTY), ("broker 3: no snapshot",))
    assert begun.read() == second.answer
    second.answer = ClusterVolumes((EMPTY, OWN), waiting="again")
    assert begun.read() == second.answer, "it has answered once"


def test_as_soon_as_a_record_comes_it_counts_again_and_the_second_source_is_closed(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    begun.passes(61)
    second = begun.second
    second.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.publishes(FULL)
    assert begun.read() == ClusterVolumes((OWN, FULL))
    eventually(lambda: second.closed)
    assert (begun.number("Answers"), begun.number("Answers", "snapshots")) == (1, 0)
    assert (begun.number("Switches"), begun.number("Switches", "snapshots")) == (1, 1)
    assert caplog.text.count("factor source cluster-volumes answers again") == 1
    begun.passes(61)
    assert begun.second is not second, "next time another one is built"


def test_it_goes_back_only_to_a_record_that_leaves_nobody_out(begun: World) -> None:
    begun.passes(61)
    filled_since = ClusterVolumes((OWN, EMPTY, Volume("2", "/e", 100, 99)))
    begun.second.answer = filled_since
    eventually(lambda: begun.read() == filled_since)
    begun.publishes(run=2, reporting=1)
    assert begun.read() == filled_since
    begun.publishes(EMPTY, run=2)
    assert begun.read() == ClusterVolumes((OWN, EMPTY))


@pytest.mark.parametrize("why", ["empty", "absent", "old", "tombstone"])
def test_without_a_fresh_record_at_the_start_the_second_source_answers_at_once(
    world: World, why: str
) -> None:
    world.knows("1", "2")
    if why in ("old", "tombstone"):
        world.publishes(EMPTY, live=why == "tombstone", at=-3600)
    if why == "tombstone":
        world.source._reader.record(b"c-1", None, True)
    if why == "absent":
        world.source._reader.absent()
    else:
        world.source._reader.caught_up()
    assert world.read().waiting
    world.second.answer = ClusterVolumes((OWN, FULL))
    eventually(lambda: not world.read().waiting)
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert world.number("Switches", "snapshots") == 1


def test_a_topic_that_can_not_be_read_at_all_is_silent_too(world: World) -> None:
    world.knows("1", "2")
    world.passes(60)
    assert world.number("Answers") == 1
    world.passes(1)
    world.second.answer = ClusterVolumes((OWN, FULL))
    eventually(lambda: world.read() == ClusterVolumes((OWN, FULL)))


def test_a_second_source_of_another_kind_answers_as_it_can_and_the_own_disks_count_all_the_same(
    begun: World,
) -> None:
    begun.passes(61)
    begun.second.answer = Factor(0.5)
    eventually(lambda: begun.read() == Factor(0.5))
    begun.second.answer = ClusterVolumes((FULL,), ("broker 3",))
    assert begun.read() == ClusterVolumes((OWN, FULL), ("broker 3",))


def test_without_a_second_source_records_that_stop_are_unknown(make: Callable[..., World]) -> None:
    world = make(factor__source__second="none")
    world.started()
    assert world.read() == ClusterVolumes(
        (OWN,), waiting="topic __quotahost_cluster_volumes holds no record of this cluster yet"
    )
    world.publishes(FULL)
    world.passes(61)
    old = "the newest record of the cluster's volumes is older than validity (60 s)"
    assert world.read() == ClusterVolumes((OWN,), (old,))
    world.publishes(FULL)
    assert world.read() == ClusterVolumes((OWN, FULL))
    assert not world.built


@pytest.mark.parametrize("trouble", [ValueError("no"), SystemExit(3)])
def test_a_second_source_that_can_not_be_built_is_unknown_told_once_and_tried_again(
    begun: World, trouble: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    begun.trouble = trouble
    begun.passes(31)
    eventually(lambda: begun.read() and begun.number("Failures", "snapshots") == 1)
    assert begun.read() == ClusterVolumes((OWN, FULL)), "nothing is unknown yet"
    begun.passes(30)
    fails = "factor source snapshots, the second, fails"
    assert begun.read() == ClusterVolumes((OWN, FULL), (fails,)), "and what is known of the cluster counts"
    eventually(lambda: begun.passes(5) or (begun.number("Failures", "snapshots") or 0) > 2)
    assert caplog.text.count(fails) == 1
    begun.trouble = None
    eventually(lambda: begun.passes(1) or begun.built)
    begun.second.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: begun.read() == ClusterVolumes((OWN, EMPTY)))
    assert "factor source snapshots works again" in caplog.text


def test_a_second_source_that_fails_again_when_it_is_needed_again_is_told_again(
    begun: World, caplog: pytest.LogCaptureFixture
) -> None:
    begun.trouble = ValueError("no")
    for times in (1, 2):
        eventually(lambda n=times: begun.passes(5) or caplog.text.count("the second, fails; when") == n)
        begun.publishes(FULL)
        begun.passes(1)


@pytest.mark.parametrize("answer", [ValueError("no"), SystemExit(3), 0.5, "open"])
def test_a_second_source_that_fails_or_answers_nonsense_is_unknown_and_told_once(
    begun: World, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    begun.passes(61)
    begun.second.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.second.answer = answer
    for _ in range(3):
        assert begun.read().unknown == ("factor source snapshots, the second, fails",)
    assert OWN in begun.read().volumes
    assert begun.number("Failures", "snapshots") == 4
    assert caplog.text.count("fails; when it should answer, fallback.action holds") == 1


def test_another_second_source_and_its_own_properties_are_taken_live(begun: World) -> None:
    begun.passes(61)
    first = begun.second
    first.answer = ClusterVolumes((OWN, EMPTY))
    eventually(lambda: EMPTY in begun.read().volumes)
    begun.context.host = settings(**GIVEN, factor__source__second="local")
    begun.read()
    eventually(lambda: first.closed)
    assert begun.second.context.name == "local"
    assert (begun.number("Answers", "snapshots"), begun.number("Answers", "local")) == (None, 1)
    second = begun.second
    begun.context.host = settings(**GIVEN, factor__source__second="local", plugin__local__x="1")
    begun.read()
    eventually(lambda: second.closed)
    second = begun.second
    begun.context.host = settings(**GIVEN, factor__source__second="none")
    begun.read()
    eventually(lambda: second.closed)
    assert begun.number("Answers") == 1


def test_the_settings_in_force_reach_the_second_source(begun: World) -> None:
    begun.passes(61)
    eventually(lambda: begun.read() and begun.second.context.host is begun.context.host)


def test_going_back_and_forth_counts_nothing_twice_and_leaves_no_numbers(begun: World) -> None:
    number = begun.broker.number
    for _ in range(3):
        begun.passes(59)
        shown = begun.second.broker
        for reason in ("json", "json", "late"):
            shown.count("Refused", reason, "Records")
        shown.gauge("Snapshot", "2", "Age", 5)
        shown.gauge("Connection", "snapshots", "Connected", 1)
        shown.gauge("Brokers", "", "Stale", 7)
        shown.gauge("Volume", "/own", "Consumed", 7)
        assert number("Brokers", "Stale") == 0, "who doesn't answer doesn't say who is stale"
        begun.passes(2)
        shown.gauge("Brokers", "", "Stale", 7)
        assert number("Brokers", "Stale") == 7
        assert number("Snapshot", "Age", "2") == 5
        begun.publishes(FULL)
        begun.passes(1)
        shown.count("Refused", "json", "Records")
        shown.gauge("Snapshot", "2", "Age", 6)
        assert number("Snapshot", "Age", "2") is None
        assert number("Connection", "Connected", "snapshots") is None
        assert number("Brokers", "Stale") == 0
    assert (number("Refused", "Records", "json"), number("Refused", "Records", "late")) == (2, 1)
    assert number("Volume", "Consumed", "/own") == 10


def test_it_ends_with_all_that_it_has_begun(begun: World) -> None:
    begun.passes(61)
    second = begun.second
    begun.source.close()
    assert second.closed
