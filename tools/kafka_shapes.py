"""Writes kafka-shapes.tsv: the members of Kafka's interfaces that the jar implements, in each tested version.

``python -m tools.kafka_shapes`` asks javap about each version's jars, which Maven downloads. Add a new Kafka to
``VERSIONS``; then ``tests/broker/host/test_shapes.py`` names its additional methods. Look at each method before you add
its line to the resource. For example, a new default method of Authorizer must be passed on to the inner authorizer.
"""

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program

#: The tested version of each release line.
VERSIONS: Final = {"4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1", "4.4": "4.4.0"}
RESOURCE: Final = Path(__file__).with_name("kafka-shapes.tsv")
TYPES: Final = (
    "org.apache.kafka.server.quota.ClientQuotaType",
    "org.apache.kafka.server.quota.ClientQuotaCallback",
    "org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer",
    "org.apache.kafka.server.authorizer.Authorizer",
    "org.apache.kafka.common.Configurable",
    "org.apache.kafka.common.Reconfigurable",
    "org.apache.kafka.common.metrics.Monitorable",
)
_HEADER: Final = (
    "# Kafka's interfaces by version, as tools/kafka_shapes.py writes them: TYPE, KIND, MEMBER, VERSION...\n"
)
_METHOD: Final = re.compile(r"  public (abstract|default) (.+?\))(?: throws .+)?;")
_CONSTANT: Final = re.compile(r"  public static final .+ (\w+);")
_PACKAGE: Final = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z])")


def shapes(libs: Path) -> list[str]:
    """Lines of ``TYPE, KIND, MEMBER``, separated by tabs, of the Kafka whose jars are in this folder."""
    command = [program("javap"), "-public", "-cp", class_path([libs]), *TYPES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # Kafka 4.0 has no Monitorable
    rows, of = [], ""
    for line in done.stdout.splitlines():
        if " interface " in line or " class " in line:
            of = re.split(r" (?:interface|class) ", line)[1].split()[0].rsplit(".", 1)[-1]
        elif found := _METHOD.match(line):
            rows.append("\t".join([of, found[1], _PACKAGE.sub("", found[2])]))
        elif found := _CONSTANT.match(line):
            rows.append("\t".join([of, "constant", found[1]]))
    assert len({row.split("\t")[0] for row in rows}) >= len(TYPES) - 1, done.stderr
    return rows


def table() -> str:
    """The resource's text, made from the jars of all versions."""
    versions: dict[str, list[str]] = defaultdict(list)
    for line, version in VERSIONS.items():
        for member in shapes(broker_jars(version)):
            versions[member].append(line)
    ordered = sorted(versions.items(), key=lambda item: (item[0].split("\t")[0], -len(item[1]), item[0]))
    return _HEADER + "".join("\t".join([member, *those]) + "\n" for member, those in ordered)


if __name__ == "__main__":
    RESOURCE.write_text(table())
