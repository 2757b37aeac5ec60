"""The alert rules: by Prometheus' own checker (a test says if there is none), and what they tell of a stop."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.broker.support.prometheus import package
from tests.unit.docs.test_documents import ROOT, anchor_of, anchors

ALERTS: Final = ROOT / "conf/alerts.yml"
RULES: Final = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]


def sections(document: Path) -> list[str]:
    """Its sections of the second level, each beginning with its title."""
    return re.split(r"^## ", document.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def promtool(*arguments: object) -> None:
    """Runs Prometheus' own checker, which must find nothing wrong."""
    command = [str(package() / "usr/bin/promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alert_rules_are_those_that_prometheus_accepts() -> None:
    promtool("check", "rules", ALERTS)


def fires(directory: Path, series: dict[str, float], minutes: int, alerts: dict[str, str], by: str) -> None:
    """Exactly these alerts, by their names, fire after so many minutes in which each series had its value.

    Args:
        directory: for a file.
        series: values by the series' names and labels.
        minutes: for how long.
        alerts: of each alert the value of ``by``.
        by: a label that tells alerts of one name apart.
    """
    names = "|".join(alerts)
    samples = [{"labels": f'{{alertname="{name}",{by}="{of}"}}', "value": 1} for name, of in alerts.items()]
    expected = {
        "expr": f'count(ALERTS{{alertname=~"{names}",alertstate="firing"}}) by (alertname, {by})',
        "eval_time": f"{minutes}m",
        "exp_samples": samples,
    }
    inputs = [{"series": name, "values": f"{value:g}x{minutes}"} for name, value in series.items()]
    tests = [{"interval": "1m", "input_series": inputs, "promql_expr_test": [expected]}]
    file = directory / "case.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": tests}))
    promtool("test", "rules", file)


def test_a_broker_that_knows_too_little_fires_one_alert_by_whether_that_slows_producers(tmp_path: Path) -> None:
    series = {
        'quotahost_unknown{instance="slowed"}': 1.0, 'quotahost_lack_of_data{instance="slowed"}': 1.0,
        'quotahost_unknown{instance="not-slowed"}': 1.0, 'quotahost_lack_of_data{instance="not-slowed"}': 0.0,
    }  # fmt: skip
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
def test_each_alert_leads_to_a_runbook_that_begins_with_its_name(rule: dict[str, Any]) -> None:
    document, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor in anchors(ROOT / document)
    (section,) = [each for each in sections(ROOT / document) if anchor_of(each.partition("\n")[0]) == anchor]
    seen = section.partition("**What you see.**")[2].partition("**Check**")[0]
    assert f"`{rule['alert']}`" in seen


def test_the_runbooks_name_no_alert_that_there_is_not() -> None:
    named = re.findall(r"`(Quotahost\w+)`", (ROOT / "docs/runbooks.md").read_text(encoding="utf-8"))
    assert set(named) == {rule["alert"] for rule in RULES}


def test_the_alerts_that_speak_of_a_stop_tell_both_of_its_forms() -> None:
    told = {rule["alert"]: rule["annotations"]["description"] for rule in RULES}
    for alert in ("QuotahostPause", "QuotahostFallback"):
        assert re.search(r"Where the fence is installed.*turned? .*back", told[alert])
        assert re.search(r"Without the fence.*floor\.bytes", told[alert])
