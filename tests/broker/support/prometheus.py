"""A real Prometheus server evaluates the expressions of the dashboard and of the alert rules.

The server comes from Debian's package. If there is no package, a test says why it could not run.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
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

ALERTS: Final = ROOT / "conf/alerts.yml"
DASHBOARD: Final = ROOT / "conf/grafana-quotahost.json"
#: The values of Grafana's variables if all brokers are chosen and Prometheus scrapes twice a second.
_VARIABLES: Final = {"$__rate_interval": "5s", "$job": ".*", "$instance": ".*"}
_LABEL: Final = re.compile(r"{{(\w+)}}")
_METRIC: Final = re.compile(r"quotahost_\w+(?:\{[^}]*\})?")


class Server(LoggedProcess):
    """A Prometheus with an empty database."""

    def __init__(self, files: Path, directory: Path, config: dict[str, Any]) -> None:
        """Takes the files of the package."""
        super().__init__(directory / "prometheus.log")
        file = directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [
            str(files / "usr/bin/prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def start(self) -> None:
        """Starts the server, or restarts it with its data, and waits until it answers."""
        self.launch_command(self._command, dict(os.environ))
        self.wait_for_log("Server is ready")


@cache
def _found() -> Path | str:
    """The files, or why there are none; cached, because a machine without a network needs minutes to fail."""
    try:
        return debian_package("prometheus")
    except PackageMissing as reason:
        return str(reason)


def package() -> Path:
    """The files of Debian's package; if there are none, skips the calling test with the reason."""
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"{COULD_NOT_RUN}this machine has no Prometheus: {found}")
    return found


@contextmanager
def prometheus(directory: Path, *ports: object, **labels: str) -> Iterator[Server]:
    """Runs a server that scrapes these ports, with these labels, and evaluates the alert rules twice a second."""
    often = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
    scraped = {"targets": [f"127.0.0.1:{port}" for port in ports], "labels": labels}
    config = {
        "global": often,
        "scrape_configs": [{"job_name": "broker", "static_configs": [scraped]}],
        "rule_files": [str(_without_delay(directory))],
    }
    made = Server(package(), directory, config)
    made.start()
    try:
        yield made
    finally:
        made.kill()


# ---- the dashboard and the alert rules ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """One expression and its place, with the labels that the legend of a panel names."""

    place: str
    text: str
    labels: frozenset[str] = frozenset()

    @property
    def metrics(self) -> set[str]:
        """The names of the expression's metrics."""
        return {each.partition("{")[0] for each in self.selectors}

    @property
    def selectors(self) -> set[str]:
        """The expression's metrics with the labels that they must have."""
        return set(_METRIC.findall(self.text))


def panels() -> list[Expression]:
    """Each expression of each panel, without Grafana's variables."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):  # a row has none
            text = target["expr"]
            for name, value in _VARIABLES.items():
                text = text.replace(name, value)
            found.append(Expression(panel["title"], text, frozenset(_LABEL.findall(target["legendFormat"]))))
    return found


def rules() -> list[Expression]:
    """The expression of each alert."""
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [Expression(rule["alert"], rule["expr"]) for rule in group["rules"]]


def _without_delay(directory: Path) -> Path:
    """Writes a copy of the rules, in which an alert fires when its condition has lasted a second."""
    copy = directory / "alerts.yml"
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        if "for" in rule:
            rule["for"] = "1s"
    copy.write_text(yaml.safe_dump(rules))
    return copy


def firing(server: Server) -> dict[str, dict[str, str]]:
    """The annotations of the alerts that fire now, by name."""
    found = _ask(server, "alerts")["alerts"]
    return {each["labels"]["alertname"]: each["annotations"] for each in found if each["state"] == "firing"}


def health(server: Server) -> dict[str, str]:
    """The server's report on its evaluation of each alert: ``ok``, or the error."""
    (group,) = _ask(server, "rules")["groups"]
    return {rule["name"]: rule.get("lastError") or rule["health"] for rule in group["rules"]}


def series(server: Server, expression: str, since: float) -> list[dict[str, str]]:
    """The labels of each series that an expression has had since a Unix time, as a panel asks for them.

    Raises:
        ValueError: the server says that the expression is wrong.
    """
    asked = {"query": expression, "start": since, "end": time.time(), "step": 1}
    return [each["metric"] for each in _ask(server, "query_range", asked)["result"]]


def empty(server: Server, since: float, not_shown: Collection[str]) -> list[tuple[str, str]]:
    """Place and text of each expression that has had no series since a Unix time, or none with the legend's labels.

    Expressions with a metric of one of the MBean types ``not_shown`` are left out.
    """
    left_out = {f"quotahost_{each.prometheus}{each.kind}" for each in CATALOGUE if each.type in not_shown}
    alerts = [Expression(rule.place, selector) for rule in rules() for selector in rule.selectors]
    return [
        (each.place, each.text)
        for each in (*panels(), *alerts)
        if not each.metrics & left_out
        if not (found := series(server, each.text, since)) or not each.labels <= set().union(*found)
    ]


def _ask(server: Server, path: str, query: dict[str, Any] | None = None) -> Any:
    try:
        with urlopen(f"{server.url}/api/v1/{path}?{urlencode(query or {})}", timeout=60) as answer:
            return json.load(answer)["data"]
    except HTTPError as error:
        raise ValueError(f"{query}: {error.read().decode()}") from None
