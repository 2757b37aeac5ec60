"""Both sources that read snapshots come to the same view of the other brokers, from the same facts."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.liveness import View
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, Filling
from quotahost.records.snapshot import Snapshot
from tests.fakes.plugin_context import Clock, patience

VALIDITY = 60.0
OWN, OTHERS = "1", ("2", "3", "4")


class World:
    """Broker 1 with both sources, and a pipeline that always knows everything."""

    def __init__(self, strict: bool) -> None:
        self.clock, self.wall = Clock(), Clock(1_700_000_000.0)
        self.settings = patience(strict)
        self.roster, self.state = Roster(self.clock, self.wall), ClusterState(OWN, self.clock)
        self.brokers = dict.fromkeys((OWN, *OTHERS), False)
        self.topic: dict[str, tuple[float, Snapshot]] = {}
        self.register()

    def register(self) -> None:
        self.roster.register(self.brokers)
        self.state.register(self.brokers)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall.now, UTC)

    def happens(self, what: str, broker: str, consumed: int) -> None:
        if what == "publishes" and self.brokers.get(broker) is False:
            snapshot = Snapshot(broker, self.now(), (Volume(broker, "/d", 100, consumed),))
            self.topic[broker] = self.clock.now, snapshot
            self.roster.take(snapshot, True, VALIDITY)
        elif what == "stops" and broker in self.brokers:
            self.brokers[broker] = True
        elif what == "starts":
            self.brokers[broker] = False
        elif what == "leaves" and self.brokers.pop(broker, None) is not None:
            self.topic.pop(broker, None)  # its tombstone
        self.register()

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.wall.now += seconds

    def record(self) -> ClusterRecord:
        running = {broker for broker, fenced in self.brokers.items() if not fenced}
        stale = [b for b, (at, _) in self.topic.items() if self.clock.now - at > VALIDITY]
        fresh = [b for b in self.topic if b not in stale]
        missing = tuple(sorted(running - self.topic.keys()))

        def fillings(brokers: list[str]) -> tuple[Filling, ...]:
            return tuple(Filling(volume) for b in brokers for volume in self.topic[b][1].volumes)

        listed = fillings(fresh)
        return ClusterRecord(
            "c", 1, 1, self.now(),
            reporting=len(running & set(fresh)), stale=len(stale), stale_brokers=tuple(stale),
            missing=len(missing), missing_brokers=missing,
            volume_count=len(listed), fullest=listed, silent=fillings(stale),
        )  # fmt: skip

    def views(self) -> tuple[View, View]:
        return self.roster.view(OWN, self.settings), self.state.view(self.record(), self.settings)


def lost(view: View) -> set[str]:
    return {text.split()[1].rstrip(":") for text in view.unknown}


EVENTS = st.tuples(
    st.sampled_from(["publishes", "publishes", "stops", "starts", "leaves", "nothing"]),
    st.sampled_from(OTHERS), st.integers(0, 100), st.sampled_from([1.0, 10.0, 31.0, 61.0]),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=40), st.booleans())
def test_the_same_volumes_count_and_are_unknown(events: list[tuple[str, str, int, float]], strict: bool) -> None:
    world = World(strict)
    world.views()
    for what, broker, consumed, pause in events:
        world.happens(what, broker, consumed)
        world.views()  # both are read all the time
        world.passes(pause)
        known, view = world.views()
        assert lost(view) == lost(known)
        assert set(view.volumes) == set(known.volumes) or not view.complete
        assert set(known.volumes) <= set(view.volumes)
        running = {b for b, fenced in world.brokers.items() if not fenced}
        assert strict or lost(known) <= running, "only a broker that runs is unknown"
