"""Starting brokers serve as stock brokers do, and brokers change over to another version and back under load.

0.1.0 is the only version so far. A commit from the history stands for the version before it: the commit before the
records' field ``topics`` and the properties ``factor.scope``, ``pause.resume.free-share`` and ``pause.creation``.
"""

import io
import shutil
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Producer

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jars import BUILD, made_once
from harness.kafka.admin import alter_broker_config, create_topic, creates
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, ROOT
from harness.system.background import Background
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.numbers import attempt, end_offset
from tests.broker.support.seen import OPEN, PAUSE, gauge, state, transitions, wait_for_state
from tests.skips import COULD_NOT_RUN

TOPIC: Final = "replicated"
COMMIT: Final = "516f3d4"
VALIDITY: Final = 20  # seconds: the change of one broker may stop producers for less than this
SETTINGS: Final = {
    "factor.source": "snapshots",
    "startup.grace": "30s",
    "snapshots.period": "1s",
    "validity": f"{VALIDITY}s",
    "static.produce": "5M",
}
# Properties that the older version doesn't know.
NEW: Final = {
    "factor.scope": "topics",
    "pause.resume.free-share": "0.5",
    "pause.creation": "allow",
    "exempt.principals": "User:x",
}
HARD: Final = PREFIX + "static.storage.hard"


# ---- the start ----


class FirstRequests(Background):
    """Creates topics and writes to them, from before the brokers listen until it is stopped."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self._config = config | {"log_level": 0, "reconnect.backoff.max.ms": 100}
        self.refusals: list[str] = []
        self.created = 0

    def _run(self) -> None:
        tries = 0
        while not self._stopping.is_set():
            topic, tries = f"first-{tries}", tries + 1
            if creates(self._config, topic, 3, 1, self.refusals):
                self.created += 1
                for partition in range(3):
                    if (error := attempt(self._config, topic, partition)) is not None:
                        self.refusals.append(f"record: {error}")


@pytest.mark.parametrize("source", ["cluster-volumes", pytest.param("snapshots", marks=pytest.mark.long)])
@pytest.mark.proves("faults.cold-start")
def test_topics_and_records_of_the_first_moment_are_taken_as_by_a_stock_cluster(tmp_path: Path, source: str) -> None:
    settings = {"factor.source": source, "static.storage.hard.min-free-bytes": "1"}
    settings["validity"] = "20s"  # no cluster record ever arrives; after this time the standby answers
    properties = callback_properties(settings) | FENCE
    cluster = Cluster(tmp_path, brokers=3, classpath=[JAR], properties=properties)
    with FirstRequests(cluster.client_config(client_id="first")) as first, cluster:
        eventually(lambda: first.created > 5)
        assert first.refusals == []
        assert transitions(*cluster.brokers) == [0, 0, 0]
        eventually(lambda: [gauge(node, "Factor", "Unknown") for node in cluster.brokers] == [0, 0, 0])
        assert first.refusals == []
        for node in cluster.brokers:
            assert state(node) == OPEN
            assert "-> PAUSE" not in node.log_text()
            assert "The fence is closed" not in node.log_text()
        first.stop()  # while the brokers still answer


@pytest.mark.proves("faults.full-at-start")
def test_a_broker_whose_disk_is_full_when_it_starts_appends_no_byte(tmp_path: Path) -> None:
    settings = {"factor.source": "local"}
    with callback_node(tmp_path, settings, properties=FENCE) as node:
        create_topic(node, "t")
        assert attempt(node.client_config(client_id="p"), "t") is None
        before = end_offset(node, "t")
        node.stop()
    node.properties |= callback_properties(settings | {"static.storage.hard": "1"})

    own = {"log_level": 0, "reconnect.backoff.max.ms": 100, "linger.ms": 0}
    producer = Producer(node.client_config(client_id="p") | own)
    for _ in range(500):
        producer.produce("t", bytes(1000))
    with node:
        eventually(lambda: gauge(node, "Fence", "Rejections") > 0)
        assert state(node) == PAUSE
        assert end_offset(node, "t") == before
        refusals = list[str]()
        eventually(lambda: not creates(node.client_config(), "u", 1, 1, refusals) and refusals)
        assert [refusal.partition(":")[0] for refusal in refusals] == ["POLICY_VIOLATION"]
        producer.purge()
        producer.flush(10)


# ---- another version ----------------------------------------------------------------------------------------------


def goes_on(load: ProducerLoad) -> None:
    """Waits until a megabyte more has been acknowledged."""
    before = load.meter.bytes
    eventually(lambda: load.meter.bytes > before + 1_000_000)


class Build(NamedTuple):
    """A jar, and an interpreter in which the quotahost of the same version is installed."""

    jar: Path
    python: str


def older() -> Build:
    """The older build, made once in ``build/``; skips the test if this clone lacks the commit."""
    known = subprocess.run(["git", "-C", str(ROOT), "cat-file", "-e", f"{COMMIT}^{{tree}}"], check=False)
    if known.returncode != 0:
        pytest.skip(f"{COULD_NOT_RUN}commit {COMMIT} of the older version isn't in this clone")
    target = made_once(BUILD / "older" / COMMIT, _build)
    return Build(target / "quotahost.jar", str(target / "venv/bin/python"))


def _build(into: Path) -> None:
    """Makes an environment of its own, since another version may need another jpype1, and the jar."""
    tree, python = into / "tree", into / "venv/bin/python"
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(tree, filter="data")
    # The complete folder is moved later. Only the scripts in venv/bin, which no test calls, contain its old path.
    subprocess.run([sys.executable, "-m", "venv", str(into / "venv")], check=True)
    for folder in ("plugin/quotahost/_jar", "plugin/quotahost/pipeline/spark/jars"):
        (tree / folder).mkdir(parents=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", str(tree)], check=True)
    # This tree's attach libraries serve, because their source is the same. The older version has them in its jar.
    natives = ROOT / "plugin/quotahost/_jar/native"
    shutil.copytree(natives, tree / "build/jar-resources/org/quotahost/native", copy_function=shutil.copy)
    subprocess.run([str(python), str(tree / "tools/jar_resources.py")], check=True)
    subprocess.run(["mvn", "-q", "-B", "-f", str(tree / "java-shim/pom.xml"), "-DskipTests", "package"], check=True)
    shutil.copy(tree / "java-shim/target/quotahost.jar", into / "quotahost.jar")
    shutil.rmtree(tree)


def choose(node: KafkaNode, build: Build) -> None:
    """Makes the node run this build from its next start on."""
    node.classpath = [build.jar]
    node.properties = node.properties | {PREFIX + "python.executable": build.python}


def change_over(cluster: Cluster, build: Build, load: ProducerLoad) -> None:
    """Restarts each broker with the build, one after the other; each time all brokers must know each other again."""
    for node in cluster.brokers:
        node.stop()
        choose(node, build)
        node.start()
        eventually(lambda: all(gauge(each, "Brokers", "LastKnown") == 0 for each in cluster.brokers))
        wait_for_state(cluster, OPEN)
        goes_on(load)
        # Brokers of the other version understand this broker's snapshots: its disk is full, and then it is not.
        alter_broker_config(node, {HARD: "1"}, broker=node.node_id)
        wait_for_state(cluster, PAUSE)
        alter_broker_config(node, {HARD: None}, broker=node.node_id)
        wait_for_state(cluster, OPEN)
        goes_on(load)
    for bean in ("Plugin,name=snapshots", "Plugin,name=publish-volumes", "Watch"):
        assert [gauge(node, bean, "Errors") for node in cluster.brokers] == [0, 0, 0], bean


@pytest.mark.long
@pytest.mark.proves("faults.two-versions")
def test_brokers_of_both_versions_serve_together_on_the_way_up_and_down(tmp_path: Path) -> None:
    old, new = older(), Build(JAR, sys.executable)
    made = Cluster(tmp_path, brokers=3, properties=callback_properties(SETTINGS) | QUICK_QUOTAS | FENCE, probe=True)
    for node in made.brokers:
        choose(node, old)
    with made as cluster:
        wait_for_state(cluster, OPEN)
        create_topic(cluster.brokers[0], TOPIC, partitions=3, replicas=3, config={"min.insync.replicas": "2"})
        with ProducerLoad(cluster.client_config(client_id="p"), TOPIC, rate=500e3) as load:
            change_over(cluster, new, load)
            alter_broker_config(cluster.brokers[0], {PREFIX + name: value for name, value in NEW.items()})
            assert all(gauge(node, "Host", "ConfigRefused") == 0 for node in cluster.brokers)
            change_over(cluster, old, load)
            for node in cluster.brokers:
                assert gauge(node, "Host", "ConfigRefused") == 1
                assert "factor.scope: unknown property" in node.log_text(), "the log names the property that is ignored"
            assert load.drain() == 0
    assert load.errors == []
    silences = (later - earlier for earlier, later in pairwise(load.meter._times))
    assert max(silences) < VALIDITY, "no gap between acknowledgements reaches validity"
