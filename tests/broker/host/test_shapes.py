"""quotahost's jar fits the jars of each tested version of Kafka, and doctor reports what a later version demands.

If a new version of Kafka has a new client inside its brokers, a test here fails, because this client must be exempt.
Then find the client-id that the new class uses, add it to ``quotahost.broker.host.exemptions.INTERNAL_CLIENT_IDS``,
and add the class to the list here.
"""

import re
import shutil
import subprocess
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from harness.java.jars import DEFAULT_VERSION, broker_jars
from harness.java.jdk import class_path, tool
from harness.plugin import JAR
from quotahost.broker.host.exemptions import INTERNAL_CLIENT_IDS
from quotahost.cli.console import Level
from quotahost.cli.doctor.installation import TRIED, check_internals
from tools.kafka_shapes import RESOURCE, VERSIONS, shapes

#: Only long tests cover these: their interfaces are those of the oldest, the latest or the default line.
BETWEEN: Final = ("4.1", "4.2")
LINES: Final = [pytest.param(line, marks=[pytest.mark.long] * (line in BETWEEN)) for line in VERSIONS]
ALL_THERE: Final = "it has all internals that quotahost uses"
LATER: Final = """\
package org.apache.kafka.server.quota;
public interface ClientQuotaCallback extends org.apache.kafka.common.Configurable {
    java.util.Map<String, String> quotaMetricTags(
        ClientQuotaType type, org.apache.kafka.common.security.auth.KafkaPrincipal principal, String clientId);
    Double quotaLimit(ClientQuotaType type, java.util.Map<String, String> tags);
    void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double rate);
    void removeQuota(ClientQuotaType type, ClientQuotaEntity entity);
    boolean quotaResetRequired(ClientQuotaType type);
    void close();
    MORE
}
"""


@pytest.mark.parametrize("line", LINES)
def test_somebody_has_looked_at_all_that_each_kafkas_interfaces_have(line: str) -> None:
    known = [row.split("\t") for row in RESOURCE.read_text().splitlines()[1:]]
    assert sorted(shapes(broker_jars(VERSIONS[line]))) == sorted("\t".join(row[:3]) for row in known if line in row[3:])


def test_the_fence_passes_every_method_of_the_authorizers_on() -> None:
    known = [row.split("\t") for row in RESOURCE.read_text().splitlines()[1:]]
    theirs = [row[2] for row in known if "Authorizer" in row[0] or row[0] == "Reconfigurable"]
    asked = {method.partition("(")[0].split()[-1] for method in theirs}
    name = "org.quotahost.QuotaFence"
    command = [*tool("javap"), "-cp", class_path([JAR, broker_jars()]), name]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert asked - set(re.findall(r"(\w+)\(", shown)) == set()


def test_the_tested_versions_are_those_that_doctor_and_the_broker_know() -> None:
    lines = [tuple(map(int, line.split("."))) for line in VERSIONS]
    assert (min(lines), max(lines)) == TRIED
    with zipfile.ZipFile(JAR) as jar:
        versions = jar.read("META-INF/quotahost/versions.properties").decode()
    assert f"kafka={' '.join(VERSIONS)}\n" in versions


@pytest.mark.parametrize("line", LINES)
def test_every_class_of_kafka_that_the_jar_uses_is_there(line: str) -> None:
    """Kafka 4.4 moved a class that request threads used. Three classes of the jar are only for 4.1 and newer."""
    command = [*tool("jdeps"), "--multi-release", "17", "--missing-deps"]
    command += ["-cp", ":".join(map(str, sorted(broker_jars(VERSIONS[line]).glob("*.jar")))), str(JAR)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [row.split() for row in done.stdout.splitlines()[1:]]
    missing = {(user.removeprefix("org.quotahost."), name) for user, _, name, *_ in rows if "quotahost" in user}
    of_newer = {"MonitoredPythonQuotaCallback", "MonitoredQuotaFence", "internals.Internals$UnseenMetrics"}
    users = of_newer if line == "4.0" else set()
    assert {user for user, _ in missing} == users, missing


@pytest.mark.parametrize("line", LINES)
def test_doctor_finds_all_internals_in_each_kafka(line: str) -> None:
    (finding,) = check_internals(broker_jars(VERSIONS[line]).parent)
    assert (finding.level, finding.text) == (Level.GOOD, ALL_THERE)


def test_doctor_finds_classes_that_this_kafka_can_not_load() -> None:
    names = ["org.quotahost.QuotaFenc", "org.quotahost.QuotaFence", "org.quotahost.MonitoredQuotaFence"]
    named = [f"authorizer.class.name={name}" for name in names]
    first, last = check_internals(broker_jars(VERSIONS["4.0"]).parent, named)
    assert {first.level, last.level} == {Level.WRONG}
    assert "This Kafka cannot load authorizer.class.name=org.quotahost.QuotaFenc: java.lang.ClassNotFound" in first.text
    assert f"cannot load {named[2]}: java.lang.NoClassDefFoundError: org/apache/kafka/common/metrics/M" in last.text


@pytest.mark.parametrize(
    ("more", "level", "words"),
    [
        ("", Level.GOOD, ALL_THERE),  # 5.0 will be like this
        ("default void more(int[] all) {}", Level.GOOD, ALL_THERE),
        ("void mustBeThere();", Level.WRONG, "requires void mustBeThere() of org.quotahost.PythonQuotaCallback"),
    ],
)
def test_doctor_says_what_a_later_kafka_demands(tmp_path: Path, more: str, level: Level, words: str) -> None:
    # This Kafka's callback lacks updateClusterMetadata and has the method ``more``. Java takes the first jar by name.
    libs, source, classes = tmp_path / "kafka/libs", tmp_path / "ClientQuotaCallback.java", tmp_path / "classes"
    source.write_text(LATER.replace("MORE", more))
    kafka = next(broker_jars().glob("kafka-clients-*.jar"))
    subprocess.run([*tool("javac"), "-nowarn", "-d", str(classes), "-cp", str(kafka), str(source)], check=True)
    shutil.copytree(broker_jars(), libs)
    shutil.copy(JAR, libs / "quotahost-0.1.0.jar")
    with zipfile.ZipFile(kafka) as old, zipfile.ZipFile(libs / kafka.name, "w") as new:
        for name in old.namelist():
            new.writestr(name, (classes / name).read_bytes() if (classes / name).is_file() else old.read(name))
    finding, *_ = check_internals(libs.parent)
    assert (finding.level, words in finding.text) == (level, True), finding.text


def test_doctor_names_what_is_missing_and_what_is_weaker_then(tmp_path: Path) -> None:
    (finding,) = check_internals(tmp_path)
    assert finding.level is Level.NOTE, "a folder without Kafka gives only a note"
    libs = tmp_path / "libs"
    shutil.copytree(broker_jars(), libs, ignore=lambda _, names: {n for n in names if n.startswith("log4j-core")})
    (finding,) = check_internals(tmp_path)
    assert finding.level is Level.WEAK
    assert finding.text.startswith("BrokerLog of this Kafka is missing")
    assert "the broker's log contains every request that the fence turns back" in finding.text


# ---- the clients inside brokers ----

# The classes that make a client.
_MAKERS: Final = (
    "kafka/server/NetworkUtils",
    "org/apache/kafka/server/util/InterBrokerSendThread",
    *(f"org/apache/kafka/clients/{name}" for name in (
        "NetworkClient", "ClientUtils", "producer/KafkaProducer", "consumer/KafkaConsumer",
        "consumer/KafkaShareConsumer", "admin/Admin", "admin/AdminClient", "admin/KafkaAdminClient")),
)  # fmt: skip
# The outer classes that name one of these, with the client-ids. None: another class of this list makes the client, or
# the client runs in a tool and not in a broker.
_KNOWN: Final[dict[str, tuple[str, ...] | None]] = {
    "AddPartitionsToTxnManager": None,
    "BrokerBlockingSender": None,  # with the client-id of ReplicaFetcherManager: broker-1-fetcher-0
    "BrokerServer": ("AddPartitionsManager-client-1", "Persister-client-1"),
    "CommandLineUtils": None,
    "ConfigCommand": None,
    "ConsumerManager": ("__remote_log_metadata_client_1_consumer",),
    "InterBrokerSendThread": None,  # a base class
    "KafkaNetworkChannel": None,
    "KafkaRaftManager": ("raft-client-1",),
    "NetworkPartitionMetadataClient": ("NetworkPartitionMetadataClient-client-1",),
    "NetworkUtils": None,
    "NodeToControllerChannelManagerImpl": None,  # the plain node id
    "NodeToControllerRequestThread": None,
    "PersisterStateManager": None,
    "ProducerManager": ("__remote_log_metadata_client_1_producer",),
    "TopicBasedRemoteLogMetadataManager": ("__remote_log_metadata_client_1_admin",),
    "TopicBasedRemoteLogMetadataManagerConfig": None,
    "TransactionMarkerChannelManager": ("broker-1-txn-marker-sender",),
}
# javap -c shows these lines for a loaded word, and for the call that makes a client whose id begins with this word.
_STEP: Final = re.compile(r"// String (\w+)$|// Method kafka/server/NetworkUtils\.(buildNetworkClient):", re.MULTILINE)


def users_of_makers(version: str) -> set[str]:
    """The outer classes of Kafka's brokers whose bytecode names a maker; the clients' own jar is left out."""
    found = set()
    for jar in broker_jars(version).glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist() if not jar.name.startswith("kafka-clients") else ():
                code = archive.read(name) if name.endswith(".class") else b""
                if any(maker.encode() in code for maker in _MAKERS):
                    found.add(name.rpartition("/")[2].removesuffix(".class").partition("$")[0])
    return found


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "4.0.1"])
def test_no_class_of_a_broker_makes_a_client_that_is_not_known_or_not_exempt(version: str) -> None:
    outer = users_of_makers(version)
    assert outer - _KNOWN.keys() == set(), "the client-id of each class must be in exemptions.INTERNAL_CLIENT_IDS"
    if version == DEFAULT_VERSION:
        assert _KNOWN.keys() - outer == set(), "_KNOWN lists only classes that still make a client"
    command = [*tool("javap"), "-c", "-p", "-cp", class_path([broker_jars(version)]), "kafka.server.BrokerServer"]
    steps = _STEP.findall(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    prefixes = {word for (word, _), (_, builds) in pairwise(steps) if builds}
    assert prefixes >= {"AddPartitionsManager", "Persister"}
    ids = {client_id for names in _KNOWN.values() for client_id in names or ()}
    ids |= {f"{prefix}-client-1" for prefix in prefixes}
    ids |= {f"quotahost-{of}" for of in ("7", "pipeline", "top", "quotas")}  # quotahost's own clients on other machines
    # org.quotahost.fence.Exemptions reads the patterns in the same way.
    exempt = re.compile(INTERNAL_CLIENT_IDS.replace("#", "[0-9]+").replace("*", r"\S+"))
    assert {each for each in ids if not exempt.fullmatch(each)} == set()
