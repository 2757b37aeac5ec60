"""Renews the schema that conf/strimzi must match: ``JAVA_HOME=JDK-21 python -m tools.strimzi_crds``.

Strimzi's own generator makes the custom resource definitions of its release from its ``api`` jar, as its build does;
the result is what Strimzi publishes. Descriptions and parts that conf/strimzi doesn't use are left out.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from harness.java.jars import maven_jar
from harness.java.jdk import class_path, program

VERSION: Final = "1.2.0"
TARGET: Final = Path(__file__).parents[1] / "tests/unit/docs/strimzi-crds.json"
_MODEL: Final = "io.strimzi.api.kafka.model"
_KINDS: Final = {
    "Kafka": f"{_MODEL}.kafka.Kafka",
    "KafkaNodePool": f"{_MODEL}.nodepool.KafkaNodePool",
    "KafkaUser": f"{_MODEL}.user.KafkaUser",
}
_OPTIONS: Final = (
    *("--target-kube", "1.16+", "--crd-api-version", "v1", "--api-versions", "v1", "--storage-version", "v1"),
    "--yaml",
)
#: Only these parts of a template are kept whole; conf/strimzi doesn't use the other large parts.
_KEPT_OF_TEMPLATES: Final = {"pod": {"volumes", "imagePullSecrets"}, "kafkaContainer": {"env", "volumeMounts"}}
_DROPPED: Final = {"description", "x-kubernetes-validations"}
_NOT_USED: Final = {
    "status",
    "tieredStorage",
    "logging",
    "clusterCa",
    "clientsCa",
    "maintenanceTimeWindows",
    "resources",
}
_NOTICE: Final = (
    f"Made by tools/strimzi_crds.py from io.strimzi:api:{VERSION} by io.strimzi:crd-generator:{VERSION}. Copyright "
    "Strimzi authors, Apache License 2.0 (LICENSE). Changed: descriptions and unused parts left out."
)


def main() -> None:
    """Write the file."""
    jars = [maven_jar(f"io.strimzi:{name}:{VERSION}") for name in ("api", "crd-generator")]
    made: dict[str, Any] = {"notice": _NOTICE, "version": VERSION, **_forbidden(jars[0])}
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder, f"{kind}.yaml") for kind in _KINDS}
        given = [f"{_KINDS[kind]}={file}" for kind, file in files.items()]
        generator = [program("java"), "-cp", class_path(jars), "io.strimzi.crdgenerator.CrdGenerator"]
        subprocess.run([*generator, *_OPTIONS, *given], check=True)
        made["schemas"] = {kind: _trimmed(_schema(file)) for kind, file in files.items()}
    TARGET.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def _schema(file: Path) -> dict[str, Any]:
    (version,) = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["versions"]
    return {"apiVersion": version["name"], **version["schema"]["openAPIV3Schema"]}


def _forbidden(api: Path) -> dict[str, list[str]]:
    """The constants by which Strimzi filters ``spec.kafka.config`` (KafkaConfiguration, AbstractConfiguration)."""
    name = f"{_MODEL}.kafka.KafkaClusterSpec"
    command = [program("javap"), "-constants", "-cp", class_path([api]), name]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"String (FORBIDDEN_\w+) = \"(.*)\";", shown))
    return {name.lower(): re.split(r"\s*,+\s*", text) for name, text in found.items()}


def _trimmed(node: Any, name: str = "") -> Any:
    if isinstance(node, list):
        return [_trimmed(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _trimmed(each, key) for key, each in node.items() if not (key in _DROPPED and isinstance(each, str | list))
    }
    if isinstance(properties := kept.get("properties"), dict):
        wanted = _KEPT_OF_TEMPLATES.get(name, properties.keys() - _NOT_USED)
        if name == "template":
            wanted = set(_KEPT_OF_TEMPLATES)
        kept["properties"] = {key: each for key, each in properties.items() if key in wanted}
    return kept


if __name__ == "__main__":
    main()
