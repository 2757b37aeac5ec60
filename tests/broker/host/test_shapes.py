"""The interfaces by which Kafka uses quotahost, in each version: known, and unknown if a later Kafka has more."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest

from harness.java.jars import broker_jars
from harness.java.jdk import program
from harness.plugin import JAR
from quotahost.cli.console import Level
from quotahost.cli.doctor.shapes import check_shapes
from tools.kafka_shapes import RESOURCE, VERSIONS, run_tool

pytestmark = pytest.mark.broker

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


@pytest.mark.parametrize("line", VERSIONS)
def test_the_resource_has_what_each_kafka_has(line: str) -> None:
    shown = run_tool("show", broker_jars(VERSIONS[line]))
    known = [row.split("\t") for row in RESOURCE.read_text().splitlines()[1:]]
    assert sorted(shown) == sorted("\t".join(row[:3]) for row in known if line in row[3:])
    assert run_tool("compare", broker_jars(VERSIONS[line])) == []


@pytest.mark.parametrize("line", VERSIONS)
def test_every_class_of_kafka_that_the_jar_uses_is_there(line: str) -> None:
    """Kafka 4.4 moved a class that was used on request threads; but three classes are for 4.1 and newer only."""
    command = [program("jdeps"), "--multi-release", "17", "--missing-deps"]
    command += ["-cp", ":".join(map(str, sorted(broker_jars(VERSIONS[line]).glob("*.jar")))), str(JAR)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [row.split() for row in done.stdout.splitlines()[1:]]
    missing = {(user.removeprefix("org.quotahost."), name) for user, _, name, *_ in rows if "quotahost" in user}
    users = {"MonitoredPythonQuotaCallback", "MonitoredQuotaFence", "fence.UnseenMetrics"} if line == "4.0" else set()
    assert {user for user, _ in missing} == users, missing


@pytest.mark.parametrize(
    ("more", "level", "words"),
    [
        ("", Level.GOOD, "among those that quotahost knows"),
        ("default void more(int[] all) {}", Level.WEAK, "it has also void more(int[]), for which Kafka's own default"),
        ("void mustBeThere();", Level.WRONG, "it demands void mustBeThere(), which quotahost cannot answer"),
    ],
    ids=["as 5.0 will be", "a default method more", "an abstract method more"],
)
def test_doctor_says_what_a_later_kafka_has(tmp_path: Path, more: str, level: Level, words: str) -> None:
    home = later_kafka(tmp_path, more)
    (finding,) = check_shapes(home)
    assert finding.level is level
    assert words in finding.text


def test_a_folder_without_kafka_is_not_compared(tmp_path: Path) -> None:
    (finding,) = check_shapes(tmp_path)
    assert finding.level is Level.NOTE
    assert list(check_shapes(None)) == []


def later_kafka(folder: Path, more: str) -> Path:
    """A Kafka whose callback has no updateClusterMetadata and this method more; Java takes the first jar by name."""
    libs = folder / "kafka/libs"
    source = folder / "ClientQuotaCallback.java"
    source.write_text(LATER.replace("MORE", more))
    kafka = next(broker_jars().glob("kafka-clients-*.jar"))
    compiled = [program("javac"), "-nowarn", "-d", str(folder / "classes"), "-cp", str(kafka), str(source)]
    subprocess.run(compiled, check=True)
    shutil.copytree(broker_jars(), libs, ignore=lambda _, names: {n for n in names if not n.startswith(KEPT)})
    shutil.copy(JAR, libs / "quotahost-0.1.0.jar")
    with zipfile.ZipFile(kafka) as old, zipfile.ZipFile(libs / kafka.name, "w") as new:
        for name in old.namelist():
            inside = folder / "classes" / name
            new.writestr(name, inside.read_bytes() if inside.is_file() else old.read(name))
    return folder / "kafka"


KEPT: Final = ("kafka-metadata", "kafka-server-common", "slf4j-api")
