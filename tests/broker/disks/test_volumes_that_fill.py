"""The tests fill real volumes, each a file system of its own: two of one broker, and a follower's (proposal 035)."""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import callback_properties
from tests.broker.support.numbers import end_offset, stopped_at
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, bytes_in, gauge, state, wait_for_state
from tests.broker.support.volumes import (
    MEGA,
    QUICK_DELETION,
    SMALL_BURSTS,
    WINDOW,
    VolumeWatch,
    directory_of,
    never_ran_out_of_space,
    node_with_two_volumes,
    published,
    ramp,
    small_volume,
    topic_on_each,
    used,
)

VOLUME: Final = 100 * MEGA  # bytes of each volume
SOFT, HARD = 28 * MEGA, 60 * MEGA  # bytes used
LATE: Final = 40 * MEGA  # a soft limit nearer to the hard one, so that the volume is full soon
QUOTA: Final = 6 * MEGA  # bytes/s of each client
KEPT: Final = 44 * MEGA  # bytes to which retention limits a topic: halfway between SOFT and HARD
#: Near the hard limit the default floor, 35 kB/s, would fill the volume too slowly.
PRODUCERS: Final = {"validity": "10s", "static.produce": str(QUOTA), "floor.bytes": "150000"}
SETTINGS: Final = PRODUCERS | {
    "factor.source": "local",
    "static.storage.soft": str(SOFT),
    "static.storage.hard.min-free-percent": "0.4",  # of VOLUME; the same limit as HARD
}
SEGMENTS: Final = {"segment.bytes": str(1 << 20)}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with node_with_two_volumes(tmp_path_factory.mktemp("node"), SETTINGS, VOLUME) as node:
        yield node


@pytest.mark.proves("proposal-035.progressive", "proposal-035.properties-old")
def test_a_volume_held_between_limits_by_retention_gives_producers_that_share_of_their_quota(node: KafkaNode) -> None:
    create_topic(node, "held", config=SEGMENTS | {"retention.bytes": str(KEPT)})
    place = node.data_dirs.index(directory_of("held", node.data_dirs))
    config = node.client_config(client_id="eager")
    with ProducerLoad(config, "held") as load, VolumeWatch(node, node.data_dirs) as watch:
        eventually(lambda: state(node) == THROTTLE, what="the soft limit is crossed")
        eventually(lambda: used(node.data_dirs[place]) > KEPT, what="retention holds the volume")
        held_since, span = time.monotonic(), 4 * WINDOW

        def gets_its_share() -> bool:
            end = time.monotonic()
            assert end > held_since + span, "four windows must pass first"
            factor = fmean([sample.factor for sample in watch.since(end - span)])
            assert load.meter.smooth_rate(end - span, end) == pytest.approx(factor * QUOTA, rel=0.1)
            return True

        eventually(gets_its_share, poll=0.2)
    held = watch.since(held_since)
    assert {sample.state for sample in held} == {"THROTTLE"}
    expected = fmean([ramp(sample.used[place], SOFT, HARD) for sample in held])
    assert fmean([sample.factor for sample in held]) == pytest.approx(expected, abs=0.05)
    assert watch.most_used(place) < HARD
    assert load.max_throttle(held_since) > 0
    assert load.errors == []
    delete_topics(node, "held")
    eventually(lambda: state(node) == OPEN, what="the state is OPEN again once there is space")


@pytest.mark.proves("proposal-035.volumes", "proposal-035.pause", "proposal-035.states", "proposal-035.largest")
@pytest.mark.proves("proposal-035.properties-old", "proposal-035.properties-new")
def test_one_full_volume_stops_producers_at_its_hard_limit_also_those_writing_to_an_empty_one(node: KafkaNode) -> None:
    to_full, to_empty = topic_on_each(node.data_dirs, lambda topic: create_topic(node, topic, config=SEGMENTS))
    ballast = node.data_dirs[0] / "ballast"
    ballast.write_bytes(bytes(34 * MEGA))  # stands for another program's files
    alter_broker_config(node, {PREFIX + "static.storage.soft": str(LATE)})
    with (
        VolumeWatch(node, node.data_dirs) as watch,
        ProducerLoad(node.client_config(client_id="careful"), to_empty, rate=QUOTA / 3) as careful,
    ):
        with ProducerLoad(node.client_config(client_id="filler"), to_full) as filler:
            eventually(lambda: state(node) == PAUSE, what="the hard limit is reached")
            _, end_of_empty = stopped_at(node, to_full, to_empty)
        assert HARD <= watch.most_used(0) < HARD + MEGA, "the volume stops at its hard limit"
        assert watch.most_used(1) < SOFT, "the other volume stays below its soft limit"
        assert "THROTTLE" in {sample.state for sample in watch.samples}, "producers are slowed before the stop"
        assert careful.max_throttle() > 0, "a client that writes to the empty volume is slowed, too"
        assert never_ran_out_of_space(node)
        delete_topics(node, to_full)
        ballast.unlink()
        eventually(lambda: state(node) == OPEN, what="the state is OPEN again once there is space")
        eventually(lambda: end_offset(node, to_empty) > end_of_empty, what="producers go on")
        assert careful.drain() == 0
    assert careful.errors == filler.errors == []
    assert end_offset(node, to_empty) >= careful.meter.messages, "every acknowledged record is in the log"
    alter_broker_config(node, {PREFIX + "static.storage.soft": None})


# ---- a follower's volume, which only replication fills, stops the producers of the other broker ----

LARGE, SMALL = 1000 * MEGA, 80 * MEGA  # bytes of the volumes of brokers 1 and 2
OLD: Final = 10 * MEGA  # bytes of the topic that is deleted at the end
BALLAST: Final = 25 * MEGA  # bytes
#: The limits of both brokers, in bytes free.
FREE: Final = {"soft": 42 * MEGA, "hard": 20 * MEGA}


def log_of(node: KafkaNode, topic: str) -> tuple[int, str]:
    """The number of bytes of a topic's partition on a broker's disk, and their digest."""
    segments = sorted(node.data_dirs[0].glob(f"{topic}-0/*.log"))
    content = b"".join(segment.read_bytes() for segment in segments)
    return len(content), hashlib.sha256(content).hexdigest()


@pytest.mark.proves("proposal-035.replication", "proposal-035.pause", "proposal-035.states")
@pytest.mark.proves("proposal-035.properties-new", "faults.replication-fills")
def test_a_followers_disk_filled_by_replication_stops_the_leaders_producers_and_loses_nothing(tmp_path: Path) -> None:
    settings = PRODUCERS | {"factor.source": "snapshots", "startup.grace": "20s"}
    settings |= {f"static.storage.{limit}.min-free-bytes": str(free) for limit, free in FREE.items()}
    properties = callback_properties(settings) | SMALL_BURSTS | FENCE | QUICK_DELETION
    cluster = Cluster(tmp_path, brokers=2, classpath=[JAR], properties=properties, probe=True)
    leader, follower = cluster.brokers
    large, small = directories = [node.data_dirs[0] for node in cluster.brokers]
    with small_volume(large, LARGE), small_volume(small, SMALL), cluster:
        (small / "ballast").write_bytes(bytes(BALLAST))  # stands for another program's files
        wait_for_state(cluster, OPEN)
        # A new cluster has no snapshots topic in its first seconds. A producer would fill 80 MB in this time.
        eventually(lambda: gauge(leader, f"Snapshot,name={follower.node_id}", "Age") >= 0)
        place_topics(cluster, {"old": [1, 2], "t": [1, 2]})
        fill_topic(leader.client_config(client_id="before"), "old", OLD)
        client = leader.client_config(client_id="p") | {"enable.idempotence": True}
        with VolumeWatch(leader, directories) as watch, ProducerLoad(client, "t") as load:
            wait_for_state(cluster, THROTTLE)
            wait_for_state(cluster, PAUSE)
            (end,) = stopped_at(leader, "t")
            assert 0 <= watch.most_used(1) - (SMALL - FREE["hard"]) < MEGA, "the follower's disk stops at its limit"
            assert LARGE - watch.most_used(0) > FREE["soft"], "the leader's own disk is below its soft limit"
            assert all(bytes_in(leader, topic) > 0 for topic in ("old", "t"))
            assert all(bytes_in(follower, topic) == 0 for topic in ("old", "t")), "only replication fills the follower"
            assert gauge(follower, "Fence", "Rejections") == 0
            leader.wait_for_log("-> PAUSE: .*broker 2, volume")
            for node in cluster.brokers:
                eventually(lambda at=node: published(at).consumed == pytest.approx(used(at.data_dirs[0]), abs=MEGA))
                assert never_ran_out_of_space(node)
            delete_topics(cluster, "old")
            # The client's queued records, 1 MB, fit into the free space. New records could fill it on a busy machine.
            assert load.drain() == 0, "the client delivers its queued records"
            wait_for_state(cluster, THROTTLE)
        assert load.errors == []
        assert end_offset(leader, "t") == load.meter.messages > end, "each acknowledged record is in the log once"
        eventually(lambda: log_of(leader, "t") == log_of(follower, "t"), what="both disks have the same bytes")
