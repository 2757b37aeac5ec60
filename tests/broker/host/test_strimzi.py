"""A file for Strimzi's plugin works with only its class changed, and conf/strimzi/kafka.yaml on Strimzi's listeners.

With conf/strimzi/kafka.yaml Strimzi's own users go on in a PAUSE. The certificates have Strimzi's names, and the
listeners have the properties that its operator writes (KafkaBrokerConfigurationBuilder of 1.2.0). The test replaces
addresses, paths and the number of replicas. An additional listener serves only the harness.
"""

import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.helper import HelperError
from harness.kafka.admin import DEFAULT, alter_broker_config, create_topic, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.settings import CONTROLLER
from harness.plugin import CALLBACK, JAR, PREFIX, ROOT
from harness.system.certificates import PASSWORD, Identity, identity, key_as_pem
from harness.system.ports import free_port
from harness.system.waiting import eventually
from tests.broker.support.acls import acl, give
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import OPEN, PAUSE, gauge, state, wait_for_rate

# ---- a file written for Strimzi's plugin ----

FILES_RATE = 4e6
MORE_THAN_ANY_DISK_HAS_FREE = str(10**16)
LIMIT = "static.storage.per.volume.limit.min.available.bytes"
INTERVAL = "static.storage.check-interval"


def test_the_file_stops_producers_by_quotahost_and_changed_live_lets_two_of_them_share_its_rate(tmp_path: Path) -> None:
    node = KafkaNode(tmp_path, classpath=[JAR], properties=dict(QUICK_QUOTAS))
    settings = {
        "class": CALLBACK,
        "static.produce": str(int(FILES_RATE)),
        "static.fetch": "20000000",
        "static.request": "800",
        "static.excluded.principal.name.list": "User:admin;User:CN=mirror,O=example",
        LIMIT: MORE_THAN_ANY_DISK_HAS_FREE,
        INTERVAL: "2",
        "static.throttle.factor.fallback": "1.0",
        "static.throttle.factor.validity.duration": "PT2M",
        "static.kafka.admin.bootstrap.servers": node.bootstrap,
        "static.kafka.admin.security.protocol": "PLAINTEXT",
    }
    node.properties |= {PREFIX + name: text for name, text in settings.items()}
    # The file for Strimzi's plugin sets no python.executable, so the broker starts the python3 of its PATH.
    node.env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    with node:
        eventually(lambda: state(node) == PAUSE)
        node.wait_for_log(f"{LIMIT}={MORE_THAN_ANY_DISK_HAS_FREE} read as static.storage.hard.min-free-bytes")
        assert node.log_text().count(f"{INTERVAL}=2 read as plugin.log-dirs.interval=2s") == 1
        alter_broker_config(node, {PREFIX + LIMIT: "1"})
        eventually(lambda: state(node) == OPEN)
        create_topic(node, "t", partitions=2)
        loads = [ProducerLoad(node.client_config(client_id=name), "t") for name in ("one", "two")]
        with loads[0], loads[1]:
            wait_for_rate(pytest.approx(FILES_RATE, rel=0.15), *loads)
        assert all(load.errors == [] and load.max_throttle() > 0 for load in loads)
        with pytest.raises(HelperError, match=f"{re.escape(LIMIT)}=much"):
            alter_broker_config(node, {PREFIX + LIMIT: "much"})


# ---- under Strimzi's operator ----

REPLICATION: Final = "REPLICATION-9091"
TLS: Final = "TLS-9093"
CLUSTER: Final = "my-cluster"
BROKERS: Final = f"{CLUSTER}-kafka"
#: Strimzi's own users, as the operator lists them in super.users.
OWN: Final = (
    BROKERS,
    *(f"{CLUSTER}-{name}" for name in ("entity-topic-operator", "entity-user-operator", "kafka-exporter")),
    f"{CLUSTER}-cruise-control",
    "cluster-operator",
)
#: The administrator of the file, and a KafkaUser.
ADMIN, ALICE = "admin", "alice"
#: Bytes/s: the quota of each user that has no other.
RATE: Final = 1e6


def _of_the_file() -> dict[str, str]:
    """The broker properties that the operator makes from the file's config and authorization."""
    documents = yaml.safe_load_all((ROOT / "conf/strimzi/kafka.yaml").read_text(encoding="utf-8"))
    kafka = next(each for each in documents if each["kind"] == "Kafka")["spec"]["kafka"]
    config = {name: str(value) for name, value in kafka["config"].items()}
    own = [f"User:CN={name},O=io.strimzi" for name in OWN]
    more = [f"User:{name}" for name in kafka["authorization"]["superUsers"]]
    here = {name: "1" for name in config if name.endswith((".replication.factor", ".isr", "insync.replicas"))}
    # The machine's own disk may have less room than the file asks for.
    few = {"soft": "0.002", "hard": "0.001"}
    low = {f"{PREFIX}static.storage.{limit}.min-free-percent": share for limit, share in few.items()}
    return config | here | low | {
        "authorizer.class.name": kafka["authorization"]["authorizerClass"],
        "super.users": ";".join([*own, *more, "User:ANONYMOUS"]),  # the last one is the harness
        f"{PREFIX}python.executable": sys.executable,
        f"{PREFIX}metrics.port": str(free_port()),
        f"{PREFIX}snapshots.period": "500ms",
        f"{PREFIX}volumes.period": "250ms",
    }  # fmt: skip


def _listeners(node: KafkaNode, parties: dict[str, Identity], port: int) -> dict[str, str]:
    placement, broker = node.placement(), parties[BROKERS]
    stores = {
        "ssl.keystore.certificate.chain": broker.certificate.read_text(),
        "ssl.keystore.key": key_as_pem(broker),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.certificates": "".join(each.certificate.read_text() for each in parties.values()),
        "ssl.truststore.type": "PEM",
        "ssl.client.auth": "required",
    }
    names = (REPLICATION, TLS, CONTROLLER)
    more = f"{REPLICATION}://127.0.0.1:{free_port()},{TLS}://127.0.0.1:{port}"
    protocols = placement["listener.security.protocol.map"].replace(f"{CONTROLLER}:PLAINTEXT", f"{CONTROLLER}:SSL")
    return {f"listener.name.{name.lower()}.{key}": text for name in names for key, text in stores.items()} | {
        "listeners": f"{placement['listeners']},{more}",
        "listener.security.protocol.map": f"{protocols},{REPLICATION}:SSL,{TLS}:SSL",
        "inter.broker.listener.name": REPLICATION,
    }


@pytest.mark.long
def test_in_a_pause_strimzis_own_users_go_on_and_others_are_told_why_not(tmp_path: Path) -> None:
    parties = {name: identity(tmp_path, name, "io.strimzi") for name in OWN}
    parties |= {name: identity(tmp_path, name) for name in (ADMIN, ALICE)}
    node, port = KafkaNode(tmp_path / "node", classpath=[JAR]), free_port()
    node.properties = _of_the_file() | _listeners(node, parties, port)

    def client(name: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"127.0.0.1:{port}", "client.id": "c", "security.protocol": "ssl",
            "ssl.ca.location": str(parties[BROKERS].certificate),
            "ssl.keystore.location": str(parties[name].keystore), "ssl.keystore.password": PASSWORD,
        }  # fmt: skip

    with node:
        # All users may write to the topic, the KafkaUser by its ACLs. Then new limits make the disk full.
        create_topic(node, "t")
        rights = [acl(f"CN={ALICE}", *right) for right in (("t", AclOperation.WRITE), ("new", AclOperation.CREATE))]
        # The User Operator sets ACLs through the fence, because the file has supportsAdminApi.
        give(AdminClient(client(f"{CLUSTER}-entity-user-operator")), *rights)
        set_quota(node, {"producer_byte_rate": RATE}, user=DEFAULT)
        eventually(lambda: state(node) == OPEN)
        for name in (*OWN, ADMIN, ALICE):
            eventually(lambda name=name: attempt(client(name), "t") is None, what=f"{name} may write")
        full = {"soft": "1.0", "hard": "0.999"}  # shares of the disk that must stay free
        alter_broker_config(node, {f"{PREFIX}static.storage.{s}.min-free-percent": text for s, text in full.items()})
        eventually(lambda: state(node) == PAUSE)

        for name in OWN:
            assert attempt(client(name), "t") is None
            quota = quota_now(node, f"CN={name},O=io.strimzi", "c")
            assert not quota.newcomer
            assert quota.base is quota.limit is None, "the default quota doesn't apply to Strimzi's own users"
        assert attempt(client(ADMIN), "t") is None, "another super user passes the fence"
        assert quota_now(node, f"CN={ADMIN}", "c").base == RATE
        before = gauge(node, "Fence", "Rejections")
        assert attempt(client(ALICE), "t") == "NOT_ENOUGH_REPLICAS"
        assert gauge(node, "Fence", "Rejections") > before

        alice, operator = (AdminClient(client(name)) for name in (ALICE, f"{CLUSTER}-entity-topic-operator"))
        with pytest.raises(KafkaException, match="creates no topics and partitions in a PAUSE"):
            alice.create_topics([NewTopic("new", 1)])["new"].result(60)
        operator.create_topics([NewTopic("new", 1)])["new"].result(60)

        # The plugins connect as the broker.
        eventually(lambda: gauge(node, "Connection,name=publish-volumes", "Connected") == 1, 30)
        log = node.log_text()
        assert "PRIVATE KEY" not in log
        assert "can't be found in the configuration" not in log, "the brokers' name is found in the certificate"
