"""A properties file written for Strimzi's plugin, with only the class changed, on real brokers."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS
from harness.plugin import CALLBACK, JAR, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.seen import OPEN, PAUSE, gauge, has_own_quota, wait_for_rate

RATE = 4e6
MORE_THAN_ANY_DISK_HAS_FREE = str(10**16)
LIMIT = "static.storage.per.volume.limit.min.available.bytes"
INTERVAL = "static.storage.check-interval"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "S3CR3T-word"


def strimzi_file(node: KafkaNode, **more: str) -> dict[str, str]:
    """The properties of an operator of Strimzi's plugin, without the class."""
    settings = {
        "static.produce": str(int(RATE)),
        "static.fetch": "20000000",
        "static.request": "800",
        "static.excluded.principal.name.list": "User:admin;User:CN=mirror,O=example",
        INTERVAL: "2",
        "static.throttle.factor.fallback": "1.0",
        "static.throttle.factor.validity.duration": "PT2M",
        "static.kafka.admin.bootstrap.servers": node.bootstrap,
        "static.kafka.admin.security.protocol": "PLAINTEXT",
    }
    return {PREFIX + name: text for name, text in {**settings, **more}.items()}


def as_user(node: KafkaNode) -> dict[str, str]:
    """Properties with which Strimzi's Admin client connects as the first of the node's users."""
    name, password = next(iter(node.users.items()), ("", ""))
    client = {
        "bootstrap.servers": f"127.0.0.1:{node.ports.get(CLIENTS)}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} required username="{name}" password="{password}";',
    }
    return {f"static.kafka.admin.{key}": text for key, text in client.items()} if name else {}


@contextmanager
def broker(directory: Path, more: dict[str, str], users: dict[str, str] | None = None) -> Iterator[KafkaNode]:
    """Runs a broker with the file."""
    node = KafkaNode(directory, classpath=[JAR], properties=dict(QUICK_QUOTAS), users=users or {})
    node.properties |= strimzi_file(node, **as_user(node), **more) | {PREFIX + "class": CALLBACK}
    # As with Strimzi's plugin no python.executable is set, so the broker starts the python3 of its PATH.
    node.env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    with node:
        yield node


def share_the_rate(node: KafkaNode) -> None:
    """Checks that two producers get the file's rate together, and are slowed rather than refused."""
    create_topic(node, "t", partitions=2)
    loads = [ProducerLoad(node.client_config(client_id=name), "t") for name in ("one", "two")]
    with loads[0], loads[1]:
        wait_for_rate(pytest.approx(RATE, rel=0.15), *loads)
    assert all(load.errors == [] and load.max_throttle() > 0 for load in loads)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """The broker with quotahost's class."""
    with broker(tmp_path_factory.mktemp("ours"), {LIMIT: MORE_THAN_ANY_DISK_HAS_FREE}) as node:
        eventually(lambda: gauge(node, "QuotaTable", "State") == PAUSE)
        yield node


def test_more_free_space_demanded_than_there_is_stops_producers_by_quotahost(ours: KafkaNode) -> None:
    ours.wait_for_log(f"{LIMIT}={MORE_THAN_ANY_DISK_HAS_FREE} read as static.storage.hard.min-free-bytes")
    ours.wait_for_log(f"{INTERVAL}=2 read as plugin.log-dirs.interval=2s")
    assert ours.log_text().count(f"{INTERVAL}=2 read as") == 1


def test_changed_live_the_same_names_let_two_producers_share_the_files_rate(ours: KafkaNode) -> None:
    alter_broker_config(ours, {PREFIX + LIMIT: "1"})
    eventually(lambda: gauge(ours, "QuotaTable", "State") == OPEN)
    share_the_rate(ours)
    with pytest.raises(Exception, match=f"{re.escape(LIMIT)}=much"):
        alter_broker_config(ours, {PREFIX + LIMIT: "much"})


def test_plugins_connect_with_the_properties_of_strimzis_admin_client(tmp_path: Path) -> None:
    with broker(tmp_path, {"factor.source": "snapshots"}, users={"plugin": SECRET}) as node:
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 1)
        eventually(lambda: has_own_quota(node, "plugin", "quotahost-1"))
        assert quota_now(node, "plugin", "quotahost-1").limit is None, "it is exempt"
        assert f"{PREFIX}static.kafka.admin" not in node.log_text()
        assert "static.kafka.admin.* (bootstrap.servers, " in node.log_text()
        assert SECRET not in node.log_text()
