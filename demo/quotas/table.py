"""Shows the first part: a live table while it plays, and a summary of all phases at the end."""

import time
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from demo.quotas.scenario import Client, Result
from harness.clients.load import KAFKA_WINDOW
from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode

BAR: Final = 30


def mega(rate: float) -> str:
    """A rate in bytes/s as text in MB/s."""
    return f"{rate / 1e6:.2f} MB/s"


def live(title: str, left: float, node: KafkaNode, all_clients: list[Client]) -> Group:
    """A table of each client's quota and of the rate that it achieves right now."""
    table = Table(title=f"{title}  ({max(0, left):.0f} s)", title_justify="left", expand=False)
    for column in ("client", "type", "quota", "given by", "achieved, last 11 s", "", "throttle time"):
        table.add_column(column)
    for client in all_clients:
        quota = client.quotas[-1][1]
        since = max(client.load.meter.started, time.monotonic() - KAFKA_WINDOW)
        rate = client.load.meter.rate(since, time.monotonic())
        throttle = client.load.max_throttle(time.monotonic() - KAFKA_WINDOW)
        bar = Text("█" * min(BAR, round(BAR * rate / 6e6)), style="green" if rate <= 1.1 * quota else "yellow")
        table.add_row(
            client.user, client.quota_type, mega(quota), client.supplier, mega(rate), bar, f"{throttle * 1000:.0f} ms"
        )
    return Group(table, Text(_status_line(node), style="dim"))


def _status_line(node: KafkaNode) -> str:
    beans = Jmx(node).query("quotahost:*")
    of = {name.split("type=")[1]: bean for name, bean in beans.items() if ",name=" not in name}
    table, lease = of["QuotaTable"], of["Lease"]
    return (
        f"clients known: {table['Clients']:.0f} · "
        f"a new client has its quota within {table['ResolveTimeP99'] * 1000:g} ms (p99) · "
        f"factor: {table['Factor']:.2f} · the Python host's last sign of life: {lease['Age'] * 1000:.0f} ms ago"
    )


def summary(all_results: list[Result]) -> Table:
    """A table of quota and achieved rate, for each phase and client."""
    table = Table(title="Did the achieved rates meet the quotas (within a tenth)?", title_justify="left")
    for column in ("phase", "client", "quota", "achieved", "", ""):
        table.add_column(column)
    last = ""
    for result in all_results:
        share = f"{result.achieved / result.quota:.0%}"
        phase = "" if result.phase == last else result.phase
        mark = Text("met", style="green") if result.met else Text("missed", style="red")
        table.add_row(phase, result.client.user, mega(result.quota), mega(result.achieved), share, mark)
        last = result.phase
    return table
