"""The harness itself on real brokers: names of every kind, secrets, older versions, and that no broker stays behind.

All else of it is used, and so tested, by the tests of the product.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad, fill_topic
from harness.java.helper import HelperError
from harness.java.jars import broker_jars
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, create_topic, describe_quotas, set_quota
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.long]

SPECIAL_NAME = 'a:"b\tü\n *?=,#\\'
PASSWORDS = {"alice": 'p"1\\ =x', SPECIAL_NAME: "pässwörd:2"}
RATE = 3e6


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("node")
    with KafkaNode(directory, users=PASSWORDS, probe=True, log_dirs=2, properties=dict(QUICK_QUOTAS)) as node:
        create_topic(node, "t", partitions=2)
        fill_topic(node.client_config(), "t", 30_000_000)
        yield node


def test_an_unlimited_producer_is_not_throttled_and_drains(node: KafkaNode) -> None:
    load = ProducerLoad(node.client_config("alice", "free"), "t", rate=1e6).start()
    eventually(lambda: load.meter.messages >= 100)
    assert load.drain() == 0
    assert load.max_throttle() == 0
    assert load.meter.bytes == load.meter.messages * 10_000


def test_special_names_arrive_unchanged_from_client_and_operator(node: KafkaNode) -> None:
    set_quota(node, {"producer_byte_rate": 5e5}, user=SPECIAL_NAME, client_id=SPECIAL_NAME)
    set_quota(node, {"request_percentage": 90}, user=DEFAULT)
    own = ({"user": SPECIAL_NAME, "client-id": SPECIAL_NAME}, {"producer_byte_rate": 5e5})
    by_default = ({"user": DEFAULT}, {"request_percentage": 90})
    eventually(lambda: own in describe_quotas(node) and by_default in describe_quotas(node))
    with ProducerLoad(node.client_config(SPECIAL_NAME, SPECIAL_NAME), "t", rate=1e5):
        eventually(lambda: [q.bound for q in enforced_quotas(node, "PRODUCE", client_id=SPECIAL_NAME)] == [5e5])
        set_quota(node, {"producer_byte_rate": None}, user=SPECIAL_NAME, client_id=SPECIAL_NAME)
        eventually(lambda: enforced_quotas(node, "PRODUCE", client_id=SPECIAL_NAME)[0].bound is None)
    set_quota(node, {"request_percentage": None}, user=DEFAULT)


def test_beans_can_be_read_and_called(node: KafkaNode) -> None:
    jmx = Jmx(node)
    assert jmx.get("java.lang:type=Runtime", "Name").startswith(f"{node.pid}@")
    assert jmx.query("java.lang:type=M*")["java.lang:type=Memory"]["HeapMemoryUsage"]["max"] <= 512 << 20
    assert jmx.call("java.util.logging:type=Logging", "getLoggerLevel", "") == "INFO"
    with pytest.raises(HelperError, match="InstanceNotFound"):
        jmx.get("no:type=Such", "Bean")
    node.stop()
    node.start()
    assert jmx.get("java.lang:type=Runtime", "Name").startswith(f"{node.pid}@"), "the connection that was kept is gone"


def test_passwords_are_in_no_log(node: KafkaNode) -> None:
    assert not [password for password in PASSWORDS.values() if password in node.log_text(0)]
    assert (node.directory / "server.properties").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("version", ["4.0.1", "3.9.1"])
def test_older_brokers_can_be_started_and_measured(version: str, tmp_path: Path) -> None:
    with KafkaNode(tmp_path, version=version, users=PASSWORDS, probe=True) as node:
        create_topic(node, "t")
        set_quota(node, {"producer_byte_rate": 1e6}, user="alice")
        with ProducerLoad(node.client_config("alice"), "t", rate=1e5):
            eventually(lambda: [q.bound for q in enforced_quotas(node, "PRODUCE", user="alice")] == [1e6])
        assert node.stop() == 143


@pytest.mark.parametrize("controllers", [0, 1])
def test_a_cluster_of_two_brokers_replicates(controllers: int, tmp_path: Path) -> None:
    with Cluster(tmp_path, brokers=2, controllers=controllers, users=PASSWORDS, inter_broker_user="alice") as cluster:
        create_topic(cluster.brokers[0], "t", partitions=2, replicas=2)
        load = ProducerLoad(cluster.client_config(SPECIAL_NAME), "t", rate=1e5).start()
        eventually(lambda: load.meter.messages >= 20)
        assert load.drain() == 0


SCRIPT = """
import pathlib, signal, sys
from harness.kafka.node import KafkaNode
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
with KafkaNode(pathlib.Path(sys.argv[1])) as node:
    print(node.pid, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_broker_outlives_the_process_that_started_it(how: signal.Signals, tmp_path: Path) -> None:
    broker_jars()
    starter = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    assert _is_alive(pid)
    os.kill(starter.pid, how)
    assert starter.wait(60) != 0
    eventually(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
