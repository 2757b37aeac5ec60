"""What one broker makes of its cluster's record: the same as of the snapshots, as far as the record lists it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness import rollup as pipeline
from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.cluster_volumes import told_by
from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.model import LimitType, Volume
from quotahost.model.budgets import Budget, in_cluster
from quotahost.pipeline.cluster import Rules
from quotahost.records.cluster_volumes import ClusterRecord, OfflineDir, VolumeTrend
from quotahost.records.snapshot import Snapshot, encode
from tests.fakes.plugin_context import Clock, Clocks, patience

VALIDITY, GRACE, HOUR = 60.0, 30.0, 3600.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def disk(broker: str, consumed: int = 10, name: str = "/d") -> Volume:
    return Volume(broker, name, 100, consumed)


class World:
    """Broker 1 of a cluster of three."""

    def __init__(self) -> None:
        self.clock, self.strict = Clock(), False
        self.state = ClusterState("1", self.clock)
        self.register("1", "2", "3")

    def register(self, *brokers: str, fenced: str = "") -> None:
        self.state.register({broker: broker == fenced for broker in brokers})

    def view(self, *fullest: Volume, count: int | None = None, **fields: Any) -> View:
        fields = {"reporting": 3, "volume_count": len(fullest) if count is None else count} | fields
        listed = tuple(map(VolumeTrend, fullest))
        return self.state.view(ClusterRecord("c", 1, 1, NOW, fullest=listed, **fields), patience(self.strict))

    def silent(self, broker: str, *volumes: Volume) -> View:
        """A record in which this broker is stale, and had these volumes."""
        last = tuple(map(VolumeTrend, volumes))
        return self.view(reporting=2, stale=1, stale_brokers=(broker,), silent=last)


@pytest.fixture
def world() -> World:
    return World()


def test_the_listed_volumes_count_once_without_this_brokers_own_which_stand_for_those_left_out(world: World) -> None:
    worst = {LimitType.MIN_FREE_BYTES: (VolumeTrend(disk("2", 90)), VolumeTrend(disk("3")))}
    view = world.view(disk("2", 90), disk("1", 95), worst=worst, count=3)
    assert view == View((disk("2", 90), disk("3")))
    listed = (disk("1", 95), disk("9", 94), disk("2", 90))
    assert world.view(*listed, count=4).volumes == listed, "a stranger's too, in a truncated list"
    assert world.view(*listed).volumes == (disk("2", 90),)


def test_stale_brokers_and_offline_dirs_are_unknown_at_once_with_a_sentence_each(world: World) -> None:
    dirs = (OfflineDir("3", "/e\nOPEN"), OfflineDir("1", "/own"), OfflineDir("9", "/gone"))
    world.clock.now += GRACE + 1
    view = world.view(reporting=2, stale=3, stale_brokers=("2", "1", "9"), offline=3, offline_dirs=dirs)
    assert view.unknown == ("broker 2: its newest snapshot is stale", "broker 3, log dir '/e\\nOPEN'")
    assert (view.stale, view.complete) == (1, True)


def test_until_the_brokers_are_known_none_is_missed_and_all_volumes_but_this_brokers_count(world: World) -> None:
    world.state = ClusterState("1", world.clock)
    view = world.view(disk("1"), disk("9"), stale=1, stale_brokers=("8",))
    assert view == View((disk("9"),), complete=False)


def test_brokers_that_nobody_lists_are_waited_for_also_while_they_become_fewer(world: World) -> None:
    assert not world.view(reporting=0).complete
    world.clock.now += GRACE - 1
    assert not world.view(reporting=1).complete
    world.clock.now += 2
    view = world.view(reporting=2, stale=66, stale_brokers=tuple(f"gone-{n}" for n in range(64)))
    assert (view.unknown, view.missing) == (("1 brokers run, of which the pipeline has no snapshot",), 1)
    assert world.view(reporting=3).unknown == ()
    assert not world.view(reporting=2).complete, "they were there in between"


# ---- and of the same facts by snapshots ----

OTHERS = ("2", "3", "4")
BUDGETS = {"leaders": Budget("leaders", ("t",), 1), "replicas": Budget("replicas", ("t",), 1, replicas=True)}


class Both(Clocks):
    """Broker 1 with both sources, and a pipeline that always knows everything."""

    def __init__(self, strict: bool) -> None:
        super().__init__()
        self.wall.now = 1_800_000_000.0  # the pipeline refuses times before 2026
        self.settings = patience(strict)
        self.roster, self.state = Roster(self.clock, self.wall), ClusterState("1", self.clock)
        self.brokers = dict.fromkeys(("1", *OTHERS), False)
        self.topic: dict[str, pipeline.Record] = {}
        self.back: set[str] = set()  # in service again, and silent since
        self.register()

    def register(self) -> None:
        self.roster.register(self.brokers)
        self.state.register(self.brokers)

    def happens(self, what: str, broker: str, consumed: int) -> None:
        if what == "starts" and self.brokers.get(broker):
            self.back.add(broker)
        elif what not in ("starts", "nothing"):
            self.back.discard(broker)
        if what == "publishes" and self.brokers.get(broker) is False:
            snapshot = Snapshot(
                broker, self.at(), (disk(broker, consumed),), budgets=tuple((name, consumed) for name in BUDGETS)
            )
            self.topic[broker] = pipeline.Record("t", 0, 0, self.at(), broker.encode(), encode(snapshot))
            self.roster.take(snapshot, True, VALIDITY)
        elif what == "stops" and broker in self.brokers:
            self.brokers[broker] = True
        elif what == "starts":
            self.brokers[broker] = False
        elif what == "leaves" and self.brokers.pop(broker, None) is not None:
            self.topic.pop(broker, None)  # its tombstone
        self.register()

    def record(self) -> ClusterRecord:
        """What the pipeline's plain model makes of the topic, to which this broker has just published."""
        own = pipeline.Record("t", 0, 0, self.at(), b"1", encode(Snapshot("1", self.at(), ())))
        brokers = pipeline.state([own, *self.topic.values()], timedelta(minutes=5))
        rules = Rules("c", registered=[broker for broker, fenced in self.brokers.items() if not fenced])
        (record,) = pipeline.rollup(brokers, rules, 1, 1, round(self.wall.now * 1000))
        return record

    def budgets(self) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
        """What is used of the budgets, and what no longer counts, by the snapshots and by the record.

        The record counts what a broker led before it was back until its first snapshot (docs/quotas.md).
        """
        latest = self.roster.latest("1")
        told = [(snapshot.budgets or (), serves or snapshot.broker in self.back) for snapshot, _, serves in latest]
        return in_cluster(BUDGETS, told), in_cluster(BUDGETS, told_by(self.record()) or [])

    def views(self) -> tuple[View, View]:
        return self.roster.view("1", self.settings), self.state.view(self.record(), self.settings)


def lost(view: View) -> set[str]:
    return {text.split()[1].rstrip(":") for text in view.unknown}


EVENTS = st.tuples(
    st.sampled_from(["publishes", "publishes", "stops", "starts", "leaves", "nothing"]),
    st.sampled_from(OTHERS), st.integers(0, 100), st.sampled_from([1.0, 10.0, 31.0, 61.0]),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=40), st.booleans())
@example([("publishes", "2", 1, 1.0), ("stops", "2", 0, 31.0), ("starts", "2", 0, 1.0)], False)
def test_the_same_volumes_count_and_are_unknown(events: list[tuple[str, str, int, float]], strict: bool) -> None:
    world = Both(strict)
    world.views()
    for what, broker, consumed, pause in events:
        world.happens(what, broker, consumed)
        world.views()  # both are read all the time
        world.passes(pause)
        known, view = world.views()
        assert lost(view) == lost(known)
        assert set(view.volumes) == set(known.volumes) or not view.complete
        assert set(known.volumes) <= set(view.volumes)
        by_snapshots, by_record = world.budgets()
        assert by_record == by_snapshots or not view.complete
        running = {b for b, fenced in world.brokers.items() if not fenced}
        assert strict or lost(known) <= running, "only a broker that runs is unknown"
