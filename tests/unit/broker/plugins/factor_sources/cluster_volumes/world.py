"""A broker with the factor source ``cluster-volumes``: its clocks, its topic and its standby."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quotahost.api import Context
from quotahost.broker.plugins.factor_sources.cluster_record import RecordReader
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterVolumesSource, Standby
from quotahost.model import ClusterVolumes, Volume
from quotahost.records.cluster_volumes import ClusterRecord, Filling, encode
from quotahost.testing.broker import FakeBroker
from tests.fakes.kafka import FakeThread
from tests.fakes.plugin_context import Clock, context, monitor

WALL = 1_700_000_000.0
OWN = Volume("1", "/own", 100, 10)
FULL, EMPTY = Volume("2", "/d", 100, 99), Volume("2", "/d", 100, 1)
READS = ClusterVolumes((), waiting="it reads")
GIVEN = {
    "factor__source": "cluster-volumes", "validity": "60s", "startup__grace": "30s", "volumes__period": "1h",
}  # fmt: skip


@dataclass
class StandbySource:
    """A standby that answers what the test sets."""

    context: Context
    counts_old: bool
    answer: ClusterVolumes = READS
    closed: bool = False
    hidden: bool = False
    answers: bool = True

    def read(self) -> ClusterVolumes:
        return self.answer

    def hide(self) -> None:
        self.hidden = True

    def close(self) -> None:
        self.closed = True


class World:
    """Broker 1 of the cluster ``c-1``; tests set its clocks, publish records and read the source."""

    def __init__(self, **more: str) -> None:
        self.clock, self.wall, self.broker = Clock(), Clock(WALL), FakeBroker()
        self.built: list[StandbySource] = []
        self.context = context(self.broker, "cluster-volumes", clock=self.clock, **(GIVEN | more))
        brokers: Any = FakeThread
        build: Any = self.build  # the standby's stand-in
        reader, standby = RecordReader(self.context, self.clock, self.wall), Standby(self.context, build)
        self.source = ClusterVolumesSource(self.context, self.wall, self.clock, reader, standby, brokers)
        self.sequence = 0

    def build(self, context: Context, counts_old: bool) -> StandbySource:
        self.built.append(StandbySource(context, counts_old))
        return self.built[-1]

    @property
    def standby(self) -> StandbySource:
        """The standby that was built last."""
        return self.built[-1]

    def started(self) -> None:
        """The topic is read, and the cluster consists of two."""
        self.knows("1", "2")
        self.source._reader.caught_up()

    def knows(self, *brokers: str) -> None:
        """These are the registered brokers."""
        registered: Any = self.source._registered_brokers
        registered.argument(dict.fromkeys(brokers, False))
        registered.answered = True

    def publishes(self, *volumes: Volume, live: bool = True, run: int = 1, at: float = 0.0, **fields: Any) -> None:
        self.sequence += 1
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.wall.now + at)
        fullest = tuple(map(Filling, volumes))
        content: dict[str, Any] = {"reporting": 2, "volume_count": len(volumes), "fullest": fullest}
        record = ClusterRecord("c-1", run, self.sequence, when, **(content | fields))
        self.source._reader.record(b"c-1", encode(record), live)

    def passes(self, seconds: float) -> None:
        """Time passes; each second this broker's disks answer and the source is read."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            step = min(1.0, end - self.clock.now)
            self.clock.now += step
            self.wall.now += step
            monitor(self.context).look()
            self.source.read()

    def read(self) -> Any:
        return self.source.read()

    def number(self, attribute: str, name: str = "cluster-volumes") -> float | None:
        return self.broker.number("FactorSource", attribute, name)
