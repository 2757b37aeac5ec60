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


def test_a_broker_that_knows_too_little_fires_one_alert_by_whether_that_slows_producers(tmp_path: Path) -> None:
    series = {"quotahost_unknown": (1, 1), "quotahost_lack_of_data": (1, 0)}
    alerts = ("QuotahostLackOfData", "slowed"), ("QuotahostUnknown", "not-slowed")
    case = {
        "rule_files": [str(ALERTS)],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": f'{name}{{instance="{broker}"}}', "values": f"{value}x10"}
                    for name, values in series.items()
                    for broker, value in zip(("slowed", "not-slowed"), values, strict=True)
                ],
                "promql_expr_test": [
                    {
                        "expr": 'count(ALERTS{alertname=~"Quotahost(LackOfData|Unknown)"}) by (alertname, instance)',
                        "eval_time": "9m",
                        "exp_samples": [
                            {"labels": f'{{alertname="{alert}",instance="{broker}"}}', "value": 1}
                            for alert, broker in alerts
                        ],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "case.yml"
    file.write_text(yaml.safe_dump(case))
    promtool("test", "rules", file)


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
