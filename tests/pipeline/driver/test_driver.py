"""The driver runs in a process of its own: the tests kill it, start it twice, destroy its checkpoint and set its clock,
and run it on a Spark cluster of a master and two workers.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
import pytest

from harness.kafka.admin import create_topic, delete_topics
from harness.kafka.node import KafkaNode
from harness.system.pipeline import PipelineProcess
from harness.system.ports import free_port
from harness.system.process import LoggedProcess
from harness.system.proxy import Proxy
from harness.system.waiting import eventually
from quotahost.model import QuotaType
from quotahost.pipeline.main import submit_line
from quotahost.pipeline.options import Options
from quotahost.records import shares
from quotahost.records.topics import SHARES
from quotahost.records.usage import ClientKey, Used
from tests.broker.support.node import listener_properties
from tests.pipeline.records import volume
from tests.pipeline.topics import SNAPSHOTS, Snapshots, dead_letters, latest, published, read_all
from tests.skips import COULD_NOT_RUN

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
    """Publishes snapshots of 50 brokers, round by round, and one bad record for each ten brokers."""

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

    def told(self, rounds: int, brokers: int = BROKERS) -> None:
        self.publish(rounds, brokers)
        self.wait()

    def wait(self) -> None:
        used = sum(self._sizes.values())
        eventually(lambda: (found := latest(self._node.bootstrap)) and found.consumed == used, PATIENCE)

    def check_what_was_published(self) -> None:
        orders = [(each.run, each.sequence) for each in published(self._node.bootstrap)]
        assert orders == sorted(orders), "records are published in the order of run and sequence"
        found = dead_letters(self._node.bootstrap)
        assert {each["value"] for each in found} == {f"{{bad {n}" for n in range(1, self.refused + 1)}
        assert len({each["id"] for each in found}) == self.refused, "each refused record has exactly one key"


@pytest.mark.proves("faults.driver-killed")
def test_a_driver_killed_five_times_has_the_right_record_and_every_dead_letter(node: KafkaNode, tmp_path: Path) -> None:
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
    assert runs == sorted(set(runs))
    story.check_what_was_published()


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
            # A standby pipeline also keeps up with the clients' usage.
            Snapshots(node.bootstrap).use("1", Used(*KEY, 1.0, None, 1e6))
            eventually(lambda: first.metric("rows_total", query="shares") >= 1, PATIENCE)
        # The first pipeline goes on, with a new run.
        eventually(lambda: (found := latest(node.bootstrap)) and found.run > winner and found.reporting, PATIENCE)


@pytest.mark.proves("faults.two-pipelines")
def test_the_same_command_twice_stands_by_until_the_first_ends(node: KafkaNode, tmp_path: Path) -> None:
    """Otherwise the two pipelines would end each other's queries, because they share a checkpoint."""
    story = Story(node)
    first = pipeline(node, tmp_path / "first")
    second = pipeline(node, tmp_path / "second", checkpoint=tmp_path / "first/checkpoint", metrics_port=free_port())
    with first:
        story.told(1)
        runs = {each.run for each in published(node.bootstrap)}
        second.launch()
        try:
            second.wait_for_log("another pipeline uses the same --checkpoint or --history; this one stands by")
            assert second.metric("standing_by") == 1
            story.told(1)
            assert {each.run for each in published(node.bootstrap)} == runs
            assert "failed and is started again" not in first.log_text()
            first.kill()
            story.told(1)
            assert second.metric("standing_by") == 0
            assert len({each.run for each in published(node.bootstrap)}) == 2
            os.killpg(second.pid, signal.SIGTERM)  # to its JVM as well, as systemd does
            eventually(lambda: not second.running, PATIENCE)
            assert second.exit_code == 0
            assert "Traceback" not in second.log_text()
        finally:
            second.kill()


@pytest.mark.proves("faults.checkpoint")
def test_a_checkpoint_that_spark_cannot_read_is_set_aside_and_the_same_rebuilt(node: KafkaNode, tmp_path: Path) -> None:
    driver = pipeline(node, tmp_path / "pipeline")
    story = Story(node)
    with driver:
        story.told(2)
        Snapshots(node.bootstrap).use("1", Used(*KEY, 1.0, None, 1e6))
        eventually(lambda: len(dead_letters(node.bootstrap)) == story.refused, PATIENCE)
        eventually(lambda: read_all(node.bootstrap, SHARES.name), PATIENCE)
    place = tmp_path / "pipeline/checkpoint"
    for file in (*(place / "volumes").rglob("*.delta"), *(place / "refused").rglob("*")):
        if file.is_file():
            file.write_bytes(b"no checkpoint of Spark's")
    with driver:
        driver.wait_for_log("query volumes failed 5 times in a row and restarts from the topics", PATIENCE)
        assert "\tat " not in driver.log_text(), "the log has the reason for an operator, but no stack of Spark's"
        story.told(1)
        assert [path.is_dir() for path in place.glob("volumes.set-aside-*")] == [True]
        eventually(lambda: len(dead_letters(node.bootstrap)) >= 2 * story.refused - BROKERS // 10, PATIENCE)
    story.check_what_was_published()
    # With another topics_prefix the state of the first topics doesn't count any more, and a client gets one share only.
    second = Snapshots(node.bootstrap, "second.")
    with pipeline(node, tmp_path / "pipeline", topics_prefix="second."):
        second.publish("1", [volume("/a", 100, 7)])
        second.use("1", Used(*KEY, 1.0, None, 1e6))
        eventually(lambda: [each.consumed for each in published(node.bootstrap, "second.cluster_volumes")[-1:]] == [7])
        (told,) = eventually(lambda: read_all(node.bootstrap, "second.shares")[-1:], PATIENCE)
        assert [each.key for each in shares.decode(b"1", told.value() or b"").clients] == [KEY]


@pytest.mark.proves("faults.topic-deleted")
def test_records_go_on_when_a_topic_is_made_again_with_fewer_partitions(node: KafkaNode, tmp_path: Path) -> None:
    """The pipeline is killed in its first batch, and reads it again: from a partition that no longer exists."""
    create_topic(node, SNAPSHOTS, partitions=2)
    driver, story = pipeline(node, tmp_path / "pipeline"), Story(node)
    story.publish(2)
    driver.start(PATIENCE)
    eventually((tmp_path / "pipeline/checkpoint/volumes/offsets/0").exists, PATIENCE)
    driver.kill()
    (tmp_path / "pipeline/checkpoint/volumes/commits/0").unlink(missing_ok=True)
    delete_topics(node, SNAPSHOTS)
    with driver:
        driver.wait_for_log("query volumes failed 5 times in a row and restarts from the topics", 2 * PATIENCE)
        story.told(1)


def test_a_stop_waits_for_no_answer_where_the_network_swallows_all_and_a_disk_hangs(tmp_path: Path) -> None:
    """The history's disk hangs: one of its files is a pipe into which no process writes."""
    (checkpoint := tmp_path / "history/_checkpoint").mkdir(parents=True)
    os.mkfifo(checkpoint / "metadata")
    node, port = KafkaNode(tmp_path / "node"), free_port()
    with Proxy(port) as network:
        node.properties = listener_properties(node, "PROXIED", "PLAINTEXT", port, network.port)
        options = {"tick": "1s", "validity": "10m", "history": tmp_path / "history"}
        driver = PipelineProcess(tmp_path / "pipeline", f"127.0.0.1:{network.port}", **options)
        with node, driver:
            # The history's query starts next.
            eventually((tmp_path / "pipeline/checkpoint/shares/metadata").exists, PATIENCE)
            before = len(published(node.bootstrap))
            eventually(lambda: len(published(node.bootstrap)) > before, PATIENCE)
            network.swallow()
            assert driver.stop(timeout=20) == 0


# ---- the clock of the driver's machine: a test may not set it, so a small library shifts the clock of the process ----

#: Adds the seconds in the file $ADDED to the wall clock, in the function by which Python and Java read the clock.
LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *found) {
    int (*ask)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = ask(clock, found);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("ADDED"), "r") : NULL;
    if (file) {
        long added = 0;
        if (fscanf(file, "%ld", &added) == 1) found->tv_sec += added;
        fclose(file);
    }
    return failed;
}
"""


@pytest.mark.proves("faults.clock")
def test_records_go_on_and_no_broker_is_stale_when_the_clock_is_set(
    node: KafkaNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip(f"{COULD_NOT_RUN}there is no cc to compile the library that sets a process's clock")
    source, library, added = (tmp_path / name for name in ("clock.c", "clock.so", "added"))
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    driver = PipelineProcess(tmp_path / "pipeline", node.bootstrap, tick="1s", validity="20s")
    with monkeypatch.context() as of_driver:
        of_driver.setenv("LD_PRELOAD", str(library))
        of_driver.setenv("ADDED", str(added))
        driver.start(PATIENCE)
    brokers, told = Snapshots(node.bootstrap), 0

    def follows(after: int) -> bool:
        nonlocal told
        told += 1
        brokers.publish("1", [volume("/a", 10**6, told)])
        brokers.flush()
        return published(node.bootstrap)[-1].consumed > after

    try:
        eventually(lambda: follows(0), PATIENCE, poll=1)
        for seconds in ("3600", "-3600", "0"):
            added.write_text(seconds)
            now = told
            eventually(lambda now=now: follows(now + 5), PATIENCE, poll=1)
        assert {each.stale for each in published(node.bootstrap)} == {0}
        assert "Removing executor" not in driver.log_text(), "Spark logs errors forever once it loses its own executor"
    finally:
        driver.kill()


# ---- a Spark cluster: all its processes run on this machine, so a local directory is the shared file system ----

HOME: Final = Path(pyspark.__file__).parent


@contextmanager
def spark_cluster(directory: Path) -> Iterator[tuple[str, LoggedProcess]]:
    """Runs the cluster; yields the address of its master, and one of its workers."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    worker = ("worker.Worker", "--cores", "1", "--memory", "700m", url)
    commands = {"master": ("master.Master", "--port", str(port)), "worker-1": worker, "worker-2": worker}
    with ExitStack() as stack:
        for name, (kind, *arguments) in commands.items():
            part = LoggedProcess(directory / f"{name}.log")
            stack.callback(part.kill)
            command = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
            environment = {"SPARK_WORKER_DIR": str(directory / name), "SPARK_LOCAL_IP": "127.0.0.1"}
            part.launch_command([*command, "--webui-port", str(free_port()), *arguments], os.environ | environment)
            part.wait_for_log("Starting Spark master|Successfully registered with master", PATIENCE)
        yield url, part


class Submitted(PipelineProcess):
    """Runs the line that ``--print-submit`` prints, with pyspark's spark-submit and less memory."""

    def __init__(self, directory: Path, options: Options) -> None:
        super().__init__(directory, options.bootstrap)
        line = submit_line(options).replace("spark-submit", str(HOME / "bin/spark-submit"), 1)
        small = "--conf spark.executor.memory=512m --conf spark.driver.memory=700m --conf spark.driver.host=127.0.0.1"
        self._command = ["bash", "-c", "exec " + line.replace("--master", f"{small} --master", 1)]


def test_state_and_history_outlive_a_worker_and_the_driver_and_lie_in_one_place(
    node: KafkaNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/python3")  # like the first python3 in PATH, it may lack this package
    shared, story = tmp_path / "shared/checkpoint", Story(node)
    shared.parent.mkdir()
    place = f"file://{shared}"
    with spark_cluster(tmp_path) as (url, worker):
        options = Options(bootstrap=node.bootstrap, checkpoint=place, tick="1s", validity="10m", master=url)
        driver = Submitted(tmp_path / "driver", options)
        with driver:
            story.told(2)
            worker.kill()
            # Only some brokers publish, so the other brokers' volumes must come from the state.
            story.told(2, brokers=25)
        assert list((shared / "volumes/state").rglob("*.delta")), "the state is in the shared directory"
        with driver:
            story.told(1, brokers=12)
        assert not list(shared.glob("*.set-aside-*")), "Spark could read the state"
