"""The driver as a process of its own: killed, doubled, robbed of its checkpoint."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.kafka.node import KafkaNode
from harness.system.pipeline import PipelineProcess
from harness.system.ports import free_port
from harness.system.proxy import Proxy
from harness.system.waiting import eventually
from quotahost.model import QuotaType
from quotahost.records.usage import ClientKey, Used
from tests.broker.support.node import listener_properties
from tests.pipeline.support.records import volume
from tests.pipeline.support.topics import Snapshots, dead_letters, newest, published

pytestmark = pytest.mark.driver
PATIENCE = 240.0  # seconds
BROKERS = 50
KEY = ClientKey("", "app", QuotaType.PRODUCE)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path / "node") as node:
        yield node


def pipeline(node: KafkaNode, directory: Path, **more: object) -> PipelineProcess:
    return PipelineProcess(directory, node.bootstrap, tick="1s", validity="10m", **more)


class Story:
    """Snapshots of 50 brokers, round by round, and one bad record for each ten of them."""

    def __init__(self, node: KafkaNode) -> None:
        self._node, self._round, self.refused, self._sizes = node, 0, 0, dict[int, int]()

    def publish(self, rounds: int, brokers: int = BROKERS) -> None:
        writer = Snapshots(self._node.bootstrap)
        for _ in range(rounds):
            self._round += 1
            for broker in range(brokers):
                self._sizes[broker] = self._round * 1000 + broker
                writer.publish(str(broker), [volume("/a", 10**9, self._sizes[broker])])
                if broker % 10 == 0:
                    self.refused += 1
                    writer.write(str(broker), b"{bad %d" % self.refused)
        writer.flush()

    def told(self, rounds: int) -> None:
        self.publish(rounds)
        self.wait()

    def wait(self) -> None:
        used = sum(self._sizes.values())
        eventually(lambda: (found := newest(self._node.bootstrap)) and found.consumed == used, PATIENCE)


@pytest.mark.proves("faults.driver-killed")
def test_a_driver_killed_five_times_ends_with_the_right_record_and_every_dead_letter(
    node: KafkaNode, tmp_path: Path
) -> None:
    driver = pipeline(node, tmp_path / "pipeline")
    story = Story(node)
    runs = []
    for _ in range(5):
        runs.append(driver.start(PATIENCE))
        records = len(published(node.bootstrap))
        story.publish(20)
        eventually(lambda: len(published(node.bootstrap)) > records, PATIENCE)  # noqa: B023
        story.publish(20)
        driver.kill()
    with driver:
        story.wait()
        eventually(lambda: len({each["value"] for each in dead_letters(node.bootstrap)}) == story.refused, PATIENCE)
    orders = [each.order for each in published(node.bootstrap)]
    assert orders == sorted(orders), "a record that came later was older"
    assert runs == sorted(set(runs))
    found = dead_letters(node.bootstrap)
    assert {each["value"] for each in found} == {f"{{bad {n}" for n in range(1, story.refused + 1)}
    assert len({each["id"] for each in found}) == story.refused, "one record has more than one key"


@pytest.mark.proves("faults.two-pipelines")
def test_of_two_pipelines_the_one_launched_last_wins_and_both_say_so(node: KafkaNode, tmp_path: Path) -> None:
    story = Story(node)
    with pipeline(node, tmp_path / "first", metrics_port=free_port()) as first:
        story.told(1)
        with pipeline(node, tmp_path / "second") as second:
            first.wait_for_log("launched later and wins, this one stands by", PATIENCE)
            story.told(1)
            winner = max(each.run for each in published(node.bootstrap))
            eventually(lambda: {each.run for each in published(node.bootstrap)[-4:]} == {winner}, PATIENCE)
            assert "this one was launched later and wins" in second.log_text()
            # A pipeline that stands by keeps up with the clients' usage, too.
            Snapshots(node.bootstrap).use("1", Used(*KEY, 1.0, None, 1e6))
            eventually(lambda: first.metric("rows_total", query="shares") >= 1, PATIENCE)
        # The first goes on, with a new run.
        eventually(lambda: (found := newest(node.bootstrap)) and found.run > winner and found.reporting, PATIENCE)


@pytest.mark.proves("faults.two-pipelines")
def test_the_same_command_twice_stands_by_until_the_first_ends(node: KafkaNode, tmp_path: Path) -> None:
    """Otherwise the two would end each other's queries, which have one checkpoint."""
    story = Story(node)
    first = pipeline(node, tmp_path / "first")
    second = pipeline(node, tmp_path / "second", checkpoint=tmp_path / "first/checkpoint")
    with first:
        story.told(1)
        runs = {each.run for each in published(node.bootstrap)}
        second.launch()
        try:
            second.wait_for_log("another pipeline uses the same --checkpoint or --history; this one stands by")
            story.told(1)
            assert {each.run for each in published(node.bootstrap)} == runs
            assert "failed and is started again" not in first.log_text()
            first.kill()
            story.told(1)
            assert len({each.run for each in published(node.bootstrap)}) == 2
            os.killpg(second.pid, signal.SIGTERM)  # to its JVM as well, as systemd does
            eventually(lambda: not second.running, PATIENCE)
            assert second.exit_code == 0
        finally:
            second.kill()


@pytest.mark.proves("faults.checkpoint")
def test_a_checkpoint_that_spark_cannot_read_is_set_aside_and_the_same_rebuilt(node: KafkaNode, tmp_path: Path) -> None:
    driver = pipeline(node, tmp_path / "pipeline")
    story = Story(node)
    with driver:
        story.told(2)
        eventually(lambda: len(dead_letters(node.bootstrap)) == story.refused, PATIENCE)
    place = tmp_path / "pipeline/checkpoint"
    for file in (*(place / "volumes").rglob("*.delta"), *(place / "refused").rglob("*")):
        if file.is_file():
            file.write_bytes(b"no checkpoint of Spark's")
    with driver:
        driver.wait_for_log("query volumes begins anew from the topics, because it has failed 5 times", PATIENCE)
        assert "\tat " not in driver.log_text(), "an operator reads why, and Spark's stacks are for its developers"
        story.told(1)
        assert [path.is_dir() for path in place.glob("volumes.set-aside-*")] == [True]
        eventually(lambda: len(dead_letters(node.bootstrap)) >= 2 * story.refused - BROKERS // 10, PATIENCE)
    assert len({each["id"] for each in dead_letters(node.bootstrap)}) == story.refused, (
        "one record has more than one key"
    )
    orders = [each.order for each in published(node.bootstrap)]
    assert orders == sorted(orders), "a record that came later was older"


def test_a_stop_waits_for_no_answer_where_the_network_swallows_all(tmp_path: Path) -> None:
    node, port = KafkaNode(tmp_path / "node"), free_port()
    with Proxy(port) as network:
        node.properties = listener_properties(node, "PROXIED", "PLAINTEXT", port, network.port)
        driver = PipelineProcess(tmp_path / "pipeline", f"127.0.0.1:{network.port}", tick="1s", validity="10m")
        with node, driver:
            eventually(lambda: published(node.bootstrap), PATIENCE)
            network.swallow()
            assert driver.stop(timeout=20) == 0
