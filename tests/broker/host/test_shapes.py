"""What quotahost and each version of Kafka have of each other, and what doctor says of a later one."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, tool
from harness.plugin import JAR
from quotahost.cli.console import Level
from quotahost.cli.doctor.installation import TRIED, check_internals
from tools.kafka_shapes import RESOURCE, VERSIONS, shapes

pytestmark = pytest.mark.broker

#: The oldest, that of all other tests, and the newest; what lies between has the interfaces of one of them.
BETWEEN: Final = ("4.1", "4.2")
LINES: Final = [pytest.param(line, marks=[pytest.mark.long] * (line in BETWEEN)) for line in VERSIONS]
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
    asked = {
        row[2].partition("(")[0].split()[-1] for row in known if "Authorizer" in row[0] or row[0] == "Reconfigurable"
    }
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
    """Kafka 4.4 moved a class that was used on request threads; but three classes are for 4.1 and newer only."""
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
    assert (finding.level, finding.text) == (Level.GOOD, "it has all that quotahost uses of it")


@pytest.mark.parametrize(
    ("more", "level", "words"),
    [
        ("", Level.GOOD, "it has all that quotahost uses of it"),
        ("default void more(int[] all) {}", Level.GOOD, "it has all that quotahost uses of it"),
        (
            "void mustBeThere();",
            Level.WRONG,
            "This Kafka demands void mustBeThere() of org.quotahost.PythonQuotaCallback",
        ),
    ],
    ids=["as 5.0 will be", "a default method more", "an abstract method more"],
)
def test_doctor_says_what_a_later_kafka_demands(tmp_path: Path, more: str, level: Level, words: str) -> None:
    home = later_kafka(tmp_path, more)
    finding = next(iter(check_internals(home)))
    assert finding.level is level
    assert words in finding.text


def test_doctor_names_what_is_missing_and_what_is_weaker_then(tmp_path: Path) -> None:
    libs = tmp_path / "libs"
    shutil.copytree(broker_jars(), libs, ignore=lambda _, names: {n for n in names if n.startswith("log4j-core")})
    (finding,) = check_internals(tmp_path)
    assert finding.level is Level.WEAK
    assert finding.text.startswith("BrokerLog is missing")
    assert "the broker's log contains every request that the fence turns back" in finding.text


def test_a_folder_without_kafka_is_not_asked(tmp_path: Path) -> None:
    (finding,) = check_internals(tmp_path)
    assert finding.level is Level.NOTE


def later_kafka(folder: Path, more: str) -> Path:
    """A Kafka whose callback has no updateClusterMetadata and this method more; Java takes the first jar by name."""
    libs = folder / "kafka/libs"
    source = folder / "ClientQuotaCallback.java"
    source.write_text(LATER.replace("MORE", more))
    kafka = next(broker_jars().glob("kafka-clients-*.jar"))
    compiled = [*tool("javac"), "-nowarn", "-d", str(folder / "classes"), "-cp", str(kafka), str(source)]
    subprocess.run(compiled, check=True)
    shutil.copytree(broker_jars(), libs)
    shutil.copy(JAR, libs / "quotahost-0.1.0.jar")
    with zipfile.ZipFile(kafka) as old, zipfile.ZipFile(libs / kafka.name, "w") as new:
        for name in old.namelist():
            inside = folder / "classes" / name
            new.writestr(name, inside.read_bytes() if inside.is_file() else old.read(name))
    return folder / "kafka"
