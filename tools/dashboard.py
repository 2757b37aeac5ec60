"""Draws the dashboard from a real Prometheus as one HTML page, for who has no Grafana at hand and changes a panel.

``python -m tools.dashboard http://127.0.0.1:9090 page.html``. It asks the server what Grafana would ask, panel by
panel, for all brokers. It shows which panels are empty, which legends run long, and which units don't fit.
"""

import base64
import io
import json
import math
import re
import time
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import typer
from jinja2 import Environment
from matplotlib import dates
from matplotlib.figure import Figure
from rich.progress import track

ROOT: Final = Path(__file__).resolve().parents[1]
DASHBOARD: Final = ROOT / "conf/grafana-quotahost.json"
COLOURS: Final = ["#1f8fe0", "#d9822b", "#2fa866", "#c24a9a", "#8a6fe8", "#b0a030", "#e04848", "#38a8a8"]
GREY: Final = "#80868f"  # is read on white and on black
DAY: Final = 86_400  # matplotlib counts days since 1970
POINTS: Final = 240  # of a curve
PANEL_WIDTH: Final = 0.5  # inches for each of Grafana's 24 columns
PANEL_HEIGHT: Final = 0.3  # inches for each of its rows

PAGE: Final = Path(__file__).with_suffix(".html")

Series = tuple[str, list[tuple[float, float]]]


class Prometheus:
    """Asks a server for what a panel shows."""

    def __init__(self, url: str, minutes: float) -> None:
        """``minutes`` before now are shown."""
        self._url = url.rstrip("/")
        self.end = time.time()
        self.start = self.end - 60 * minutes
        self.step = max(1.0, 60 * minutes / POINTS)

    def curves(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression over the time."""
        return self._ask("query_range", {"start": self.start, "end": self.end, "step": self.step}, expression)

    def now(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now, each with one value."""
        return self._ask("query", {"time": self.end}, expression)

    def _ask(self, path: str, query: dict[str, float], expression: str) -> list[dict[str, Any]]:
        text = expression.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
        with urlopen(f"{self._url}/api/v1/{path}?{urlencode({'query': text, **query})}", timeout=30) as answer:
            return list(json.load(answer)["data"]["result"])


def shown(value: float, unit: str) -> str:
    """A value as Grafana writes it in this unit."""
    if unit == "percentunit":
        return f"{value:.0%}"
    if unit == "s" and value < 1:
        return f"{value * 1000:.3g} ms"
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{'B/s' if unit == 'Bps' else ''}"
    return f"{value:.3g}{ {'Bps': ' B/s', 's': ' s', 'ops': '/s'}.get(unit, '') }"


def named(legend: str, labels: dict[str, str]) -> str:
    """A series' name in the legend."""
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend)


def series(panel: dict[str, Any], server: Prometheus) -> list[Series]:
    """Name and points of each series of a panel."""
    return [
        (named(target["legendFormat"], each["metric"]), [(at, float(value)) for at, value in each["values"]])
        for target in panel["targets"]
        for each in server.curves(target["expr"])
    ]


def picture(panel: dict[str, Any], drawn: list[Series], server: Prometheus) -> str:
    """The curves as SVG, in base64."""
    defaults, at = panel["fieldConfig"]["defaults"], panel["gridPos"]
    figure = Figure(figsize=(at["w"] * PANEL_WIDTH, at["h"] * PANEL_HEIGHT), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    for number, (_, points) in enumerate(drawn):
        times, values = zip(*_unbroken(points, server.step), strict=True)
        axes.plot(times, values, color=COLOURS[number % len(COLOURS)], linewidth=1.2)
    axes.set_xlim(server.start / DAY, server.end / DAY)
    axes.set_ylim(bottom=defaults.get("min"), top=defaults.get("max"))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, defaults["unit"]))
    axes.tick_params(colors=GREY, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.grid(color=GREY, linewidth=0.4, alpha=0.5)
    written = io.StringIO()
    figure.savefig(written, format="svg")
    return base64.b64encode(written.getvalue().encode()).decode()


def _unbroken(points: list[tuple[float, float]], step: float) -> list[tuple[float, float]]:
    """The points, by days; nothing is drawn over a time without any."""
    found: list[tuple[float, float]] = []
    for at, value in points:
        if found and at / DAY - found[-1][0] > 1.5 * step / DAY:
            found.append((at / DAY, math.nan))
        found.append((at / DAY, value))
    return found


def tiles(panel: dict[str, Any], drawn: list[Series]) -> list[dict[str, str]]:
    """What a panel of the type ``stat`` shows of each series: its last value, by its mappings or thresholds."""
    defaults = panel["fieldConfig"]["defaults"]
    return [{"name": name, **_tile(points[-1][1], defaults)} for name, points in drawn]


def _tile(value: float, defaults: dict[str, Any]) -> dict[str, str]:
    for mapping in defaults.get("mappings", []):
        if found := mapping["options"].get(f"{value:g}"):
            return {"text": found["text"], "colour": found["color"]}
    steps = defaults.get("thresholds", {}).get("steps", [{"color": "green", "value": None}])
    reached = [each["color"] for each in steps if each["value"] is None or value >= each["value"]]
    return {"text": shown(value, defaults["unit"]), "colour": reached[-1]}


def table(panel: dict[str, Any], server: Prometheus) -> list[list[str]]:
    """Header and rows of a panel of the type ``table``: one row for the same labels, one column for each query."""
    changes = {each["id"]: each["options"] for each in panel["transformations"]}
    hidden, names, places = (changes["organize"][key] for key in ("excludeByName", "renameByName", "indexByName"))
    rows: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for target in panel["targets"]:
        column = f"Value #{target['refId']}" if "merge" in changes else "Value"
        for each in server.now(target["expr"]):
            cells = rows.setdefault(tuple(sorted(each["metric"].items())), dict(each["metric"]))
            cells[column] = shown(float(each["value"][1]), _unit(panel, names.get(column, column)))
    columns = {column for cells in rows.values() for column in cells if not hidden.get(column)}
    ordered = sorted(columns, key=lambda column: (places.get(column, len(places)), column))
    found = [[cells.get(column, "") for column in ordered] for cells in rows.values()]
    return [[names.get(column, column) for column in ordered], *found] if found else []


def _unit(panel: dict[str, Any], column: str) -> str:
    config = panel["fieldConfig"]
    for each in config["overrides"]:
        if each["matcher"]["options"] == column:
            return str(each["properties"][0]["value"])
    return str(config["defaults"]["unit"])


def filled(panel: dict[str, Any], server: Prometheus) -> dict[str, Any]:
    """A panel with what the page needs of it."""
    made = panel | {"width": panel["gridPos"]["w"]}
    if panel["type"] == "row":
        return made
    if panel["type"] == "table":
        return made | {"rows": table(panel, server)}
    drawn = series(panel, server)
    if panel["type"] == "stat":
        return made | {"series": drawn, "tiles": tiles(panel, drawn)}
    legend = [(name, COLOURS[number % len(COLOURS)]) for number, (name, _) in enumerate(drawn)]
    return made | {"series": drawn, "legend": legend, "image": picture(panel, drawn, server)}


def main(url: str, page: Path, minutes: Annotated[float, typer.Option(help="How long before now.")] = 15.0) -> None:
    """Writes what the dashboard shows of this Prometheus into PAGE."""
    server = Prometheus(url, minutes)
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [filled(panel, server) for panel in track(dashboard["panels"], "panels")]
    template = Environment(autoescape=True).from_string(PAGE.read_text(encoding="utf-8"))
    page.write_text(template.render(title=dashboard["title"], panels=panels), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
