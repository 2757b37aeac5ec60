"""Tests the one rule of age: no clock's jump and no wrong clock makes a record fresh or stale for any reader.

The readers are the broker itself, a broker that sees the snapshot arrive, a broker that starts later, and the pipeline
(by its plain model; ``tests/pipeline/test_snapshots.py`` holds the SQL to the same rule). A reader keeps the latest of
a pipeline's records, whatever the order, the run or the clock of the records that it reads.
"""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness import rollup as pipeline
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.kafka.latest_record import LatestRecord
from quotahost.model import Volume
from quotahost.pipeline.cluster import Rules
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.codec import Refused
from quotahost.records.fields import MAX_DELAY_MS, delay_ms
from quotahost.records.snapshot import Snapshot, decode, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import WALL, Clock, Clocks, patience, settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = 1_700_000_000_000
LONG = st.integers(0, 2**63 - 1)
OFF = st.integers(-(10**9), 10**9)  # the seconds by which a clock may be wrong


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


@given(st.none() | LONG, OFF, st.none() | OFF | LONG, LONG)
def test_whatever_is_stated_the_delay_is_bounded_and_without_it_a_wrong_clock_costs_half_of_validity_at_most(
    stated: int | None, publisher: int, kafka: int | None, validity: int
) -> None:
    written = None if kafka is None else WRITTEN + kafka * 1000
    delay = delay_ms(stated, at(WRITTEN / 1000 + publisher), written, validity)
    assert 0 <= delay <= (MAX_DELAY_MS if stated is not None else validity / 2)


VALIDITY = timedelta(seconds=60)
TRUE = 1_800_000_000.0  # the time of the look
QUARTERS = st.integers(0, 400).map(lambda number: number / 4)  # seconds, exact as floats
WRONG = st.integers(-100_000, 100_000).map(float)  # the seconds by which a wall clock is wrong
DISK = Volume("1", "/d", 100, 10)


def published(old: float, publisher: float) -> bytes:
    """A snapshot that is ``old`` s old when it is published, by a machine whose clock is ``publisher`` s wrong."""
    return encode(Snapshot("1", at(TRUE + publisher), (DISK,), age_ms=round(old * 1000)))


def fresh_to_a_broker(value: bytes, written_ms: int, passed: float, wall: float, live: bool) -> bool:
    clock = Clock()
    roster = Roster(clock, Clock(wall))
    roster.register({"1": False})
    clock.now += 100  # in service for longer than startup.grace
    assert roster.take(decode(b"1", value), live, 60, written_ms) == ""
    clock.now += passed
    return not roster.view("", patience()).unknown


@pytest.mark.proves("proposal-035.freshness", "proposal-035.snapshot-time", "faults.clock")
@given(old=QUARTERS, passed=QUARTERS, publisher=WRONG, kafka=WRONG, reader=WRONG)
@example(old=30.0, passed=31.0, publisher=0.0, kafka=0.0, reader=0.0)
@example(old=30.0, passed=30.0, publisher=-3600.0, kafka=0.0, reader=3600.0)
@example(old=0.0, passed=60.0, publisher=3600.0, kafka=-3600.0, reader=0.0)
def test_a_look_is_stale_for_every_reader_once_it_is_older_than_validity(
    old: float, passed: float, publisher: float, kafka: float, reader: float
) -> None:
    value, written_ms = published(old, publisher), round((TRUE + old + kafka) * 1000)
    fresh = old + passed <= 60
    clock = Clock()
    own = DiskMonitor(FakeBroker({"log.dirs": "/nowhere"}), FakeBroker(), 1, settings, clock)
    own.look()
    clock.now += old + passed
    assert all("have not answered" not in text for text in own.known().unknown) is fresh
    assert fresh_to_a_broker(value, written_ms, passed, TRUE + reader, live=True) is fresh
    # The pipeline refuses a snapshot whose time is more than an hour after Kafka's timestamp of the record.
    if publisher <= old + kafka + 3600:
        records = [pipeline.Record("t", 0, 0, at(written_ms / 1000), b"1", value)]
        brokers = pipeline.state(records, timedelta(minutes=5), VALIDITY)
        (record,) = pipeline.rollup(brokers, Rules("c", VALIDITY), 1, 1, written_ms + round(passed * 1000))
        assert (record.reporting == 1) is fresh
    # A broker that starts later uses Kafka's timestamp, with its own clock until it has seen a record arrive.
    assert fresh_to_a_broker(value, written_ms, 0, TRUE + old + passed + kafka, live=False) is fresh


@given(passed=QUARTERS, wall=WRONG)
def test_what_was_in_the_topic_is_aged_by_kafkas_clock(passed: float, wall: float) -> None:
    clock = Clock()
    roster = Roster(clock, Clock(TRUE + wall))
    roster.register({"1": False, "2": False})
    clock.now += 100
    here = Snapshot("2", at(TRUE), (), age_ms=0)
    assert roster.take(here, True, 60, round((TRUE + passed) * 1000)) == ""
    assert roster.take(decode(b"1", published(0, 0)), False, 60, round(TRUE * 1000)) == ""
    assert [age for _, age, _ in roster.latest("2")] == [pytest.approx(passed)]
    assert (not roster.view("2", patience()).unknown) is (passed <= 60)


# ---- readers keep the latest record of a pipeline ----

VALID = 60.0  # seconds
MADE_AT = datetime.fromtimestamp(WALL, UTC)


class World(Clocks):
    """A reader with its two clocks."""

    def __init__(self) -> None:
        super().__init__()
        self.latest: LatestRecord[ClusterRecord] = LatestRecord(self.clock, self.wall)

    def arrives(self, run: int, sequence: int, live: bool = True) -> str:
        """The reason why the record is refused; "" if it is taken."""
        try:
            self.latest.take(ClusterRecord("c", run, sequence, MADE_AT), live, VALID)
        except Refused as refused:
            return refused.reason
        return ""

    @property
    def kept(self) -> tuple[int, int] | None:
        known = self.latest.read()[0]
        return None if known is None else (known.run, known.sequence)

    @property
    def age(self) -> float:
        return self.latest.read()[1]


@pytest.fixture
def world() -> World:
    return World()


def test_a_record_of_the_pipeline_is_as_old_as_its_computation(world: World) -> None:
    world.latest.take(ClusterRecord("c", 1, 1, world.at(-20)), True, VALID, round(WALL * 1000))
    assert world.age == 20
    world.passes(5)
    assert world.age == 25


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1), st.booleans())
def test_in_whatever_order_the_highest_run_and_sequence_is_kept(orders: list[tuple[int, int]], live: bool) -> None:
    world = World()
    for order in orders:
        world.arrives(*order, live=live)
    assert world.kept == max(orders)


def test_what_is_read_again_after_a_jump_of_the_wall_clock_is_not_older_than_what_it_replaces(world: World) -> None:
    world.arrives(2, 1)
    world.wall.now += 3600
    world.arrives(2, 2, live=False)
    assert (world.kept, world.age) == ((2, 2), 0)


def test_once_the_kept_record_is_too_old_the_next_to_arrive_replaces_it_whatever_its_run(world: World) -> None:
    world.arrives(2, 1)
    world.passes(VALID)
    assert world.arrives(1, 7) == "other-pipeline", "the kept record isn't too old yet"
    assert world.arrives(2, 1) == "", "a record that is published again isn't refused"
    assert world.arrives(2, 0) == "late"
    assert (world.kept, world.age) == ((2, 1), VALID), "none of these records renews the age"
    assert world.arrives(1, 9, live=False) == "", "a record that is read again isn't refused"
    world.passes(1)
    assert world.arrives(1, 8) == ""
    assert (world.kept, world.age) == ((1, 8), 0)


def test_after_a_tombstone_the_record_is_stale_and_the_next_replaces_it(world: World) -> None:
    world.latest.remove()
    assert world.latest.read() == (None, math.inf), "nothing is known before the first record"
    world.arrives(2, 5)
    world.passes(1)
    world.latest.remove()
    assert (world.kept, world.age) == ((2, 5), math.inf)
    world.arrives(2, 5, live=False)
    assert world.age == 1, "a record that is read again after its tombstone keeps its age"
    world.latest.remove()
    assert world.arrives(1, 1) == ""
    assert (world.kept, world.age) == ((1, 1), 0)


@pytest.mark.parametrize("live", [True, False])
def test_a_forged_run_of_the_future_blinds_nobody(world: World, live: bool) -> None:
    now = int(WALL * 1000)
    assert world.arrives(2**63 - 1, 0, live=live) == "ahead"
    assert world.arrives(now + 2 * 3_600_000, 0, live=live) == "ahead"
    assert world.kept is None
    assert world.arrives(now, 1) == ""
    assert world.arrives(2**63 - 1, 0) == "ahead"
    assert world.kept == (now, 1)
    assert world.arrives(now + 60_000, 0) == "", "a pipeline's clock may be a little ahead"


@pytest.mark.parametrize(("reader", "leader"), [(-10_000, 0), (0, -10_000)])
def test_one_clock_that_is_hours_behind_makes_nobody_refuse_the_pipeline(
    world: World, reader: int, leader: int
) -> None:
    """The clock is that of the reading broker, or of the leader that gives Kafka's timestamps."""
    run = int(WALL * 1000)
    world.wall.now += reader
    world.latest.take(ClusterRecord("c", run, 1, MADE_AT), True, VALID, run + leader * 1000)
    assert world.kept == (run, 1)
    with pytest.raises(Refused, match="lies in the future"):
        world.latest.take(ClusterRecord("c", run + 3_700_000, 1, MADE_AT), True, VALID, run + leader * 1000)
