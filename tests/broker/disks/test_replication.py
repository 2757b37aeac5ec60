"""Two brokers: a disk that replication alone fills stops the producers of the other broker (proposal 035)."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR
from harness.system.waiting import eventually
from tests.broker.support.node import callback_properties
from tests.broker.support.numbers import end_offset, stopped_at
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, bytes_in, gauge, wait_for_state
from tests.broker.support.volumes import (
    MEGA,
    QUICK_DELETION,
    SMALL_BURSTS,
    VolumeWatch,
    never_ran_out_of_space,
    published,
    small_volume,
    used,
)

LARGE, SMALL = 1000 * MEGA, 80 * MEGA  # bytes of the volumes of brokers 1 and 2
SOFT, HARD = 42 * MEGA, 20 * MEGA  # bytes free, on either
OLD: Final = 10 * MEGA  # bytes of the topic that is deleted in the end
BALLAST: Final = 25 * MEGA  # what another program has on the small one
QUOTA: Final = 6 * MEGA  # bytes/s of each client on each broker
SETTINGS: Final = {
    "factor.source": "snapshots",
    "validity": "10s",
    "startup.grace": "20s",
    "static.produce": str(QUOTA),
    "floor.bytes": "150000",  # near the hard limit the default, 35 kB/s, would take longer
    "static.storage.soft.min-free-bytes": str(SOFT),
    "static.storage.hard.min-free-bytes": str(HARD),
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two brokers with the same limits; the volume of broker 2 is the small one."""
    properties = callback_properties(SETTINGS) | SMALL_BURSTS | FENCE | QUICK_DELETION
    with ExitStack() as stack:
        made = Cluster(tmp_path, brokers=2, classpath=[JAR], properties=properties, probe=True)
        for node, size in zip(made.brokers, (LARGE, SMALL), strict=True):
            stack.enter_context(small_volume(node.data_dirs[0], size))
        (made.brokers[1].data_dirs[0] / "ballast").write_bytes(bytes(BALLAST))
        stack.enter_context(made)
        wait_for_state(made, OPEN)
        yield made


def log_of(node: KafkaNode, topic: str) -> tuple[int, str]:
    """The bytes of a topic's partition on a broker's disk: how many, and their digest."""
    segments = sorted(node.data_dirs[0].glob(f"{topic}-0/*.log"))
    content = b"".join(segment.read_bytes() for segment in segments)
    return len(content), hashlib.sha256(content).hexdigest()


@pytest.mark.proves("proposal-035.replication", "proposal-035.pause", "proposal-035.states")
@pytest.mark.proves("proposal-035.properties-new")
@pytest.mark.proves("faults.replication-fills")
def test_a_followers_disk_filled_by_replication_stops_the_leaders_producers_and_loses_nothing(cluster: Cluster) -> None:
    leader, follower = cluster.brokers
    place_topics(cluster, {"old": [1, 2], "t": [1, 2]})
    fill_topic(leader.client_config(client_id="before"), "old", OLD)
    client = leader.client_config(client_id="p") | {"enable.idempotence": True}
    directories = [node.data_dirs[0] for node in cluster.brokers]
    with VolumeWatch(leader, directories) as watch, ProducerLoad(client, "t") as load:
        wait_for_state(cluster, THROTTLE)
        wait_for_state(cluster, PAUSE)
        (end,) = stopped_at(leader, "t")
        assert SMALL - HARD <= watch.most_used(1) < SMALL - HARD + MEGA, "the follower's disk stops at its limit"
        assert LARGE - watch.most_used(0) > SOFT, "the leader's own disk gives no reason to slow anybody"
        assert all(bytes_in(leader, topic) > 0 for topic in ("old", "t"))
        assert all(bytes_in(follower, topic) == 0 for topic in ("old", "t")), "replication alone fills it"
        assert gauge(follower, "Fence", "Rejections") == 0
        leader.wait_for_log("-> PAUSE: .*broker 2, volume")
        for node in cluster.brokers:
            eventually(lambda node=node: published(node).consumed == pytest.approx(used(node.data_dirs[0]), abs=MEGA))
            assert never_ran_out_of_space(node)
        delete_topics(cluster, "old")
        # What waits in the client, 1 MB, fits into the room; on a busy machine it would be full again, if it went on.
        assert load.drain() == 0, "producers are let go"
        wait_for_state(cluster, THROTTLE)
    assert load.errors == []
    assert end_offset(leader, "t") == load.meter.messages > end, "all that was acknowledged, once"
    eventually(lambda: log_of(leader, "t") == log_of(follower, "t"), what="it lies on both disks, byte for byte")
