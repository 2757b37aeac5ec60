"""A real broker runs with conf/secured: the plugins and the pipeline have their rights, and other users have none.

The test replaces only addresses, paths, and SASL_SSL by SASL_PLAINTEXT. All users authenticate by SCRAM, as the files
say, except on the controllers' listener: SCRAM credentials are in the metadata behind it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import javaproperties
import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourcePatternType

from harness.kafka.admin import kafka_tool
from harness.kafka.node import KafkaNode
from harness.kafka.properties import plain_jaas, write_properties
from harness.kafka.settings import CLIENTS, CONTROLLER
from harness.plugin import JAR, PREFIX, ROOT
from harness.system.pipeline import PipelineProcess
from harness.system.waiting import eventually
from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor.doctor import ask_cluster
from quotahost.cli.property_files import read_client_config
from quotahost.kafka.admin import BrokerConfig
from quotahost.kafka.client import OF_GROUPS, NoAnswer
from quotahost.records import topics
from quotahost.records.topics import AclRole
from tests.broker.support.acls import acl, any_acl, give
from tests.broker.support.commands import connect_as, quotahost, top
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import gauge

CONF: Final = ROOT / "conf/secured"
#: The outsider has credentials, and no rights. A client without credentials is ANONYMOUS.
_NAMED: Final = ("broker", "admin", "quotahost", "alice", "outsider", "quotahost-quotas", "quotahost-top")
USERS: Final = {name: f'{name}\'s "secret"' for name in _NAMED} | {"quotahost-pipeline": "CHANGE-ME"}
PRINCIPALS: Final = {
    AclRole.PLUGINS: "quotahost",
    AclRole.PIPELINE: "quotahost-pipeline",
    AclRole.WATCHERS: "quotahost-top",
    AclRole.OPERATORS: "quotahost-quotas",
}
SCRAM: Final = "SCRAM-SHA-512"
#: A client that may not describe the topic never learns its leader, so its record times out.
REFUSED: Final = {"TOPIC_AUTHORIZATION_FAILED", "_MSG_TIMED_OUT"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("secured")
    node = KafkaNode(directory, classpath=[JAR], users=USERS, mechanism=SCRAM, inter_broker_user="broker")
    secrets = directory / "quotahost.secrets"
    write_properties(secrets, {"password": USERS["quotahost"]})
    shown = (CONF / "broker.properties").read_text(encoding="utf-8")
    for told, here in {
        "broker-1:9092": f"127.0.0.1:{node.ports[CLIENTS]}",
        "/opt/quotahost/bin/python3": sys.executable,
        "SASL_SSL": "SASL_PLAINTEXT",
        "/etc/kafka/quotahost.secrets": str(secrets),
        "=0.20": "=0.002",  # this machine's disk may be fuller than a broker's should be
        "=0.05": "=0.001",
    }.items():
        assert told in shown
        shown = shown.replace(told, here)
    # Controllers authenticate, too; otherwise all clients would be the same principal there as the broker.
    protocols, prefix = "listener.security.protocol.map", f"listener.name.{CONTROLLER.lower()}"
    node.properties = javaproperties.loads(shown) | {
        protocols: node.placement()[protocols].replace(f"{CONTROLLER}:PLAINTEXT", f"{CONTROLLER}:SASL_PLAINTEXT"),
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}.plain.sasl.jaas.config": plain_jaas(USERS, "broker"),
        f"{PREFIX}volumes.period": "250ms",
    }
    with node:
        _give_rights(node)
        yield node


@pytest.fixture(scope="module")
def whole(node: KafkaNode) -> KafkaNode:
    """The node with all topics: the plugins create their own topics, and this fixture creates the others."""
    own, admin = {topics.SNAPSHOTS.name, topics.USAGE.name}, admin_of(node, "admin")
    eventually(lambda: own <= admin.list_topics(timeout=60).topics.keys(), what="the plugins have created their topics")
    new = [NewTopic(each.name, 1, 1, config=dict(topics.COMPACTED)) for each in topics.TOPICS]
    for made in admin.create_topics(new).values():
        with suppress(KafkaException):  # it exists
            made.result(30)
    return node


def _give_rights(node: KafkaNode, script: Path = CONF / "acls.sh") -> None:
    """Calls AclCommand, the class that kafka-acls.sh runs, with the arguments of each line of the script."""
    shows_its_arguments = (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))")
    told = subprocess.run(["sh", str(script), *shows_its_arguments], check=True, capture_output=True, text=True).stdout
    bootstrap, _, file = connect_as(node, "admin", node.directory)[1:]
    for line in told.splitlines():
        kafka_tool(node, "AclCommand", "--bootstrap-server", bootstrap, "--command-config", file, *json.loads(line))


def admin_of(node: KafkaNode, user: str | None) -> AdminClient:
    return AdminClient(node.client_config(user) | {"log_level": 0})


def test_the_plugins_make_their_topics_and_work_by_the_rights_of_the_script(whole: KafkaNode) -> None:
    eventually(lambda: gauge(whole, "Connection,name=publish-volumes", "Connected") == 1)
    for reader in ("cluster-volumes", "cluster-quota", "cluster-quota-quotas"):
        eventually(lambda reader=reader: gauge(whole, f"Connection,name={reader}", "Connected") == 1, what=reader)
    # Until the pipeline runs, the standby reads the snapshots of the one broker.
    eventually(lambda: gauge(whole, "QuotaTable", "State") == 0, what="the snapshots report the disk")
    log = whole.log_text()
    assert "GROUP_AUTHORIZATION" not in log
    assert not [secret for secret in USERS.values() if secret in log]


def operations(node: KafkaNode, user: str | None) -> dict[str, set[str]]:
    """The operations that the broker allows this user, in ACLs' names, by topic."""
    asked = TopicCollection([each.name for each in topics.TOPICS])
    found: dict[str, set[str]] = {}
    admin = admin_of(node, user)  # a variable, because answers only arrive while the client exists
    for name, answer in admin.describe_topics(asked, include_authorized_operations=True).items():
        found[name] = set()
        with suppress(KafkaException):  # denied
            found[name] = {each.name.title().replace("_", "") for each in answer.result(30).authorized_operations}
    return found


def findings(node: KafkaNode, user: str | None, role: AclRole | None = None) -> list[Finding]:
    """Doctor's findings about the cluster with these credentials; checks that no finding shows the credentials."""
    config = {name: str(value) for name, value in node.client_config(user).items()}
    found = ask_cluster(config["bootstrap.servers"], config if user else {}, None, role)[0]
    assert not [each for each in found if user and USERS[user] in each.text + each.remedy]
    return found


@pytest.mark.parametrize("role", list(AclRole), ids=lambda role: role.name.lower())
def test_each_has_the_rights_of_the_table_and_no_other_and_doctor_finds_so(whole: KafkaNode, role: AclRole) -> None:
    wanted: dict[str, set[str]] = {topic.name: set(topic.operations(role)) for topic in topics.TOPICS}
    implied = {name: {"Describe"} if of & {"Read", "Write"} else set() for name, of in wanted.items()}
    assert operations(whole, PRINCIPALS[role]) == {name: of | implied[name] for name, of in wanted.items()}
    found = findings(whole, PRINCIPALS[role], role)
    assert [each.level for each in found if "all that" in each.text] == [Level.GOOD]
    assert not {each.level for each in found} & {Level.WEAK, Level.WRONG}
    remedies = [each.remedy for each in findings(whole, "outsider", role) if each.level is Level.WRONG]
    lacking = {f"{right} --topic {name}" for name, of in wanted.items() for right in of & {"Read", "Write"}}
    lacking |= set() if role is AclRole.PIPELINE else {f"Describe {OF_GROUPS}"}
    give = "kafka-acls.sh --add --allow-principal User:outsider --operation"
    assert sorted(remedies) == sorted(f"{give} {right} (docs/security.md)" for right in lacking)


@pytest.mark.parametrize("user", ["outsider", "alice", None])
def test_anybody_else_is_refused_on_every_topic(whole: KafkaNode, user: str | None) -> None:
    config = whole.client_config(user) | {"message.timeout.ms": 1000}
    with ThreadPoolExecutor(len(topics.TOPICS)) as pool:
        assert set(pool.map(lambda each: attempt(config, each.name), topics.TOPICS)) <= REFUSED
    assert operations(whole, user) == {each.name: set() for each in topics.TOPICS}
    assert not admin_of(whole, user).list_topics(timeout=60).topics.keys() & {each.name for each in topics.TOPICS}


def test_doctor_finds_the_topics_closed_and_then_open_to_all_by_one_acl(whole: KafkaNode) -> None:
    def weak(user: str | None) -> list[str]:
        return [each.text for each in findings(whole, user) if each.level is Level.WEAK]

    assert [each.level for each in findings(whole, None)] == [Level.NOTE, Level.GOOD]
    assert weak("admin") == []
    admin = admin_of(whole, "admin")
    give(admin, acl("*", "__quota", AclOperation.WRITE, ResourcePatternType.PREFIXED))
    try:
        found = eventually(lambda: weak("admin"))
        assert len(found) == len(topics.TOPICS)
        assert "rights to __quotahost_snapshots: User:* may Write by the ACL for prefixed __quota" in found[0]
        anybody = "a client without credentials may Describe, Write __quotahost_snapshots: such a client stops"
        assert anybody in weak(None)[0]
    finally:
        admin.delete_acls([any_acl("User:*")])
        eventually(lambda: operations(whole, None)[topics.SNAPSHOTS.name] == set())


def test_doctor_reads_the_pipelines_own_file(whole: KafkaNode, tmp_path: Path) -> None:
    file, bootstrap = pipelines_file(tmp_path), f"127.0.0.1:{whole.ports[CLIENTS]}"
    levels = {each.level for each in ask_cluster(bootstrap, read_client_config(file), None, AclRole.PIPELINE)[0]}
    assert Level.GOOD in levels
    assert not levels & {Level.WEAK, Level.WRONG}


def pipelines_file(directory: Path) -> Path:
    """The file of the pipeline's principal, changed for this broker."""
    shown = (CONF / "pipeline.properties").read_text(encoding="utf-8")
    file = directory / "pipeline.properties"
    file.write_text(shown.replace("SASL_SSL", "SASL_PLAINTEXT"))
    return file


def test_top_shows_the_cluster_by_the_rights_of_the_script(whole: KafkaNode) -> None:
    *to, file = connect_as(whole, "quotahost-top", whole.directory)
    Path(file).write_text(f"{Path(file).read_text()}client.id=of-an-operator\n")  # the ACL is for quotahost's groups
    eventually(lambda: top(*to, file)["brokers"], what="top shows the brokers")
    refused = quotahost("top", "--json", *connect_as(whole, "outsider", whole.directory))
    assert refused.exit_code == 2
    assert "User:outsider may not Write topic __quotahost_watch" in refused.stderr
    assert not [secret for secret in USERS.values() if secret in refused.stderr + refused.stdout]


def test_the_scripts_optional_rights_are_what_quotas_as_code_and_cordon_need(whole: KafkaNode, tmp_path: Path) -> None:
    declared = tmp_path / "quotas.yaml"
    declared.write_text("quotas: [{user: alice, producer_byte_rate: 5M}]\ncluster-quotas: [{user: alice, produce: 9M}]")

    def quotas(command: str, *more: str) -> int:
        """The exit code of ``quotahost quotas`` with the principal of the script."""
        to = connect_as(whole, "quotahost-quotas", whole.directory)
        return quotahost("quotas", command, declared, *to, *more).exit_code

    assert quotas("plan") != 0
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "quotahost"}
    own = BrokerConfig(admin_of(whole, "quotahost"), whole.node_id, login)
    with pytest.raises(NoAnswer, match=r"kafka-acls\.sh .*User:quotahost --operation DescribeConfigs --cluster "):
        own.listed("cordoned.log.dirs")
    with pytest.raises(NoAnswer, match=r"User:quotahost may not AlterConfigs cluster; kafka-acls\.sh --add "):
        own.change(append={"cordoned.log.dirs": []})
    optional = tmp_path / "acls.sh"
    lines = (CONF / "acls.sh").read_text(encoding="utf-8").splitlines()
    kept = [line.removeprefix("# ") for line in lines if line.startswith(("plugins=", "operators=", '# "$@" '))]
    assert len(kept) == 5
    optional.write_text("\n".join(kept[:4]))
    _give_rights(whole, optional)
    try:
        eventually(lambda: quotas("plan") == 0)
        assert quotas("apply", "--yes") == 0
        assert quotas("drift") == 0
        assert own.listed("cordoned.log.dirs") is not None
        own.change(append={"cordoned.log.dirs": []}, put={f"{PREFIX}plugin.cordon.added": None})
    finally:
        optional.write_text("\n".join(kept[:4]).replace("--add", "--remove --force"))
        _give_rights(whole, optional)
    eventually(lambda: quotas("plan") != 0)


@pytest.mark.long
def test_the_real_pipeline_works_with_the_file_of_its_principal(node: KafkaNode, tmp_path: Path) -> None:
    bootstrap = f"127.0.0.1:{node.ports[CLIENTS]}"
    with PipelineProcess(tmp_path, bootstrap, kafka_config=pipelines_file(tmp_path), tick="1s") as pipeline:
        answers = "FactorSource,name=cluster-volumes"
        eventually(lambda: gauge(node, answers, "Answers") == 1, what="the broker reads the pipeline's record")
        eventually(lambda: gauge(node, "Shares", "Stale") == 0, what="the broker reads its shares")
        eventually(lambda: gauge(node, "QuotaTable", "State") == 0)
        log = pipeline.log_text()
    for text in (log, node.log_text()):
        assert "GROUP_AUTHORIZATION" not in text
        assert not [secret for secret in USERS.values() if secret in text]
    assert "AuthorizationException" not in log


def test_after_a_live_change_a_broker_asks_the_cluster_as_before(node: KafkaNode) -> None:
    """After a live change Kafka passes its own login as parsed values, with classes instead of class names."""
    BrokerConfig(admin_of(node, "admin"), node.node_id, {}).change(put={PREFIX + "factor.source": "snapshots"})
    # The new plugin knows no broker before it has asked the cluster.
    eventually(lambda: gauge(node, "Factor", "Unknown") == 0, what="the cluster has listed its brokers")
