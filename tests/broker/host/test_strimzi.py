"""A properties file written for Strimzi's plugin, with only the class changed, on real brokers."""

import re
import sys
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.helper import HelperError
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.properties import login_jaas
from harness.kafka.settings import CLIENTS
from harness.plugin import CALLBACK, JAR, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.seen import OPEN, PAUSE, gauge, has_own_quota, state, wait_for_rate

RATE = 4e6
MORE_THAN_ANY_DISK_HAS_FREE = str(10**16)
LIMIT = "static.storage.per.volume.limit.min.available.bytes"
INTERVAL = "static.storage.check-interval"
ADMIN_CLIENT = "static.kafka.admin"
SECRET = "S3CR3T-word"


def strimzi_node(directory: Path, more: dict[str, str], users: dict[str, str] | None = None) -> KafkaNode:
    """A broker with an operator's properties of Strimzi's plugin, and quotahost's class."""
    node = KafkaNode(directory, classpath=[JAR], properties=dict(QUICK_QUOTAS), users=users or {})
    settings = {
        "class": CALLBACK,
        "static.produce": str(int(RATE)),
        "static.fetch": "20000000",
        "static.request": "800",
        "static.excluded.principal.name.list": "User:admin;User:CN=mirror,O=example",
        INTERVAL: "2",
        "static.throttle.factor.fallback": "1.0",
        "static.throttle.factor.validity.duration": "PT2M",
        f"{ADMIN_CLIENT}.bootstrap.servers": node.bootstrap,
        f"{ADMIN_CLIENT}.security.protocol": "PLAINTEXT",
    }
    node.properties |= {PREFIX + name: text for name, text in {**settings, **more}.items()}
    # As with Strimzi's plugin no python.executable is set, so the broker starts the python3 of its PATH.
    node.env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return node


def test_the_file_stops_producers_by_quotahost_and_changed_live_lets_two_of_them_share_its_rate(tmp_path: Path) -> None:
    with strimzi_node(tmp_path, {LIMIT: MORE_THAN_ANY_DISK_HAS_FREE}) as node:
        eventually(lambda: state(node) == PAUSE)
        node.wait_for_log(f"{LIMIT}={MORE_THAN_ANY_DISK_HAS_FREE} read as static.storage.hard.min-free-bytes")
        assert node.log_text().count(f"{INTERVAL}=2 read as plugin.log-dirs.interval=2s") == 1
        alter_broker_config(node, {PREFIX + LIMIT: "1"})
        eventually(lambda: state(node) == OPEN)
        create_topic(node, "t", partitions=2)
        loads = [ProducerLoad(node.client_config(client_id=name), "t") for name in ("one", "two")]
        with loads[0], loads[1]:
            wait_for_rate(pytest.approx(RATE, rel=0.15), *loads)
        assert all(load.errors == [] and load.max_throttle() > 0 for load in loads)
        with pytest.raises(HelperError, match=f"{re.escape(LIMIT)}=much"):
            alter_broker_config(node, {PREFIX + LIMIT: "much"})


def test_plugins_connect_with_the_properties_of_strimzis_admin_client(tmp_path: Path) -> None:
    node = strimzi_node(tmp_path, {"factor.source": "snapshots"}, users={"plugin": SECRET})
    client = {
        "bootstrap.servers": f"127.0.0.1:{node.ports[CLIENTS]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": login_jaas("PLAIN", "plugin", SECRET),
    }
    node.properties |= {f"{PREFIX}{ADMIN_CLIENT}.{name}": text for name, text in client.items()}
    with node:
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 1)
        eventually(lambda: has_own_quota(node, "plugin", "quotahost-1"))
        assert quota_now(node, "plugin", "quotahost-1").limit is None, "it is exempt"
        assert PREFIX + ADMIN_CLIENT not in node.log_text()
        assert f"{ADMIN_CLIENT}.* (bootstrap.servers, " in node.log_text()
        assert SECRET not in node.log_text()
