"""The alert rules: by Prometheus' own checker (a test says if there is none), and what they tell of a stop."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import yaml

from tests.broker.support.prometheus import package

ALERTS: Final = Path(__file__).parents[3] / "conf/alerts.yml"


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


def test_the_alerts_that_speak_of_a_stop_tell_both_of_its_forms() -> None:
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    told = {rule["alert"]: rule["annotations"]["description"] for rule in rules}
    for alert in ("QuotahostPause", "QuotahostFallback"):
        assert re.search(r"Where the fence is installed.*turned? .*back", told[alert])
        assert re.search(r"Without the fence.*floor\.bytes", told[alert])
