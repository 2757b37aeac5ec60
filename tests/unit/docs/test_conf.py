"""The files in conf/ fit the code: properties, rights, the dashboard, and the alerts by Prometheus' own checker."""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest
import yaml

from quotahost.broker import discovery
from quotahost.metrics import CATALOGUE
from quotahost.records.topics import GROUPS, TOPICS, Party
from quotahost.settings.broker import Settings
from tests.broker.support.prometheus import package
from tests.unit.docs.test_documents import METRICS, ROOT, anchor_of, anchors

CONF: Final = ROOT / "conf"
ALERTS: Final = CONF / "alerts.yml"
DASHBOARD: Final = json.loads((CONF / "grafana-quotahost.json").read_text(encoding="utf-8"))
RULES: Final = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
PRINCIPALS: Final = {
    "$plugins": Party.PLUGINS, "$pipeline": Party.PIPELINE, "$watchers": Party.WATCHERS, "$operators": Party.OPERATORS,
}  # fmt: skip


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


# ---- rights ----


def rights_given() -> dict[tuple[Party, str], set[str]]:
    """Operations by party and topic; those on groups under the group's name with a star."""
    rights: dict[tuple[Party, str], set[str]] = {}
    text = (CONF / "secured/acls.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["$@"]:
            continue
        pairs = list(zip(words[2::2], words[3::2], strict=True))
        (party,) = (PRINCIPALS[value] for name, value in pairs if name == "--allow-principal")
        operations = {value for name, value in pairs if name == "--operation"}
        prefixed = "*" if ("--resource-pattern-type", "prefixed") in pairs else ""
        for name, value in pairs:
            if name in ("--topic", "--group"):
                rights.setdefault((party, value + prefixed), set()).update(operations)
    return rights


def test_the_script_of_acls_gives_the_declared_rights_and_no_other() -> None:
    all_of = {(party, topic.name): set(topic.operations(party)) for topic in TOPICS for party in Party}
    declared = {which: operations for which, operations in all_of.items() if operations}
    groups = {(party, f"{GROUPS}*"): {"Describe"} for party in (Party.PLUGINS, Party.WATCHERS, Party.OPERATORS)}
    assert rights_given() == declared | groups


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


def test_the_dashboard_draws_the_limits_of_volumes_beside_what_is_used_of_them() -> None:
    """The metrics have the same labels, so that each is divided by the capacity of the same volume."""
    (panel,) = [each for each in DASHBOARD["panels"] if "volume_soft_limit_bytes" in str(each)]
    drawn = [target["expr"].partition("{")[0] for target in panel["targets"]]
    assert drawn == [f"quotahost_volume_{each}_bytes" for each in ("consumed", "soft_limit", "hard_limit")]
    assert all(" / quotahost_volume_capacity_bytes{" in target["expr"] for target in panel["targets"])
    assert {
        m.label for m in CATALOGUE if f"quotahost_{m.prometheus}" in {*drawn, "quotahost_volume_capacity_bytes"}
    } == {"volume"}


def test_the_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert "id" not in DASHBOARD  # Grafana gives it one
    variables = {"__rate_interval", *(v["name"] for v in DASHBOARD["templating"]["list"])}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__all"} <= variables
    places = [panel["gridPos"] for panel in panels]
    cells = [(at["x"] + dx, at["y"] + dy) for at in places for dx, dy in product(range(at["w"]), range(at["h"]))]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


# ---- alerts ----


def promtool(*arguments: object) -> None:
    """Runs Prometheus' own checker, which must find nothing wrong."""
    command = [str(package() / "usr/bin/promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def fires(directory: Path, series: Mapping[str, float | str], minutes: int, alerts: dict[str, str], by: str) -> None:
    """Exactly these alerts fire after so many minutes in which each series had its value, or values in promtool's form.

    ``by`` is a label that tells alerts of one name apart, and ``alerts`` has its value for each.
    """
    names = "|".join(alerts)
    samples = [{"labels": f'{{alertname="{name}",{by}="{of}"}}', "value": 1} for name, of in alerts.items()]
    expected = {
        "expr": f'count(ALERTS{{alertname=~"{names}",alertstate="firing"}}) by (alertname, {by})',
        "eval_time": f"{minutes}m",
        "exp_samples": samples,
    }
    inputs = [
        {"series": name, "values": value if isinstance(value, str) else f"{value:g}x{minutes}"}
        for name, value in series.items()
    ]
    tests = [{"interval": "1m", "input_series": inputs, "promql_expr_test": [expected]}]
    file = directory / "case.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": tests}))
    promtool("test", "rules", file)


def test_one_of_two_brokers_that_falls_silent_fires_an_alert(tmp_path: Path) -> None:
    series: dict[str, float | str] = {
        'quotahost_clients{instance="well"}': 1.0, 'quotahost_clients{instance="silent"}': "1x15 stale _x40",
    }  # fmt: skip
    fires(tmp_path, series, 50, {"QuotahostBrokerSilent": "silent"}, "instance")


def test_a_broker_that_knows_too_little_fires_one_alert_by_whether_that_slows_producers(tmp_path: Path) -> None:
    series = {
        'quotahost_unknown{instance="slowed"}': 1.0, 'quotahost_lack_of_data{instance="slowed"}': 1.0,
        'quotahost_unknown{instance="not-slowed"}': 1.0, 'quotahost_lack_of_data{instance="not-slowed"}': 0.0,
    }  # fmt: skip
    promtool("check", "rules", ALERTS)
    alerts = {"QuotahostLackOfData": "slowed", "QuotahostUnknown": "not-slowed"}
    fires(tmp_path, series, 9, alerts, "instance")


def test_a_client_that_is_near_its_quota_for_long_fires_an_alert_before_it_is_slowed(tmp_path: Path) -> None:
    labels = 'client_id="app",scope="client",type="PRODUCE",instance="b:1"'
    series = {}
    for user, rate, limit in (("near", 95, 100), ("far", 80, 100), ("slowed", 48, 50), ("idle", 0, 100)):
        series[f'quotahost_client_rate{{user="{user}",{labels}}}'] = float(rate)
        series[f'quotahost_client_quota{{user="{user}",{labels}}}'] = 100.0
        series[f'quotahost_client_limit{{user="{user}",{labels}}}'] = float(limit)
    fires(tmp_path, series, 20, {"QuotahostClientNearsQuota": "near"}, "user")


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
    labels = {"instance", "plugin", "volume", "budget"}
    labels |= {"user", "client_id", "type"} if "_client_" in rule["expr"] else set()
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels


def test_the_runbooks_name_no_alert_that_there_is_not() -> None:
    named = re.findall(r"`(Quotahost\w+)`", (ROOT / "docs/runbooks.md").read_text(encoding="utf-8"))
    assert set(named) == {rule["alert"] for rule in RULES}


def test_the_alerts_that_speak_of_a_stop_tell_both_of_its_forms() -> None:
    told = {rule["alert"]: rule["annotations"]["description"] for rule in RULES}
    for alert in ("QuotahostPause", "QuotahostFallback"):
        assert re.search(r"Where the fence is installed.*turned? .*back", told[alert])
        assert re.search(r"Without the fence.*floor\.bytes", told[alert])
