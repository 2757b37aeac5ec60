"""The files in conf/ fit the code: properties are understood, dashboard and alerts know only real metrics."""

import json
import re
from pathlib import Path
from typing import Any

import javaproperties
import pytest
import yaml

from quotahost.broker import discovery
from quotahost.metrics import CATALOGUE
from quotahost.settings.broker import Settings

CONF = Path(__file__).parents[3] / "conf"
METRICS = {f"quotahost_{m.prometheus}{m.kind.value}" for m in CATALOGUE}
DASHBOARD = json.loads((CONF / "grafana-quotahost.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((CONF / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]


def metrics(text: str) -> set[str]:
    return set(re.findall(r"quotahost_\w+", text))


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


@pytest.mark.parametrize(
    "path", [*sorted(CONF.glob("*.properties")), CONF / "secured/broker.properties"], ids=lambda path: path.stem
)
def test_properties_are_understood(path: Path) -> None:
    settings = Settings.from_properties(javaproperties.loads(path.read_text(encoding="utf-8")))
    for role, name in discovery.configured(settings):
        if name != "off-peak":  # its own package's tests check it
            discovery.plugin_settings(role, name, settings)


def test_every_file_is_listed() -> None:
    told = (CONF / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[(.*?)\]", told, re.MULTILINE)) == {
        path.name for path in CONF.iterdir() if path.name != "README.md"
    }


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    used = set().union(*map(metrics, expressions()))
    assert used == METRICS


def test_the_dashboard_draws_the_limits_of_volumes_beside_what_is_used_of_them() -> None:
    """The metrics have the same labels, so that each is divided by the capacity of the same volume."""
    (panel,) = [each for each in DASHBOARD["panels"] if "volume_soft_limit_bytes" in str(each)]
    drawn = [target["expr"].partition("{")[0] for target in panel["targets"]]
    assert drawn == [f"quotahost_volume_{each}_bytes" for each in ("consumed", "soft_limit", "hard_limit")]
    assert all(" / quotahost_volume_capacity_bytes{" in target["expr"] for target in panel["targets"])
    assert {
        m.label for m in CATALOGUE if f"quotahost_{m.prometheus}" in {*drawn, "quotahost_volume_capacity_bytes"}
    } == {"volume"}


def test_the_dashboards_counters_are_rates() -> None:
    bare = [e for e in expressions() if "_total" in e and not re.match(r"(rate|increase)\(.*\)$", e)]
    assert bare == []


def test_the_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert "id" not in DASHBOARD  # Grafana gives it one
    variables = {"__rate_interval", *(v["name"] for v in DASHBOARD["templating"]["list"])}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__all"} <= variables
    cells = [cell for panel in panels for cell in _cells(panel["gridPos"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def _cells(at: dict[str, Any]) -> list[tuple[int, int]]:
    return [(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alerts_know_only_real_metrics_and_say_what_is_up(rule: dict[str, Any]) -> None:
    assert metrics(rule["expr"])
    assert metrics(rule["expr"]) <= METRICS
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert "_total" not in rule["expr"] or re.match(r"increase\(.*\[\w+\]\) > \d+$", rule["expr"])
    labels = {"instance", "plugin", "volume", "budget"}
    labels |= {"user", "client_id", "type"} if "_client_" in rule["expr"] else set()
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels
