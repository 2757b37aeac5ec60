"""Three brokers that read one record for the cluster: it stops producers everywhere, and its end lets none through."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.cluster import Cluster
from harness.system.waiting import eventually
from tests.broker.support.background import Background
from tests.broker.support.disks import Between, follows, published
from tests.broker.support.node import JAR, OPEN, PAUSE, PREFIX, THROTTLE, all_are, callback, gauge
from tests.broker.support.numbers import appended, attempt
from tests.broker.support.pipeline import TOPIC, StandIn

pytestmark = pytest.mark.broker

VALIDITY: Final = 4.0  # seconds
HARD: Final = PREFIX + "static.storage.hard"
SOFT: Final = PREFIX + "static.storage.soft"
FENCE: Final = {"authorizer.class.name": "org.quotahost.QuotaFence"}
SETTINGS: Final = {
    "factor.source": "cluster-volumes",
    "fence.authorizer": "none",
    "validity": f"{VALIDITY:g}s",
    "startup.grace": "20s",
    "snapshots.period": "1s",
}
FIRST, SECOND = "cluster-volumes", "snapshots"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """There is no topic of records at first: the second source answers."""
    properties = callback(SETTINGS) | dict(QUICK_QUOTAS) | FENCE
    directory = tmp_path_factory.mktemp("cluster")
    with Cluster(directory, brokers=3, classpath=[JAR], properties=properties, probe=True) as made:
        create_topic(made.brokers[0], "t", partitions=3)
        all_are(made, OPEN)
        all_answer(made, SECOND)
        create_topic(made.brokers[0], TOPIC, replicas=3, config={"cleanup.policy": "compact"})
        yield made


@pytest.fixture(autouse=True)
def _open_and_empty(cluster: Cluster) -> Iterator[None]:
    yield
    for node in cluster.brokers:
        if not node.running:
            node.start()
    alter_broker_config(cluster.brokers[0], {HARD: None, SOFT: None}, broker=1)
    all_answer(cluster, SECOND)
    all_are(cluster, OPEN)


@pytest.fixture
def pipeline(cluster: Cluster) -> Iterator[StandIn]:
    with StandIn(cluster, VALIDITY) as running:
        all_answer(cluster, FIRST)
        yield running


class Highest(Background):
    """The highest factor that any of the brokers has shown while this was entered."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._nodes = cluster.brokers
        self.factor, self.looks = 0.0, 0

    def _run(self) -> None:
        while not self._stop.is_set():
            factors = [gauge(node, "QuotaTable", "Factor") for node in self._nodes]
            self.factor, self.looks = max(self.factor, *factors), self.looks + 1


def all_answer(cluster: Cluster, source: str, timeout: float = 40) -> None:
    bean = f"FactorSource,name={source}"
    eventually(
        lambda: all(gauge(node, bean, "Answers") == 1 for node in cluster.brokers),
        timeout=timeout,
        what=f"{source} answers on all",
    )


def limits_of_broker_1(cluster: Cluster, hard: str | None, soft: str | None = None) -> None:
    """To the others a limit set below what is used is a disk that has filled."""
    alter_broker_config(cluster.brokers[0], {HARD: hard, SOFT: soft}, broker=1)


def at_rest(cluster: Cluster) -> list[int]:
    """Where the partitions end once what was under way has been appended."""
    eventually(lambda: appended(cluster) == appended(cluster))
    return appended(cluster)


def transitions(cluster: Cluster) -> list[float]:
    """How often each broker has changed between OPEN, THROTTLE and PAUSE."""
    return [gauge(node, "Factor", "Transitions") for node in cluster.brokers]


def test_a_record_that_tells_of_a_full_disk_stops_producers_on_all_brokers_and_lets_them_go(
    cluster: Cluster, pipeline: StandIn
) -> None:
    with ProducerLoad(cluster.client_config(client_id="p"), "t", rate=3e6) as load:
        eventually(lambda: load.meter.bytes > 1_000_000)
        limits_of_broker_1(cluster, hard="1")
        all_are(cluster, PAUSE)
        before = appended(cluster)
        for partition in range(3):
            assert attempt(cluster.client_config(client_id="q"), "t", partition) == "NOT_ENOUGH_REPLICAS"
        assert appended(cluster) == before
        limits_of_broker_1(cluster, hard=None)
        eventually(lambda: all(now > was for now, was in zip(appended(cluster), before, strict=True)))
        assert load.drain() == 0
    assert load.errors == [], "nothing is lost"
    log = cluster.brokers[2].log_text()
    assert "broker 1, volume" in log.rsplit("OPEN -> PAUSE", 1)[1].splitlines()[0]
    for node in cluster.brokers:
        assert gauge(node, f"FactorSource,name={FIRST}", "Answers") == 1, "all of it by records"
        assert gauge(node, "ClusterRecord", "Age") < VALIDITY


def test_a_disk_between_its_limits_slows_producers_everywhere(cluster: Cluster, pipeline: StandIn) -> None:
    first = cluster.brokers[0]
    limits = Between.around(published(first))
    limits_of_broker_1(cluster, soft=str(limits.soft), hard=str(limits.hard))
    all_are(cluster, THROTTLE)
    for node in cluster.brokers:
        follows(node, first, limits)


def test_a_broker_that_the_record_calls_stale_is_missed(cluster: Cluster, pipeline: StandIn) -> None:
    third = cluster.brokers[2]
    third.stop()
    all_are(cluster, PAUSE, but=third)
    log = cluster.brokers[0].log_text()
    assert "broker 3: its newest snapshot is stale" in log.rsplit("-> PAUSE", 1)[1].splitlines()[0]
    eventually(lambda: gauge(cluster.brokers[0], "Brokers", "Stale") == 1)
    third.start()
    all_are(cluster, OPEN)


def test_when_records_stop_the_second_source_takes_over_and_back_and_nothing_is_let_through(
    cluster: Cluster,
) -> None:
    with ProducerLoad(cluster.client_config(client_id="p"), "t", rate=1e6), ExitStack() as look_on:
        with StandIn(cluster, VALIDITY):
            all_answer(cluster, FIRST)
            limits_of_broker_1(cluster, hard="1")
            all_are(cluster, PAUSE)
            before, changes = at_rest(cluster), transitions(cluster)
            look_on.enter_context(highest := Highest(cluster))
        all_answer(cluster, SECOND)
        settle(cluster, SECOND)
        with StandIn(cluster, VALIDITY):
            all_answer(cluster, FIRST)
            settle(cluster, FIRST)
            look_on.close()
        assert highest.factor == 0
        assert highest.looks > 20
        assert transitions(cluster) == changes, "not even between two looks"
        assert appended(cluster) == before
    for node in cluster.brokers:
        log = node.log_text()
        assert (
            f"no record of this cluster in {TOPIC} within validity (4 s): factor source {SECOND} answers"
            in log
        )
        assert f"factor source {FIRST} answers again" in log


def settle(cluster: Cluster, source: str) -> None:
    """Several reads of that source have passed."""
    end = time.monotonic() + 2
    eventually(lambda: time.monotonic() > end, timeout=10)
    all_answer(cluster, source)


def test_without_records_the_second_source_protects_and_explain_names_it(cluster: Cluster) -> None:
    limits_of_broker_1(cluster, hard="1")
    all_are(cluster, PAUSE)
    node = cluster.brokers[1]
    command = [
        sys.executable,
        "-m",
        "quotahost.cli",
        "explain",
        "--pid",
        str(node.pid),
        "--client",
        "ANONYMOUS/p",
    ]
    told = subprocess.run(command, capture_output=True, timeout=90, text=True).stdout
    assert f"{SECOND} answers, the second one, since no record reaches {FIRST}" in told
    limits_of_broker_1(cluster, hard=None)
    all_are(cluster, OPEN)
