"""Budgets of storage on a real broker slow and stop the clients that write to a budget's topics, and no others."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad, fill_topic
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX
from harness.system.process import children
from harness.system.waiting import eventually
from quotahost.kafka.commands import CompactedTopic
from quotahost.model.budgets import Budget
from quotahost.records.budgets import encode, key_of
from quotahost.records.topics import USAGE
from tests.broker.support.commands import connect_as, explain_client, quotahost
from tests.broker.support.node import callback_node, cluster_with_fence
from tests.broker.support.numbers import attempt, end_offset, stopped_at
from tests.broker.support.quotas import QUOTAS
from tests.broker.support.seen import OPEN, gauge, state, wait_for_rate

QUOTA: Final = 1e6  # bytes/s of each user
SETTINGS: Final = {
    "factor.source": "snapshots",
    "static.scope": "user",
    "static.produce": "1M",
    "budgets": "on",
    "budget.soft.share": "0.2",
    "python.process": "child",
    "tasks": "publish-volumes,publish-usage",  # publish-usage creates the quotas' topic if there never was one
}
BUDGET: Final = "orders"
#: For producers; otherwise a quick producer may write all records to one partition, which another broker leads.
EVERYWHERE: Final = {"sticky.partitioning.linger.ms": 0}
FULL_RATE: Final = pytest.approx(QUOTA, rel=0.15)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    users = {"alice": "a", "bob": "b", "root": "s3cret"}
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, SETTINGS, users=users, properties=QUICK_QUOTAS | FENCE) as node:
        for topic in ("orders.eu", "orders.us", "other"):
            create_topic(node, topic)
        yield node


@pytest.fixture(scope="module")
def client(node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return connect_as(node, "root", tmp_path_factory.mktemp("client"))


def apply(client: list[str], file: Path, size: str) -> None:
    file.write_text(f"topic-labels: {{team: [orders.*]}}\nbudgets:\n- {{name: {BUDGET}, label: team, bytes: {size}}}\n")
    result = quotahost("quotas", "apply", "--yes", file, *client)
    assert result.exit_code == 0, result.output


def factor(node: KafkaNode) -> float:
    return gauge(node, f"Budget,name={BUDGET}", "Factor")


def upgrade(node: KafkaNode) -> None:
    alter_broker_config(node, {PREFIX + "python.generation": "next"})


def end_child(node: KafkaNode) -> None:
    """Kills the Python that serves; it is the broker's only child process."""
    (child,) = children(node.pid)
    os.kill(child, signal.SIGKILL)


def is_shown(node: KafkaNode) -> bool:
    """Whether a broker has read the budget."""
    return bool(Jmx(node).query("quotahost:type=Budget,*"))


def test_its_writers_alone_are_slowed_stopped_and_let_go_on(node: KafkaNode, client: list[str], tmp_path: Path) -> None:
    file = tmp_path / "budgets.yaml"
    apply(client, file, "20M")
    eventually(lambda: is_shown(node))
    there = ProducerLoad(node.client_config("alice", "there"), "orders.eu")
    beside = ProducerLoad(node.client_config("alice", "beside"), "other")  # shares alice's quota
    elsewhere = ProducerLoad(node.client_config("bob", "elsewhere"), "other")
    begin = time.monotonic()
    with there, beside, elsewhere:
        eventually(lambda: 0 < factor(node) < 0.7)
        assert state(node) == OPEN  # the state of the volumes
        eventually(lambda: f"uses the budget {BUDGET} of 20,000,000 bytes" in explain_client(node, "alice", "there")[1])
        wait_for_rate(FULL_RATE, elsewhere, since=begin)

        apply(client, file, "2M")  # less than the topics have already
        eventually(lambda: factor(node) == 0)
        eventually(lambda: gauge(node, "Fence", "Closed") == 1)
        stopped = stopped_at(node, "orders.eu")
        wait_for_rate(FULL_RATE, beside)
        wait_for_rate(FULL_RATE, elsewhere)
        assert [end_offset(node, "orders.eu")] == stopped
        assert attempt(node.client_config("alice", "new"), "orders.us") == "NOT_ENOUGH_REPLICAS"
        assert attempt(node.client_config("alice", "new"), "other") is None
        words = "of 2.00 MB are used in the cluster; the largest on this broker: orders.eu ("
        eventually(lambda: "turned back" in (told := explain_client(node, "alice", "there")[1]) and words in told)

    delete_topics(node, "orders.eu")
    eventually(lambda: factor(node) == 1)
    eventually(lambda: attempt(node.client_config("alice", "new"), "orders.us") is None)
    assert gauge(node, "Fence", "Closed") == 0

    # The cluster has the budget that the file declares. When the budget is removed, no client is slowed.
    exported = quotahost("quotas", "export", *client).output
    assert f"- name: {BUDGET}\n  bytes: 2M\n  of: leaders\n  topics:\n  - orders.*\n" in exported
    file.write_text("budgets: []\nprune: true\n")
    assert "remove" in quotahost("quotas", "apply", "--yes", file, *client).output
    eventually(lambda: not is_shown(node))


def test_no_new_python_or_broker_opens_a_used_up_budget(node: KafkaNode, client: list[str], tmp_path: Path) -> None:
    create_topic(node, "orders.asia")
    fill_topic(node.client_config("bob"), "orders.asia", 100_000)
    apply(client, tmp_path / "budgets.yaml", "1K")
    eventually(lambda: attempt(node.client_config("alice", "new"), "orders.asia") == "NOT_ENOUGH_REPLICAS")
    end_before = end_offset(node, "orders.asia")
    often = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 5}
    with ProducerLoad(node.client_config("alice", "there") | often, "orders.asia"):
        ends: list[Callable[[KafkaNode], object]] = [end_child, upgrade, KafkaNode.stop]
        for size, end in enumerate(ends, start=2):
            end(node)
            if not node.running:
                node.start()
            apply(client, tmp_path / "budgets.yaml", f"{size}K")
            eventually(lambda size=size: gauge(node, f"Budget,name={BUDGET}", "Bytes") == size * 1000)
            eventually(lambda: factor(node) == 0)
    assert end_offset(node, "orders.asia") == end_before


@pytest.mark.proves("faults.topic-deleted")
def test_a_deleted_topics_quotas_hold_until_it_is_made_anew(node: KafkaNode, client: list[str], tmp_path: Path) -> None:
    """They hold even if brokers don't notice the deletion in time and the new topic has more records than the old."""
    file = tmp_path / "budgets.yaml"

    def alone(*names: str) -> None:
        file.write_text("\n".join(["budgets:", *(f"- {{name: {name}, topics: [none], bytes: 1G}}" for name in names)]))
        assert quotahost("quotas", "apply", "--yes", file, *client).exit_code == 0
        beans = {f"quotahost:type=Budget,name={name}" for name in names}
        eventually(lambda: set(Jmx(node).query("quotahost:type=Budget,*")) == beans)

    def delete() -> None:
        eventually(lambda: gauge(node, "Connection,name=snapshots-budgets", "Connected") == 1)
        delete_topics(node, QUOTAS)
        eventually(lambda: gauge(node, "Connection,name=snapshots-budgets", "Connected") == 0)

    delete()
    alone("one")
    delete()
    delete_topics(node, USAGE.name)
    eventually(lambda: end_offset(node, USAGE.name) > 2, what="publish-usage has made its own topic anew, and no other")
    assert gauge(node, "Budget,name=one", "Bytes") == 1e9
    alone("another")
    delete_topics(node, QUOTAS)
    alone(*map(str, range(60)))


@pytest.mark.long
def test_each_byte_counts_once_when_pythons_or_brokers_end_and_others_lead_what_they_led(tmp_path: Path) -> None:
    # Other brokers show a broker as out of service when its last snapshot is older than validity.
    size, settings = 3_000_000, {**SETTINGS, "budget.soft.share": "0.9", "validity": "25s"}
    used_up, half_used = "used-up", "half-used"
    with cluster_with_fence(tmp_path, settings) as cluster:
        create_topic(cluster.brokers[0], "orders", partitions=6, replicas=3)
        fill_topic(cluster.client_config() | EVERYWHERE, "orders", size)
        quotas = CompactedTopic(cluster.client_config(), QUOTAS, "quotahost-quotas")

        def write(*budgets: Budget) -> None:
            assert quotas.write({key_of(budget.name): encode(budget) for budget in budgets}) == {}

        write(*(Budget(name, ("orders",), most) for name, most in ((used_up, size), (half_used, 2 * size))))
        told: list[float] = []

        def used(nodes: Sequence[KafkaNode]) -> float:
            """The smallest sum that a broker has; the largest is added to ``told``."""
            each = [gauge(node, f"Budget,name={half_used}", "Used") for node in nodes]
            told.append(max(each))
            return min(each)

        def ends() -> list[int]:
            return [end_offset(cluster.brokers[0], "orders", partition) for partition in range(6)]

        first, second, third = everybody = cluster.brokers
        eventually(lambda: all(map(is_shown, everybody)) and used(everybody) >= size)
        eventually(lambda: all(gauge(node, "Fence", "Closed") == 1 for node in everybody))
        before = ends()
        with ProducerLoad(cluster.client_config() | EVERYWHERE, "orders"):
            end_child(second)
            write(Budget("by-the-next-python", ("none",), size))
            eventually(lambda: gauge(second, "Budget,name=by-the-next-python", "Bytes") == size)
            assert used(everybody) >= size
            for broker in (second, first):
                broker.stop()
                # If the broker came back earlier, the bytes that it led would be missing (docs/quotas.md).
                eventually(lambda: gauge(third, "Brokers", "LastKnown") == 1)
                broker.start()
                # The broker has just begun to read. By now the others count the bytes that it led.
                eventually(lambda: used(everybody) >= size)
            third.kill()
            eventually(lambda: gauge(first, "Brokers", "LastKnown") == 1)
            assert used([first, second]) >= size
        assert ends() == before
        assert max(told) < size * 1.1
