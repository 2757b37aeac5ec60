"""Tests that the files in conf/ fit the code, Prometheus' own checker, and what Strimzi's operator takes and keeps."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest
import yaml
from jsonschema import Draft202012Validator

from quotahost.broker import discovery
from quotahost.records.topics import TOPICS, AclRole
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.broker.support.prometheus import package
from tests.unit.cli.commands import told
from tests.unit.docs.test_documents import METRICS, ROOT, anchor_of, anchors

CONF: Final = ROOT / "conf"
ALERTS: Final = CONF / "alerts.yml"
DASHBOARD: Final = json.loads((CONF / "grafana-quotahost.json").read_text(encoding="utf-8"))
RULES: Final = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]


@pytest.mark.parametrize("path", sorted(CONF.glob("*.properties")), ids=lambda path: path.stem)
def test_properties_are_understood(path: Path) -> None:
    understood(javaproperties.loads(path.read_text(encoding="utf-8")))


def understood(properties: dict[str, str]) -> Settings:
    settings = Settings.from_properties(properties)
    for role, name in discovery.configured(settings):
        if name != "off-peak":  # the plugin's own package tests it
            discovery.plugin_settings(role, name, settings, discovery.load(role, name))
    return settings


def test_every_file_is_listed() -> None:
    told = (CONF / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[(.*?)\]", told, re.MULTILINE)) == {
        path.name for path in CONF.iterdir() if path.name != "README.md"
    }


def test_the_service_starts_the_pipeline_with_options_that_it_takes() -> None:
    unit = (CONF / "pipeline.service").read_text(encoding="utf-8")
    lines = re.findall(r"^ExecStart=/opt/quotahost/bin/quotahost (.*)", unit, re.MULTILINE)
    told(0, ["--bootstrap broker-1:9092"], *shlex.split(*lines), "--print-submit")


# ---- dashboard ----


def metrics(text: str) -> set[str]:
    return set(re.findall(r"quotahost_\w+", text))


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


def test_the_dashboard_shows_every_metric_and_no_other_and_counters_as_rates() -> None:
    used = set().union(*map(metrics, expressions()))
    assert used == METRICS
    counters = [each for each in expressions() if "_total" in each]
    assert [each for each in counters if not re.match(r"(rate|increase)\(.*\)$", each)] == []


def test_the_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert "id" not in DASHBOARD  # Grafana assigns the id
    variables = {"__rate_interval", *(v["name"] for v in DASHBOARD["templating"]["list"])}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__all"} <= variables


# ---- alerts ----


@pytest.mark.parametrize(("what", "file"), [("check", ALERTS), ("test", Path(__file__).with_name("alerts.yml"))])
def test_by_prometheus_own_checker_the_alerts_fire_when_they_should(what: str, file: Path) -> None:
    command: list[str | Path] = [package() / "usr/bin/promtool", what, "rules", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_knows_real_metrics_and_leads_to_a_runbook_that_begins_with_it(rule: dict[str, Any]) -> None:
    document, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor in anchors(ROOT / document)
    sections = re.split(r"^## ", (ROOT / document).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    (section,) = [each for each in sections if anchor_of(each.partition("\n")[0]) == anchor]
    seen = section.partition("**What you see.**")[2].partition("**Check**")[0]
    assert f"`{rule['alert']}`" in seen
    assert metrics(rule["expr"])
    assert metrics(rule["expr"]) <= METRICS
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert "_total" not in rule["expr"] or re.match(r"increase\(.*\[\w+\]\) > \d+$", rule["expr"])
    labels = {"instance", "plugin", "volume", "budget", "source"}
    labels |= {"user", "client_id", "scope", "type"} if "_client_" in rule["expr"] else set()
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels


def test_the_runbooks_name_no_alert_that_there_is_not() -> None:
    named = re.findall(r"`(Quotahost\w+)`", (ROOT / "docs/runbooks.md").read_text(encoding="utf-8"))
    assert set(named) == {rule["alert"] for rule in RULES}


# ---- Strimzi's operator ----

STRIMZI: Final = json.loads(Path(__file__).with_name("strimzi-crds.json").read_text(encoding="utf-8"))
#: The document's part about properties that the operator forbids.
DOCUMENT: Final = (ROOT / "docs/strimzi.md").read_text(encoding="utf-8").partition("## Under Strimzi's operator")[2]
FILES: Final = sorted((ROOT / "conf/strimzi").glob("*.yaml"))
ALL: Final = [each for file in FILES for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
THEIRS: Final = [each for each in ALL if each["apiVersion"].startswith("kafka.strimzi.io/")]
(KAFKA,) = [each for each in THEIRS if each["kind"] == "Kafka"]
(USER,) = [each for each in THEIRS if each["kind"] == "KafkaUser"]
(DEPLOYMENT,) = [each for each in ALL if each["kind"] == "Deployment"]
CONFIG: Final[dict[str, Any]] = KAFKA["spec"]["kafka"]["config"]
#: The operator adds these to super.users; {} is the cluster (KafkaBrokerConfigurationBuilder.withAuthorization).
OWN_USERS: Final = ("{}-kafka", "{}-entity-topic-operator", "{}-entity-user-operator", "{}-kafka-exporter",
                    "{}-cruise-control", "cluster-operator")  # fmt: skip


def strict(schema: Any) -> Any:
    """The schema, changed to refuse unknown fields: Kubernetes drops them, so a misspelt field would do nothing."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def is_forbidden(name: str) -> bool:
    """Whether the operator's AbstractConfiguration.filterForbidden drops this property."""
    begins = any(name.lower().startswith(prefix) for prefix in STRIMZI["forbidden_prefixes"])
    return begins and name not in STRIMZI["forbidden_prefix_exceptions"]


@pytest.mark.parametrize("document", THEIRS, ids=lambda document: document["metadata"]["name"])
def test_each_resource_fits_strimzis_schema(document: dict[str, Any]) -> None:
    assert document["apiVersion"] == "kafka.strimzi.io/" + STRIMZI["schemas"][document["kind"]]["apiVersion"]
    schema = strict(STRIMZI["schemas"][document["kind"]])
    assert [error.message for error in Draft202012Validator(schema).iter_errors(document)] == []


def test_the_operator_keeps_every_property_and_would_drop_strimzis_names() -> None:
    assert [name for name in CONFIG if is_forbidden(name)] == []
    assert is_forbidden(PREFIX + "static.excluded.principal.name.list")
    assert is_forbidden(PREFIX + "static.produce")
    assert "quotas" not in KAFKA["spec"]["kafka"], "with `quotas`, the operator would remove the callback's class"


def test_the_document_names_all_that_the_operator_drops_of_the_callbacks() -> None:
    ours = [prefix for prefix in STRIMZI["forbidden_prefixes"] if prefix.startswith(PREFIX)]
    assert ours
    assert [prefix for prefix in ours if f"`{prefix.removeprefix(PREFIX)}" not in DOCUMENT] == []
    assert all(f"CN={user.format('CLUSTER')},O=io.strimzi" in DOCUMENT for user in OWN_USERS)
    assert f"Strimzi {STRIMZI['version']}" in DOCUMENT


def test_the_properties_are_understood_and_strimzis_own_users_are_exempt() -> None:
    settings, name = understood({name: str(value) for name, value in CONFIG.items()}), KAFKA["metadata"]["name"]
    assert settings.python_executable == "/opt/quotahost/bin/python3", "the path is that of strimzi.Containerfile"
    assert set(settings.excluded_principals) == {f"CN={user.format(name)},O=io.strimzi" for user in OWN_USERS}


def test_the_pipelines_user_has_the_rights_that_it_needs_and_no_other() -> None:
    given = {(acl["resource"]["type"], acl["resource"]["name"]): acl for acl in USER["spec"]["authorization"]["acls"]}
    needed = {("topic", each.name): each.operations(AclRole.PIPELINE) for each in TOPICS}
    assert {name: tuple(acl["operations"]) for name, acl in given.items()} == {n: o for n, o in needed.items() if o}
    assert {acl["resource"]["patternType"] for acl in given.values()} == {"literal"}


def test_the_pipelines_deployment_starts_it_as_that_user_with_options_that_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    password, kafka = container["env"]
    monkeypatch.setenv(kafka["name"], kafka["value"].replace(f"$({password['name']})", "secret"))
    told(0, ["--bootstrap my-cluster-kafka-bootstrap:9093"], "pipeline", *container["args"], "--print-submit")
    secrets = {volume["name"]: volume.get("secret", {}).get("secretName") for volume in pod["volumes"]}
    assert secrets["cluster"] == f"{KAFKA['metadata']['name']}-cluster-ca-cert"
    assert {secrets["user"], password["valueFrom"]["secretKeyRef"]["name"]} == {USER["metadata"]["name"]}
    mounted = {f"{mount['mountPath']}/": mount["name"] for mount in container["volumeMounts"]}
    files = re.findall(r'"(/[^"]*/)([^"]*)"', kafka["value"])
    assert {(mounted[folder], file) for folder, file in files} == {("cluster", "ca.crt"), ("user", "user.p12")}
    assert USER["metadata"]["labels"] == {"strimzi.io/cluster": KAFKA["metadata"]["name"]}
