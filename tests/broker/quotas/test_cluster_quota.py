"""Cluster-wide client quotas on three brokers: 3 MB/s for a client, wherever it writes.

``FakeShares`` is a stand-in for the Spark pipeline: it divides the quotas in plain Python every half second.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.clients.raw import introduce_clients
from harness.kafka.admin import create_topic, place_topics, set_quota
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import JAR
from harness.system.waiting import eventually
from quotahost.records.topics import COMPACTED
from tests.broker.support.commands import Terminal, top
from tests.broker.support.node import callback_properties
from tests.broker.support.pipeline import SHARES, FakeShares
from tests.broker.support.quotas import set_cluster_quota
from tests.broker.support.seen import ANYONE, gauge, limit_of, wait_for_rate

QUOTA: Final = 3e6
SETTINGS: Final = {"supplier": "cluster-quota,client-quotas", "validity": "8s", "newcomers.produce": "3M"}


@contextmanager
def three_brokers(directory: Path) -> Iterator[Cluster]:
    """Runs three brokers with a topic on each, t1 to t3; without a pipeline they divide the quotas equally."""
    properties = callback_properties(SETTINGS) | QUICK_QUOTAS
    with Cluster(directory, brokers=3, classpath=[JAR], properties=properties, probe=True) as made:
        create_topic(made.brokers[0], SHARES, replicas=3, config=COMPACTED)
        place_topics(made, {f"t{n}": n for n in (1, 2, 3)})
        for client_id in ("p", "q"):
            set_cluster_quota(made.client_config(client_id="harness"), client_id=client_id, produce=QUOTA)
        eventually(lambda: all(gauge(node, "ClusterQuotas", "Entities") == 2 for node in made.brokers))
        eventually(lambda: all(gauge(node, "Shares", "Brokers") == 3 for node in made.brokers))
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with three_brokers(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def load(cluster: Cluster, broker: int, client_id: str = "p") -> ProducerLoad:
    return ProducerLoad(cluster.client_config(client_id=client_id), f"t{broker}")


def limit(node: KafkaNode, client_id: str = "p") -> float:
    return limit_of(node, ANYONE, client_id)


def limits(cluster: Cluster, client_id: str = "p") -> list[float]:
    return [limit(node, client_id) for node in cluster.brokers]


@pytest.mark.proves("kip-13.per-broker")
def test_a_client_of_kafkas_quotas_has_its_whole_quota_on_each_broker(cluster: Cluster) -> None:
    rate = 1e6
    set_quota(cluster.brokers[0], {"producer_byte_rate": rate}, client_id="each")
    for node in cluster.brokers:
        introduce_clients(node, ["each"])
        eventually(lambda node=node: limit(node, "each") == rate)


def test_top_shows_a_client_of_all_brokers_in_one_row(cluster: Cluster) -> None:
    with load(cluster, 1, "q"), load(cluster, 2, "q"):

        def one_row_has_it_all() -> bool:
            look = top("--bootstrap", cluster.bootstrap, "--type", "PRODUCE", "--filter", "q")
            assert (sorted(look["brokers"]), look["silent"]) == (["1", "2", "3"], [])
            (row,) = [row for row in look["rows"] if row["client_id"] == "q"] or [{"brokers": []}]
            assert row.get("rate") == pytest.approx(2 * QUOTA / 3, rel=0.1)
            assert ({"1", "2"} <= set(row["brokers"]), row["bound_by"]) == (True, "quota")
            # ``share`` is for one broker: a client with its whole quota on one broker has nothing left on that broker.
            assert row["share"] > 0.8
            return True

        eventually(one_row_has_it_all)
        with Terminal("top", "--bootstrap", cluster.bootstrap, "--filter", "q", lines=60) as terminal:
            terminal.shows("3 of 3 brokers")
            terminal.press(b"\r")
            terminal.shows("---- broker 1 ----")
            terminal.press(b"\x1b[F")
            terminal.shows("---- broker 2 ----")
            terminal.press(b"\x1bq")
            assert terminal.ends() == 0


def check_quota_on_every_broker(cluster: Cluster) -> None:
    """Checks the client's rate on one broker, on another one to which it moves, and on all; a pipeline must run."""
    first, second, _ = cluster.brokers
    with load(cluster, 1) as one:
        eventually(lambda: limit(first) > 0.9 * QUOTA, what="one broker has nearly the whole quota")
        eventually(lambda: one.meter.rate_over(2) > 0.8 * QUOTA)
    with load(cluster, 2) as two:
        eventually(lambda: limit(second) > 0.9 * QUOTA, on_timeout=lambda: str(limits(cluster)))
        eventually(lambda: two.meter.rate_over(2) > 0.8 * QUOTA)
    with ExitStack() as stack:
        loads = [stack.enter_context(load(cluster, n)) for n in (1, 2, 3)]
        for node in cluster.brokers:
            eventually(lambda node=node: limit(node) == pytest.approx(QUOTA / 3, rel=0.1))
        wait_for_rate(pytest.approx(QUOTA, rel=0.1), *loads)
        assert all(not each.errors for each in loads)


def wait_for_equal_parts(cluster: Cluster) -> None:
    """Waits until the shares are stale and each broker gives an equal part."""
    eventually(lambda: gauge(cluster.brokers[0], "Shares", "Stale") == 1, what="shares are stale after validity")
    eventually(lambda: limits(cluster) == [QUOTA / 3] * 3)


@pytest.mark.proves("kip-13.cluster-wide")
def test_a_client_reaches_its_quota_on_one_broker_and_on_all_and_when_it_moves(cluster: Cluster) -> None:
    with FakeShares(cluster.client_config(client_id="pipeline")):
        check_quota_on_every_broker(cluster)
    wait_for_equal_parts(cluster)


def test_a_client_far_below_its_quota_keeps_room_on_every_broker_after_a_burst_on_one(cluster: Cluster) -> None:
    config = cluster.client_config(client_id="q")
    with ExitStack() as stack:
        pipeline = stack.enter_context(FakeShares(cluster.client_config(client_id="pipeline")))
        for n in (1, 2, 3):
            # The client sends a record every 0.8 s, so it is never silent, and it is never delayed.
            stack.enter_context(ProducerLoad(config, f"t{n}", 60_000, rate=75_000))
        with ProducerLoad(config, "t1"):
            eventually(lambda: limit(cluster.brokers[0], "q") > 0.9 * QUOTA)
        records_with_room: list[int] = []  # consecutive ones

        def stays() -> bool:
            if min(limits(cluster, "q")) <= 0.3 * QUOTA:
                records_with_room.clear()
            elif pipeline.sequence not in records_with_room:
                records_with_room.append(pipeline.sequence)
            return len(records_with_room) == 12

        eventually(stays, what="twelve records give each broker room", on_timeout=lambda: str(limits(cluster, "q")))


def test_partitions_that_are_added_to_the_topic_of_shares_are_found(cluster: Cluster) -> None:
    def fresh() -> bool:
        return all(gauge(node, "Shares", "Stale") == 0 for node in cluster.brokers)

    config = cluster.client_config(client_id="harness")
    with FakeShares(config) as pipeline:
        eventually(fresh, what="the shares in one partition are fresh")
        admin = AdminClient(config)
        (grown,) = admin.create_partitions([NewPartitions(SHARES, 7)]).values()
        grown.result(30)
        eventually(lambda: pipeline.partitions == 7)
        since = time.monotonic()
        eventually(
            lambda: all(time.monotonic() - since > gauge(node, "Shares", "Age") for node in cluster.brokers),
            what="each broker reads the partition of its own record",
        )
