"""quotahost runs on several versions of Kafka, on a Kafka that lacks the non-public APIs, and on controllers."""

import re
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, creates, set_quota
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE, JAR, PREFIX, ROOT
from harness.system.waiting import eventually
from quotahost.broker.metrics import CATALOGUE, CLIENTS
from tests.broker.support.node import FACTOR, FIXED, callback_node, callback_properties
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import OPEN, PAUSE, causes, gauge, state

# Each run tests the oldest and the latest version; those between have the interfaces of one of them (test_shapes.py).
BETWEEN = [pytest.param(version, marks=pytest.mark.long) for version in ("4.1.1", "4.2.0")]


@pytest.mark.parametrize("version", ["4.0.1", *BETWEEN, "4.4.0"])
def test_other_brokers_throttle_by_quotahost_and_stop_cleanly(tmp_path: Path, version: str) -> None:
    properties = dict(QUICK_QUOTAS)
    with callback_node(tmp_path, {"static.produce": "2M"}, version=version, properties=properties) as node:
        create_topic(node, "t")
        with ProducerLoad(node.client_config(client_id="p"), "t") as load:
            eventually(lambda: 2e6 in bounds(node) and load.max_throttle() > 0)
            set_quota(node, {"producer_byte_rate": 4e6}, client_id="p")
            eventually(lambda: 4e6 in bounds(node))
        with pytest.raises(HelperError, match=r"static\.produce=fast"):
            alter_broker_config(node, {PREFIX + "static.produce": "fast"})
        assert node.stop() == 143
        assert (node.data_dirs[0] / ".kafka_cleanshutdown").exists()


def bounds(node: KafkaNode) -> set[float | None]:
    return {quota.bound for quota in enforced_quotas(node, "PRODUCE", client_id="p")}


# ---- without non-public APIs: -Dquotahost.internals.without=NAME,... removes them, as a later Kafka might ----

SOURCE: Final = ROOT / "java-shim/src/main/java/org/quotahost/internals/Internals.java"
NAMES: Final = re.findall(r'new Internal<>\(\s*"(\w+)"', SOURCE.read_text())
RATE: Final = 500_000  # bytes/s
INTERNALS: Final = FIXED | {"static.produce": str(RATE), "topics.total.bytes.in.per.sec.threshold": "1G"}


@pytest.mark.proves("faults.internals")
@pytest.mark.parametrize(
    "without", [set(NAMES), *(pytest.param({name}, marks=pytest.mark.long) for name in NAMES)], ids=["all", *NAMES]
)
def test_without_them_a_broker_starts_throttles_fences_and_says_so_once(tmp_path: Path, without: set[str]) -> None:
    options = [f"-Dquotahost.internals.without={','.join(without)}"]
    properties = FENCE | dict(QUICK_QUOTAS)
    with callback_node(tmp_path, INTERNALS, properties=properties, jvm_options=options) as node:
        create_topic(node, "t")
        client = node.client_config(client_id="app")
        with ProducerLoad(client, "t") as load:
            eventually(lambda: load.max_throttle() > 0 and load.meter.rate_over(3) < 1.2 * RATE)
            assert [quota.bound for quota in enforced_quotas(node, "PRODUCE", client_id="app")] == [RATE]
        assert load.errors == []
        alter_broker_config(node, {FACTOR: "0"})
        eventually(lambda: attempt(client, "t") == "NOT_ENOUGH_REPLICAS")
        assert gauge(node, "Fence", "Rejections") > 0
        beans = Jmx(node).query("quotahost:type=Internals,name=*")
        missing = {bean.partition("name=")[2]: float(values["Missing"]) for bean, values in beans.items()}
        assert missing == {name: float(name in without) for name in NAMES}
        lines = [line for line in node.log_text().splitlines() if "of this Kafka is missing or has changed" in line]
        assert sorted(line.partition(" of this Kafka")[0].split()[-1] for line in lines) == sorted(without)
        assert all("WARN" in line for line in lines)
        assert node.stop() == 143
    assert "NoClassDefFoundError" not in node.log_text()


# ---- nodes that are controllers ----


@pytest.mark.proves("mission.shim")
def test_all_callbacks_of_a_node_have_one_interpreter_and_show_every_metric_of_the_catalogue_and_no_other(
    tmp_path: Path,
) -> None:
    properties = callback_properties(name="org.quotahost.MonitoredPythonQuotaCallback")
    numbers = {(metric.type, metric.attribute) for metric in CATALOGUE if not metric.shown_by}
    with KafkaNode(tmp_path, classpath=[JAR], properties=properties) as node:

        def shows_all() -> bool:
            assert {
                (name.split("type=")[1].split(",")[0], attribute)
                for name, attributes in Jmx(node).query("quotahost:*").items()
                for attribute in attributes
            } == numbers | {(CLIENTS, "Uses")}
            return True

        eventually(shows_all)
        # Kafka lists these MBeans among its own, too.
        beans = Jmx(node).query("kafka.server:type=plugins,bean=QuotaTable,*")
        roles = {role for role in ("broker", "controller") for name in beans if f"role={role}" in name}
        assert roles == {"broker", "controller"}
        assert all(bean["Factor"] == 1.0 for bean in beans.values())
        assert node.log_text().count("quotahost serves with suppliers") == 1
        assert gauge(node, "Host", "Restarts") == 0


def test_a_controller_refuses_new_topics_while_a_disk_of_a_broker_is_full(tmp_path: Path) -> None:
    settings = {"factor.source": "snapshots", "snapshots.period": "1s"}
    properties = callback_properties(settings) | FENCE
    cluster = Cluster(tmp_path, brokers=1, controllers=1, classpath=[JAR], properties=properties)
    (broker,), (controller,) = cluster.brokers, cluster.controllers
    # The controller reaches the broker by a name with several addresses, and no process listens at the first one.
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.2 localhost\n127.0.0.1 localhost\n")
    controller.jvm_options = [*controller.jvm_options, f"-Djdk.net.hosts.file={hosts}"]
    servers = cluster.bootstrap.replace("127.0.0.1", "localhost")
    controller.properties = properties | {PREFIX + "static.kafka.admin.bootstrap.servers": servers}
    config, refusals = cluster.client_config(client_id="creator"), list[str]()
    with cluster:
        eventually(lambda: state(broker) == state(controller) == OPEN, what="all disks are known")
        eventually(lambda: creates(config, "before", 1, 1, []))
        alter_broker_config(broker, {PREFIX + "static.storage.hard": "1"}, broker=broker.node_id)
        eventually(lambda: state(controller) == PAUSE, what="the controller knows that a disk is full")
        eventually(lambda: "broker 1, volume" in causes(controller))
        eventually(lambda: not creates(config, "meanwhile", 1, 1, refusals) and refusals)
        assert [refusal.partition(":")[0] for refusal in refusals] == ["POLICY_VIOLATION"]
        alter_broker_config(broker, {PREFIX + "static.storage.hard": None}, broker=broker.node_id)
        eventually(lambda: creates(config, "after", 1, 1, []), what="the topic is created once the disk has space")
