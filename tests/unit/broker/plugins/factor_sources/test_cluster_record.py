"""One broker makes the same of its cluster's record as of the snapshots, as far as the record lists it."""

from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from harness import rollup as pipeline
from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.cluster_volumes import told_by
from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.model import Volume
from quotahost.model.budgets import Budget, in_cluster
from quotahost.pipeline.cluster import Rules
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.snapshot import Snapshot, encode
from tests.fakes.plugin_context import Clocks, patience

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
            disk, budgets = Volume(broker, "/d", 100, consumed), tuple((name, consumed) for name in BUDGETS)
            snapshot = Snapshot(broker, self.at(), (disk,), budgets=budgets)
            self.topic[broker] = pipeline.Record("t", 0, 0, self.at(), broker.encode(), encode(snapshot))
            self.roster.take(snapshot, True, 60)
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
