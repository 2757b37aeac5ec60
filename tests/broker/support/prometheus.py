"""A real Prometheus server, and what it says to the expressions of the dashboard and of the alert rules.

The server is that of Debian's package; where there is none a test says why it could not run.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from harness.plugin import ROOT
from harness.system.debian import PackageMissing, debian_package
from harness.system.ports import free_port
from harness.system.process import LoggedProcess
from quotahost.broker.metrics import CATALOGUE
from tests.skips import COULD_NOT_RUN

#: What Grafana puts in place of its variables, if all brokers are chosen and Prometheus scrapes twice a second.
_VARIABLES: Final = {"$__rate_interval": "5s", "$job": ".*", "$instance": ".*"}


class Server(LoggedProcess):
    """A Prometheus with an empty database and the alert rules, which scrapes and evaluates twice a second.

    It runs for the time of a ``with`` block. An alert fires once what is wrong has lasted a second.
    """

    def __init__(self, directory: Path, ports: Sequence[str], **labels: str) -> None:
        """It scrapes these ports, and gives what it reads the labels."""
        super().__init__(directory / "prometheus.log")
        rules = _alerts()
        for rule in rules["groups"][0]["rules"]:
            if "for" in rule:
                rule["for"] = "1s"
        (directory / "alerts.yml").write_text(yaml.safe_dump(rules))
        target = {"targets": [f"127.0.0.1:{port}" for port in ports], "labels": labels}
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "scrape_configs": [{"job_name": "test", "static_configs": [target]}],
            "rule_files": ["alerts.yml"],
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = [
            str(package() / "usr/bin/prometheus"),
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    def start(self) -> None:
        """Starts it, or starts it again with its data, and waits until it answers."""
        self.launch_command(self._command, dict(os.environ))
        self.wait_for_log("Server is ready")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def firing(self) -> dict[str, dict[str, str]]:
        """The annotations of the alerts that fire now, by name."""
        found = self._ask("alerts")["alerts"]
        return {each["labels"]["alertname"]: each["annotations"] for each in found if each["state"] == "firing"}

    def health(self) -> set[str]:
        """What the server says of its evaluation of the alerts: ``ok``, or what is wrong."""
        (group,) = self._ask("rules")["groups"]
        return {rule.get("lastError") or rule["health"] for rule in group["rules"]}

    def series(self, expression: str, since: float) -> list[dict[str, str]]:
        """The labels of each series that an expression has had since a Unix time, as a panel asks for them.

        Raises:
            ValueError: the server says that the expression is wrong.
        """
        asked = {"query": expression, "start": since, "end": time.time(), "step": 1}
        return [each["metric"] for each in self._ask("query_range", asked)["result"]]

    def empty(self, since: float, not_shown: Collection[str]) -> list[Expression]:
        """What has had no series since a Unix time, or none with the legend's labels, of the panels and the alerts.

        Those with a metric of one of the MBean types ``not_shown`` are left out. Each metric of an alert must be there
        with the labels that the alert asks for.
        """
        left_out = {f"quotahost_{each.prometheus}{each.kind.value}" for each in CATALOGUE if each.type in not_shown}
        found = []
        for each in (*panels(), *(Expression(rule.place, text) for rule in rules() for text in rule.selectors)):
            if not {text.partition("{")[0] for text in each.selectors} & left_out:
                labels = [set(shown) for shown in self.series(each.text, since)]
                if not labels or not each.labels <= set().union(*labels):
                    found.append(each)
        return found

    def _ask(self, path: str, query: dict[str, Any] | None = None) -> Any:
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(query or {})}", timeout=60) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            raise ValueError(f"{query}: {error.read().decode()}") from None


@cache
def _found() -> Path | str:
    """The files, or why there are none; asked once, as a machine without a network takes minutes to say no."""
    try:
        return debian_package("prometheus")
    except PackageMissing as reason:
        return str(reason)


def package() -> Path:
    """The files of Debian's package; the test that asks is skipped with the reason where there are none."""
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"{COULD_NOT_RUN}no Prometheus on this machine: {found}")
    return found


# ---- the dashboard and the alert rules ---------------------------------------------------------------------------


class Expression(NamedTuple):
    """One expression and where it stands, with the labels that the legend of a panel names."""

    place: str
    text: str
    labels: frozenset[str] = frozenset()

    @property
    def selectors(self) -> set[str]:
        """Its metrics with the labels that they must have."""
        return set(re.findall(r"quotahost_\w+(?:\{[^}]*\})?", self.text))


def panels() -> list[Expression]:
    """Each expression of each panel, without Grafana's variables."""
    text = (ROOT / "conf/grafana-quotahost.json").read_text(encoding="utf-8")
    for name, value in _VARIABLES.items():
        text = text.replace(name, value)
    targets = [(panel["title"], each) for panel in json.loads(text)["panels"] for each in panel.get("targets", [])]
    return [
        Expression(title, each["expr"], frozenset(re.findall(r"{{(\w+)}}", each["legendFormat"])))
        for title, each in targets
    ]


def rules() -> list[Expression]:
    """The expression of each alert."""
    return [Expression(rule["alert"], rule["expr"]) for rule in _alerts()["groups"][0]["rules"]]


def _alerts() -> Any:
    return yaml.safe_load((ROOT / "conf/alerts.yml").read_text(encoding="utf-8"))
