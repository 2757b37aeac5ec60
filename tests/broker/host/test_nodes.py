"""quotahost on several versions of Kafka, and on nodes that are broker, controller or both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, set_quota
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.waiting import eventually
from quotahost.broker.metrics import CATALOGUE, CLIENTS
from tests.broker.support.node import callback_node, callback_properties
from tests.broker.support.seen import OPEN, PAUSE, causes, gauge, state

MONITORED = "org.quotahost.MonitoredPythonQuotaCallback"


# The oldest and the newest each time: what lies between has the interfaces of one of them (test_shapes.py).
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


def test_every_metric_of_the_catalogue_is_shown_and_no_other_by_the_monitored_callback_among_kafkas_own_too(
    tmp_path: Path,
) -> None:
    with KafkaNode(tmp_path, classpath=[JAR], properties=callback_properties(name=MONITORED)) as node:
        numbers = {(metric.type, metric.attribute) for metric in CATALOGUE if not metric.shown_by}

        def shows_all() -> bool:
            assert {
                (name.split("type=")[1].split(",")[0], attribute)
                for name, attributes in Jmx(node).query("quotahost:*").items()
                for attribute in attributes
            } == numbers | {(CLIENTS, "Uses")}
            return True

        eventually(shows_all)
        beans = Jmx(node).query("kafka.server:type=plugins,bean=QuotaTable,*")
        roles = {role for role in ("broker", "controller") for name in beans if f"role={role}" in name}
        assert roles == {"broker", "controller"}
        assert all(bean["Factor"] == 1.0 for bean in beans.values())


COMBINED = pytest.param(0, marks=pytest.mark.long, id="combined")  # as are the nodes of most other tests


@pytest.fixture(scope="module", params=[COMBINED, pytest.param(1, id="separate-controller")])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"factor.source": "snapshots", "snapshots.period": "1s", "fence.authorizer": "none"}
    properties = callback_properties(settings) | FENCE
    directory = tmp_path_factory.mktemp("cluster")
    made = Cluster(directory, brokers=1, controllers=request.param, classpath=[JAR], properties=properties)
    for controller in made.controllers:
        # By a name of several addresses, of which nobody listens at the first.
        hosts = tmp_path_factory.mktemp("names") / "hosts"
        hosts.write_text("127.0.0.2 localhost\n127.0.0.1 localhost\n")
        controller.jvm_options = [*controller.jvm_options, f"-Djdk.net.hosts.file={hosts}"]
        servers = made.bootstrap.replace("127.0.0.1", "localhost")
        controller.properties = properties | {PREFIX + "static.kafka.admin.bootstrap.servers": servers}
    with made:
        eventually(lambda: all(state(node) == OPEN for node in made.nodes), what="all disks are known")
        yield made


@pytest.mark.proves("mission.shim")
def test_one_interpreter_serves_all_callbacks_of_a_node(cluster: Cluster) -> None:
    for node in cluster.nodes:
        assert node.log_text().count("quotahost serves with suppliers") == 1
        assert gauge(node, "Host", "Restarts") == 0


def test_the_controller_refuses_new_topics_while_a_disk_of_a_broker_is_full(cluster: Cluster) -> None:
    (broker,) = cluster.brokers
    controller = next(node for node in cluster.nodes if "controller" in node.roles)
    admin = AdminClient(cluster.client_config(client_id="creator"))

    def refused(topic: str) -> bool:
        try:
            admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.POLICY_VIOLATION:
                raise
            return True
        return False

    eventually(lambda: not refused("before"))
    alter_broker_config(broker, {PREFIX + "static.storage.hard": "1"}, broker=broker.node_id)
    eventually(lambda: state(controller) == PAUSE, what="the controller knows that a disk is full")
    eventually(lambda: "broker 1, volume" in causes(controller))
    assert refused("meanwhile")
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        refused("before")
    alter_broker_config(broker, {PREFIX + "static.storage.hard": None}, broker=broker.node_id)
    eventually(lambda: not refused("after"), what="created once there is room")
