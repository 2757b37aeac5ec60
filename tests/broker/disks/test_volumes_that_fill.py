"""Volumes that are really filled, each a small file system of its own: proposal 035's scenes.

One broker with two volumes slows and stops its producers, and shows what fills one and where new topics go meanwhile
(``cordon``). Of two brokers the disk of one is filled by replication alone.
"""

import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics, kafka_configs, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE, JAR, PREFIX, STATES
from harness.system.background import Background
from harness.system.waiting import eventually
from tests.broker.support.commands import Terminal, explain, explain_client, field
from tests.broker.support.node import OWN_ID, callback_node, callback_properties, changed
from tests.broker.support.numbers import end_offset, stopped_at
from tests.broker.support.seen import (
    ANYONE,
    OPEN,
    PAUSE,
    THROTTLE,
    bytes_in,
    gauge,
    state,
    wait_for_state,
    wait_for_watch_topic,
)
from tests.broker.support.volumes import MEGA, SMALL_BURSTS, published, small_volume

WINDOW: Final = 2.0  # seconds of SMALL_BURSTS
#: Space comes back within a second of its deletion or the end of its retention.
QUICK_DELETION: Final = {
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "500",
}
PROPERTIES: Final = SMALL_BURSTS | QUICK_DELETION | FENCE
VOLUME: Final = 100 * MEGA  # bytes of each of the two of one broker
SOFT, HARD = 28 * MEGA, 60 * MEGA  # bytes used
QUOTA: Final = 6 * MEGA  # bytes/s of each client
SETTINGS: Final = {
    "factor.source": "local",
    "fence.authorizer": "none",
    "validity": "10s",
    "static.produce": str(QUOTA),
    "floor.bytes": "150000",  # near the hard limit the default, 35 kB/s, would take longer
}
CORDONED: Final = "cordoned.log.dirs"
SEGMENTS: Final = {"segment.bytes": str(1 << 20)}


def used(directory: Path) -> int:
    """Bytes used of the directory's volume, as the operating system counts them."""
    return shutil.disk_usage(directory).used


class Sample(NamedTuple):
    """What one could see at one moment (monotonic s): a broker's state and factor, and the bytes used by volume."""

    moment: float
    state: str
    factor: float
    used: tuple[int, ...]


class VolumeWatch(Background):
    """Takes samples of a broker and of some volumes for the time of a ``with`` block."""

    def __init__(self, node: KafkaNode, directories: Sequence[Path]) -> None:
        """Takes a directory of each volume."""
        super().__init__()
        self._table = Jmx(node)
        self._directories = directories
        self.samples: list[Sample] = []

    def since(self, moment: float) -> list[Sample]:
        """The samples from that moment on."""
        return [sample for sample in self.samples if sample.moment >= moment]

    def most_used(self, volume: int) -> int:
        """The most bytes that were used of a volume, given by its place in the list of directories."""
        return max(sample.used[volume] for sample in self.samples)

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        (table,) = self._table.query("quotahost:type=QuotaTable").values()
        state, factor = STATES[int(table["State"])], float(table["Factor"])
        return Sample(time.monotonic(), state, factor, tuple(map(used, self._directories)))


def never_ran_out_of_space(node: KafkaNode) -> bool:
    """Whether Kafka met no write that failed for lack of space, and lost no log directory."""
    offline = Jmx(node).get("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", "Value")
    return "No space left" not in node.log_text() and int(offline) == 0


# ---- one broker with two volumes ------------------------------------------------------------------------------------


@contextmanager
def two_volumes(directory: Path, settings: dict[str, str], **more: Any) -> Iterator[KafkaNode]:
    """Runs a broker with two log directories, each of which is a volume."""
    with ExitStack() as stack:
        node = callback_node(directory, SETTINGS | settings, properties=PROPERTIES, log_dirs=2, **more)
        for volume in node.data_dirs:
            stack.enter_context(small_volume(volume, VOLUME))
        yield stack.enter_context(node)


def directory_of(node: KafkaNode, topic: str) -> Path:
    """The log directory in which a topic's first partition lies; waits until there is one."""
    return eventually(lambda: next((each for each in node.data_dirs if (each / f"{topic}-0").exists()), None))


def topic_on_each(node: KafkaNode) -> list[str]:
    """Creates topics until each log directory has the first partition of one; returns one for each directory.

    Kafka gives a new partition to the log directory that has the fewest.
    """
    found: dict[Path, str] = {}
    for number in range(8):
        create_topic(node, f"volume-{number}", config=SEGMENTS | {"retention.ms": "600000"})
        found[directory_of(node, f"volume-{number}")] = f"volume-{number}"
        if len(found) == 2:
            return [found[each] for each in node.data_dirs]
    raise AssertionError(f"Kafka chose only {sorted(found)}")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """Its hard limit is HARD, as a share of VOLUME that must stay free."""
    settings = {"static.storage.soft": str(SOFT), "static.storage.hard.min-free-percent": "0.4"}
    with two_volumes(tmp_path_factory.mktemp("node"), settings) as node:
        yield node


@pytest.mark.proves("proposal-035.progressive", "proposal-035.properties-old")
def test_a_volume_that_retention_holds_between_its_limits_gives_producers_that_share_of_their_quota(
    node: KafkaNode,
) -> None:
    kept = 44 * MEGA  # bytes to which retention holds the topic: half of the way
    create_topic(node, "held", config=SEGMENTS | {"retention.bytes": str(kept)})
    place = node.data_dirs.index(directory_of(node, "held"))
    config = node.client_config(client_id="eager")
    with ProducerLoad(config, "held") as load, VolumeWatch(node, node.data_dirs) as watch:
        eventually(lambda: state(node) == THROTTLE, what="soft limit crossed")
        eventually(lambda: used(node.data_dirs[place]) > kept, what="retention holds the volume")
        held_since, span = time.monotonic(), 4 * WINDOW

        def gets_its_share() -> bool:
            end = time.monotonic()
            assert end > held_since + span, "four windows have not passed yet"
            factor = fmean([sample.factor for sample in watch.since(end - span)])
            assert load.meter.smooth_rate(end - span, end) == pytest.approx(factor * QUOTA, rel=0.1)
            return True

        eventually(gets_its_share, poll=0.2)
    held = watch.since(held_since)
    assert {sample.state for sample in held} == {"THROTTLE"}
    expected = fmean([(HARD - sample.used[place]) / (HARD - SOFT) for sample in held])
    assert fmean([sample.factor for sample in held]) == pytest.approx(expected, abs=0.05)
    assert watch.most_used(place) < HARD
    assert load.max_throttle(held_since) > 0
    assert load.errors == []
    delete_topics(node, "held")
    eventually(lambda: state(node) == OPEN, what="space is back")


@pytest.mark.proves("proposal-035.volumes", "proposal-035.pause", "proposal-035.states", "proposal-035.largest")
@pytest.mark.proves("proposal-035.properties-old", "proposal-035.properties-new")
def test_one_full_volume_stops_producers_at_its_hard_limit_also_those_that_write_to_an_empty_one(
    node: KafkaNode,
) -> None:
    to_full, to_empty = topic_on_each(node)
    ballast = node.data_dirs[0] / "ballast"
    ballast.write_bytes(bytes(34 * MEGA))  # another program's
    with (
        # Nearer to the hard limit, so that the volume is full soon.
        changed(node, {"static.storage.soft": str(40 * MEGA)}),
        VolumeWatch(node, node.data_dirs) as watch,
        ProducerLoad(node.client_config(client_id="careful"), to_empty, rate=500_000) as careful,
    ):
        with ProducerLoad(node.client_config(client_id="filler"), to_full) as filler:
            eventually(lambda: state(node) == PAUSE, what="hard limit reached")
            _, end_of_empty = stopped_at(node, to_full, to_empty)
        assert HARD <= watch.most_used(0) < HARD + MEGA, "it stops at its limit"
        assert watch.most_used(1) < SOFT, "the other volume gives no reason to slow anybody"
        assert "THROTTLE" in {sample.state for sample in watch.samples}, "producers are slowed first"
        assert careful.max_throttle() > 0, "all are, also who writes to the empty volume"
        assert never_ran_out_of_space(node)
        delete_topics(node, to_full)
        ballast.unlink()
        eventually(lambda: state(node) == OPEN, what="space is back")
        eventually(lambda: end_offset(node, to_empty) > end_of_empty, what="producers are let go")
        assert careful.drain() == 0
    assert careful.errors == filler.errors == []
    assert end_offset(node, to_empty) >= careful.meter.messages, "what was acknowledged is there"


# ---- what fills a volume, and where new topics go -------------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker with 25 MB on the first volume, which slows the writers of topics there alone and cordons it."""
    settings = {
        "static.produce": "20M",
        "factor.scope": "topics",
        "static.storage.soft": str(20 * MEGA),
        "static.storage.hard": str(90 * MEGA),
        "tasks": "cordon,publish-usage",
        "plugin.cordon.hold": "1s",
    }
    with two_volumes(tmp_path_factory.mktemp("watched"), settings, node_id=OWN_ID) as node:
        topic, _ = topic_on_each(node)
        fill_topic(node.client_config(client_id="filler"), topic, 25 * MEGA)
        yield node


def topic_at(directory: Path) -> str:
    """A topic of the module with its first partition in a log directory."""
    return next(each.name for each in directory.iterdir() if each.name.startswith("volume-")).rpartition("-")[0]


def bound(node: KafkaNode, client_id: str, user: str = "") -> float:
    """The limit that Kafka enforces for a client whose sensor has these tags."""
    return next((q.bound or 0.0 for q in enforced_quotas(node, "PRODUCE", client_id=client_id, user=user)), 0.0)


def test_explain_shows_what_fills_a_volume_who_writes_and_what_a_shorter_retention_frees(watched: KafkaNode) -> None:
    node, (topic, other) = watched, map(topic_at, watched.data_dirs)
    code, text = explain("--pid", node.pid, "--volume")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[1:]] == [str(each) for each in node.data_dirs]

    def all_is_shown() -> bool:
        """Of a volume that grows meanwhile: a busy machine may hold the writer up."""
        code, text = explain("--broker-id", OWN_ID, "--volume", node.data_dirs[0], "--interval", "2s")
        assert code == 0, text
        assert field(text, "capacity") == "100 MB"
        assert "breached by" in field(text, "soft")
        assert "left" in field(text, "hard")
        assert "its hard limit in" in field(text, "growth")
        written, kept = (line.split() for line in text.splitlines() if line.startswith(topic))
        assert written[-1] in ("MB/s", "kB/s")
        assert kept[1:3] == ["10", "min"]
        writers = [line.split()[-1] for line in text.splitlines() if "client-id writer" in line]
        assert writers == [topic], "with factor.scope=topics"
        return True

    with (
        ProducerLoad(node.client_config(client_id="writer"), topic, rate=1_000_000),
        ProducerLoad(node.client_config(client_id="other"), other, rate=1_000_000),
    ):
        eventually(all_is_shown)
        for client_id, told in (
            ("writer", f"slowed, since it writes to {topic}, which has a replica on broker {OWN_ID}"),
            ("other", "keeps its full quota: it has not written to an affected topic"),
        ):
            eventually(lambda c=client_id, t=told: t in field(explain_client(node, ANYONE, c)[1], "scope"))
        eventually(lambda: 0 < bound(node, "writer", user="<slowed>") < 20e6)
        eventually(lambda: bound(node, "other") == 20e6)


def test_top_of_the_cluster_lists_the_volumes_the_fullest_first_and_opens_one_as_explain_does(
    watched: KafkaNode,
) -> None:
    (full, other), topic = watched.data_dirs, topic_at(watched.data_dirs[0])
    wait_for_watch_topic(watched)
    with (
        ProducerLoad(watched.client_config(client_id="writer"), topic, rate=1_000_000),
        Terminal("top", "--bootstrap", watched.bootstrap, lines=60, columns=180) as terminal,
    ):
        terminal.shows("writer")
        terminal.press(b"v")
        first = terminal.line(f"^1 +{OWN_ID} ").split()
        second = terminal.line(f"^2 +{OWN_ID} ").split()
        terminal.press(b"1")
        # Once there is a rate: a busy machine may hold the writer up.
        terminal.line(rf"^{topic} .*[kM]B/s\s*$")
        writes = terminal.line("client-id writer").split()
        terminal.press(b"\x1bq")
        assert terminal.ends() == 0
    assert first[2:5] == [str(full), "100", "MB"]
    assert first[-5:-1] == ["20.0", "MB", "90.0", "MB"], "its limits"
    assert 0 < float(first[-1]) < 1, "its factor"
    assert (second[2], second[-1]) == (str(other), "1")
    assert writes[-1] == topic, "with factor.scope=topics"


def cordoned(node: KafkaNode) -> list[str]:
    text = kafka_configs(node, "--describe", "--entity-type", "brokers", "--entity-name", str(OWN_ID))
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(CORDONED)]
    return sorted(lines[0].split("=")[1].split(" ")[0].split(",")) if lines else []


def test_a_volume_above_its_soft_limit_gets_no_new_replicas_also_after_a_restart_and_what_an_operator_cordons_stays(
    watched: KafkaNode,
) -> None:
    node, (full, other), names = watched, map(str, watched.data_dirs), (f"new-{number}" for number in count())
    let_go = f"{PREFIX}plugin.cordon.let-go"

    def places_of_new_topics() -> set[str]:
        topics = [name for name, _ in zip(names, range(4), strict=False)]
        for name in topics:
            create_topic(node, name)
        return {str(directory_of(node, name)) for name in topics}

    eventually(lambda: cordoned(node) == [full])
    # Kafka shows a new config a moment before it goes by it.
    eventually(lambda: places_of_new_topics() == {other})
    node.stop()
    node.start()
    assert places_of_new_topics() == {other}
    eventually(lambda: gauge(node, "Cordon", "LogDirs") == 1)

    alter_broker_config(node, {CORDONED: f"{full},{other}"}, broker=OWN_ID)
    alter_broker_config(node, {let_go: "true"}, broker=OWN_ID)
    eventually(lambda: cordoned(node) == [other])
    eventually(lambda: gauge(node, "Cordon", "LogDirs") == 0)
    alter_broker_config(node, {let_go: None, CORDONED: None}, broker=OWN_ID)
    eventually(lambda: cordoned(node) == [full], what="it goes on where it is no longer told to let go")

    alter_broker_config(node, {CORDONED: f"{full},{other}"}, broker=OWN_ID)
    delete_topics(node, topic_at(node.data_dirs[0]))
    eventually(lambda: cordoned(node) == [other], what="there is room, and what an operator has cordoned stays")
    alter_broker_config(node, {CORDONED: None}, broker=OWN_ID)
    eventually(lambda: full in places_of_new_topics())


# ---- two brokers ----------------------------------------------------------------------------------------------------

LARGE, SMALL = 1000 * MEGA, 80 * MEGA  # bytes of the volumes of brokers 1 and 2
SOFT_FREE, HARD_FREE = 42 * MEGA, 20 * MEGA  # bytes free, on either


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two brokers with the same limits, in bytes free; the volume of broker 2 is the small one."""
    settings = {
        "factor.source": "snapshots",
        "startup.grace": "20s",
        "static.storage.soft.min-free-bytes": str(SOFT_FREE),
        "static.storage.hard.min-free-bytes": str(HARD_FREE),
    }
    properties = callback_properties(SETTINGS | settings) | PROPERTIES
    with ExitStack() as stack:
        made = Cluster(tmp_path, brokers=2, classpath=[JAR], properties=properties, probe=True)
        for node, size in zip(made.brokers, (LARGE, SMALL), strict=True):
            stack.enter_context(small_volume(node.data_dirs[0], size))
        (made.brokers[1].data_dirs[0] / "ballast").write_bytes(bytes(25 * MEGA))  # another program's
        stack.enter_context(made)
        wait_for_state(made, OPEN)
        yield made


def log_of(node: KafkaNode, topic: str) -> tuple[int, str]:
    """The bytes of a topic's partition on a broker's disk: how many, and their digest."""
    segments = sorted(node.data_dirs[0].glob(f"{topic}-0/*.log"))
    content = b"".join(segment.read_bytes() for segment in segments)
    return len(content), hashlib.sha256(content).hexdigest()


@pytest.mark.proves(
    "proposal-035.replication", "proposal-035.pause", "proposal-035.states", "proposal-035.properties-new"
)
@pytest.mark.proves("faults.replication-fills")
def test_a_followers_disk_that_replication_fills_stops_the_producers_of_the_leader_and_nothing_is_lost(
    cluster: Cluster,
) -> None:
    leader, follower = cluster.brokers
    place_topics(cluster, {"old": [1, 2], "t": [1, 2]})
    fill_topic(leader.client_config(client_id="before"), "old", 10 * MEGA)
    client = leader.client_config(client_id="p") | {"enable.idempotence": True}
    directories = [node.data_dirs[0] for node in cluster.brokers]
    with VolumeWatch(leader, directories) as watch, ProducerLoad(client, "t") as load:
        wait_for_state(cluster, THROTTLE)
        wait_for_state(cluster, PAUSE)
        (end,) = stopped_at(leader, "t")
        assert 0 <= watch.most_used(1) - (SMALL - HARD_FREE) < MEGA, "the follower's disk stops at its limit"
        assert LARGE - watch.most_used(0) > SOFT_FREE, "the leader's own disk gives no reason to slow anybody"
        assert all(bytes_in(leader, topic) > 0 for topic in ("old", "t"))
        assert all(bytes_in(follower, topic) == 0 for topic in ("old", "t")), "replication alone fills it"
        assert gauge(follower, "Fence", "Rejections") == 0
        leader.wait_for_log("-> PAUSE: .*broker 2, volume")
        for node in cluster.brokers:
            eventually(lambda node=node: published(node).consumed == pytest.approx(used(node.data_dirs[0]), abs=MEGA))
            assert never_ran_out_of_space(node)
        delete_topics(cluster, "old")
        wait_for_state(cluster, THROTTLE)
        eventually(lambda: end_offset(leader, "t") > end, what="producers are let go")
        assert load.drain() == 0
    assert load.errors == []
    assert end_offset(leader, "t") == load.meter.messages, "all that was acknowledged, once"
    eventually(lambda: log_of(leader, "t") == log_of(follower, "t"), what="it lies on both disks, byte for byte")
