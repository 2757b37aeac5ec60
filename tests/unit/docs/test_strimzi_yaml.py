"""conf/strimzi/kafka.yaml is what Strimzi's operator takes and keeps: by its schema and its list of forbidden names.

``strimzi-crds.json`` has both, as Strimzi 1.2.0 publishes them; ``tools/strimzi_crds.py`` made it.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from harness.plugin import ROOT
from quotahost.broker import discovery
from quotahost.records.topics import TOPICS, Party
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

STRIMZI: Final = json.loads(Path(__file__).with_name("strimzi-crds.json").read_text(encoding="utf-8"))
#: The part about what the operator forbids.
DOCUMENT: Final = (ROOT / "docs/strimzi.md").read_text(encoding="utf-8").partition("## Under Strimzi's operator")[2]
FILES: Final = sorted((ROOT / "conf/strimzi").glob("*.yaml"))
ALL: Final = [each for file in FILES for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
THEIRS: Final = [each for each in ALL if each["apiVersion"].startswith("kafka.strimzi.io/")]
(KAFKA,) = [each for each in THEIRS if each["kind"] == "Kafka"]
(USER,) = [each for each in THEIRS if each["kind"] == "KafkaUser"]
CONFIG: Final[dict[str, Any]] = KAFKA["spec"]["kafka"]["config"]
#: What the operator adds to super.users (KafkaBrokerConfigurationBuilder.withAuthorization), for a cluster's name.
OWN_USERS: Final = ("{}-kafka", "{}-entity-topic-operator", "{}-entity-user-operator", "{}-kafka-exporter",
                    "{}-cruise-control", "cluster-operator")  # fmt: skip


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused: Kubernetes drops them, so that a misspelt one does nothing."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def problems(document: dict[str, Any]) -> list[str]:
    schema = strict(STRIMZI["schemas"][document["kind"]])
    # These three are Kubernetes' own, and the schema says no more of them than that they are there.
    schema["properties"]["metadata"] = {"type": "object"}
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


def is_forbidden(name: str) -> bool:
    """As the operator's AbstractConfiguration.filterForbidden has it."""
    begins = any(name.lower().startswith(prefix) for prefix in STRIMZI["forbidden_prefixes"])
    return begins and name not in STRIMZI["forbidden_prefix_exceptions"]


def properties() -> dict[str, str]:
    return {name: str(value) for name, value in CONFIG.items()}


@pytest.mark.parametrize("document", THEIRS, ids=lambda document: document["metadata"]["name"])
def test_each_resource_fits_strimzis_schema(document: dict[str, Any]) -> None:
    assert document["apiVersion"] == "kafka.strimzi.io/" + STRIMZI["schemas"][document["kind"]]["apiVersion"]
    assert problems(document) == []


def test_the_operator_keeps_every_property_and_would_drop_strimzis_names() -> None:
    assert [name for name in CONFIG if is_forbidden(name)] == []
    assert is_forbidden(PREFIX + "static.excluded.principal.name.list")
    assert is_forbidden(PREFIX + "static.produce")
    assert "quotas" not in KAFKA["spec"]["kafka"], "the operator would remove the callback's class"


def test_the_document_names_all_that_the_operator_drops_of_the_callbacks() -> None:
    ours = [prefix for prefix in STRIMZI["forbidden_prefixes"] if prefix.startswith(PREFIX)]
    assert ours
    assert [prefix for prefix in ours if f"`{prefix.removeprefix(PREFIX)}" not in DOCUMENT] == []
    assert all(f"CN={user.format('CLUSTER')},O=io.strimzi" in DOCUMENT for user in OWN_USERS)
    assert f"Strimzi {STRIMZI['version']}" in DOCUMENT


def test_the_properties_are_understood() -> None:
    settings = Settings.from_properties(properties())
    for role, name in discovery.configured(settings):
        discovery.plugin_settings(role, name, settings)
    assert settings.python_executable == "/opt/quotahost/bin/python3", "as strimzi.Containerfile has it"


def test_strimzis_own_users_are_exempt() -> None:
    name = KAFKA["metadata"]["name"]
    expected = {f"CN={user.format(name)},O=io.strimzi" for user in OWN_USERS}
    assert set(Settings.from_properties(properties()).excluded_principals) == expected


def test_the_pipelines_user_has_the_rights_that_it_needs_and_no_other() -> None:
    given = {(acl["resource"]["type"], acl["resource"]["name"]): acl for acl in USER["spec"]["authorization"]["acls"]}
    needed = {("topic", each.name): each.operations(Party.PIPELINE) for each in TOPICS}
    assert {name: tuple(acl["operations"]) for name, acl in given.items()} == {n: o for n, o in needed.items() if o}
    assert {acl["resource"]["patternType"] for acl in given.values()} == {"literal"}
    assert USER["metadata"]["labels"] == {"strimzi.io/cluster": KAFKA["metadata"]["name"]}
