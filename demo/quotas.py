"""The demo's first part: a broker with quotahost, three clients, and three phases of quotas.

Each phase changes the running broker. The first phase sets client quotas by the Admin API, the second one raises one of
them, and the third one swaps in a supplier. The demo measures whether each client reaches its quota. At the end a
summary and a picture compare the clients' rates with their quotas.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.pictures import save, tidy
from harness.clients.consumer import ConsumerLoad
from harness.clients.load import KAFKA_WINDOW, Load
from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import alter_broker_config, create_topic, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, ROOT, plugin_properties, prefixed
from harness.system.waiting import eventually

EXAMPLE: Final = ROOT / "examples/off_peak"
TOLERANCE: Final = 0.1
EVERY: Final = 5.0  # seconds between two printed lines
PATIENCE: Final = 60.0  # seconds
MEGA: Final = 1_000_000


@dataclass
class Client:
    """One client of the demo."""

    user: str  # its user name
    quota_type: str  # PRODUCE or FETCH
    load: Load  # the running client
    #: The start (monotonic seconds) and the rate (bytes/s) of each quota that has applied.
    quotas: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """One client's quota and achieved rate in one phase, in bytes/s."""

    phase: str
    client: Client
    quota: float
    achieved: float

    @property
    def met(self) -> bool:
        """Whether the achieved rate is within a tenth of the quota."""
        return abs(self.achieved - self.quota) <= TOLERANCE * self.quota


@dataclass(frozen=True)
class Phase:
    """A change of the running broker, and for each user the resulting quota (bytes/s) and its supplier."""

    title: str
    change: Callable[[KafkaNode], None]
    quotas: dict[str, tuple[float, str]]


def _client_quotas(bronze: int, node: KafkaNode) -> None:
    set_quota(node, {"producer_byte_rate": 4 * MEGA}, user="gold")
    set_quota(node, {"producer_byte_rate": bronze}, user="bronze")


def _use_example_plugin(node: KafkaNode) -> None:
    now = datetime.now()
    hours = {"from": now.strftime("%H:%M"), "to": (now - timedelta(minutes=1)).strftime("%H:%M")}  # all but one minute
    plugin = {"plugin.off-peak.produce": "2500K", **{f"plugin.off-peak.{name}": text for name, text in hours.items()}}
    alter_broker_config(node, prefixed(plugin | {"supplier": "off-peak,client-quotas,static"}))


PHASES: Final = (
    Phase(
        "client quotas are set by the Admin API; the consumer has the static rate",
        partial(_client_quotas, 1 * MEGA),
        {"gold": (4 * MEGA, "client-quotas"), "bronze": (1 * MEGA, "client-quotas"), "reader": (3 * MEGA, "static")},
    ),
    Phase(
        "the quota of bronze is raised from 1 to 3 MB/s while it runs, by the Admin API",
        partial(_client_quotas, 3 * MEGA),
        {"gold": (4 * MEGA, "client-quotas"), "bronze": (3 * MEGA, "client-quotas"), "reader": (3 * MEGA, "static")},
    ),
    Phase(
        "the example plugin is swapped in while the broker runs: its off-peak hours double 2.5 MB/s",
        _use_example_plugin,
        {"gold": (5 * MEGA, "off-peak"), "bronze": (5 * MEGA, "off-peak"), "reader": (3 * MEGA, "static")},
    ),
)


def install_example() -> None:
    """Installs the example plugin, a package of its own, into this environment."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", str(EXAMPLE)]
    subprocess.run(pip, check=True)


@contextmanager
def broker(directory: Path) -> Iterator[KafkaNode]:
    """A running broker with quotahost, a topic to write to and a filled one to read from."""
    settings = {"static.fetch": "3M", "static.scope": "client"}
    users = {name: name for name in ("gold", "bronze", "reader")}
    properties = plugin_properties(settings)
    with KafkaNode(directory, classpath=[JAR], properties=properties, users=users) as node:
        for topic in ("written", "read"):
            create_topic(node, topic)
        fill_topic(node.client_config(client_id="filler"), "read", 30 * MEGA)
        yield node


@contextmanager
def clients(node: KafkaNode) -> Iterator[list[Client]]:
    """Two producers and a consumer, each as fast as its quota allows.

    They start after the first phase's change, so that no earlier quota disturbs the measurement.
    """
    made = [
        Client("gold", "PRODUCE", ProducerLoad(node.client_config("gold", "app"), "written")),
        Client("bronze", "PRODUCE", ProducerLoad(node.client_config("bronze", "app"), "written")),
        Client("reader", "FETCH", ConsumerLoad(node.client_config("reader", "app"), "read")),
    ]
    with ExitStack() as stack:
        for client in made:
            stack.enter_context(client.load)
        yield made


def _has(node: KafkaNode, client: Client, quota: float) -> bool:
    """Whether the client has this quota in the broker's table."""
    known = quota_now(node, client.user, "app", client.quota_type)
    return not known.newcomer and known.limit == quota


def play(directory: Path, windows: int, console: Console) -> tuple[list[Result], list[Client], float]:
    """Plays all phases on a broker of its own; returns the results, the clients, and the monotonic time of the end."""
    console.print("a Kafka broker starts, with quotahost.jar on its class path and quotahost's properties ...")
    started, results = time.monotonic(), list[Result]()
    with broker(directory) as node:
        seconds = time.monotonic() - started
        console.print(f"the broker at {node.bootstrap} runs, with Python inside it, after {seconds:.1f} s")
        PHASES[0].change(node)
        with clients(node) as all_clients:
            for phase in PHASES:
                phase.change(node)
                results += _play(phase, node, windows, all_clients, console)
            return results, all_clients, time.monotonic()


def _play(phase: Phase, node: KafkaNode, windows: int, all_clients: list[Client], console: Console) -> list[Result]:
    """Each client's rate over whole quota windows, without the first one after the change.

    A busy machine may starve clients for a while, so the phase goes on until the rates meet their quotas, for up to
    PATIENCE.
    """
    console.print(phase.title)
    for client in all_clients:
        quota, _ = phase.quotas[client.user]
        eventually(partial(_has, node, client, quota), what=f"{client.user}'s quota of {quota:.0f}")
    since = time.monotonic()
    for client in all_clients:
        client.quotas.append((since, phase.quotas[client.user][0]))
    span = KAFKA_WINDOW * windows
    measured = since + KAFKA_WINDOW + span
    while True:
        left = measured - time.monotonic()
        time.sleep(min(EVERY, left) if left > 0 else EVERY)
        lines = (
            f"{client.user} {mega(client.load.meter.rate_over(KAFKA_WINDOW))} of {mega(quota)} by {supplier}"
            for client in all_clients
            for quota, supplier in [phase.quotas[client.user]]
        )
        console.print("  " + ", ".join(lines), soft_wrap=True)
        now = time.monotonic()
        results = [
            Result(phase.title, client, phase.quotas[client.user][0], client.load.meter.rate(now - span, now))
            for client in all_clients
        ]
        if now >= measured and (all(result.met for result in results) or now >= measured + PATIENCE):
            return results


def mega(rate: float) -> str:
    """A rate in bytes/s as text in MB/s."""
    return f"{rate / 1e6:.2f} MB/s"


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


COLOURS = {"gold": "#c79100", "bronze": "#8d5524", "reader": "#1f77b4"}


def draw(all_clients: list[Client], end: float, file: Path) -> None:
    """Draws a PNG: each client's rate as the mean over Kafka's window of 11 s, and its quota as dashed steps.

    The picture ends at the monotonic moment ``end``.
    """
    figure, axes = pyplot.subplots(figsize=(10, 5), layout="constrained")
    zero = min(client.load.meter.started for client in all_clients)
    for client in all_clients:
        meter = client.load.meter
        moments = [zero + second for second in range(1, int(end - zero))]
        rates = [(meter.total_at(m) - meter.total_at(m - KAFKA_WINDOW)) / KAFKA_WINDOW / 1e6 for m in moments]
        colour = COLOURS[client.user]
        axes.plot([m - zero for m in moments], rates, color=colour, label=f"{client.user} ({client.quota_type})")
        steps = [*((moment - zero, quota / 1e6) for moment, quota in client.quotas), (end - zero, 0.0)]
        for (start, quota), (stop, _) in pairwise(steps):
            axes.hlines(quota, start, stop, colors=colour, linestyles="dashed", linewidth=1)
    tidy([axes])
    axes.set(xlabel="seconds", ylabel="MB/s, mean of the last 11 s", ylim=(0, None))
    axes.set_title("Achieved rates and quotas (dashed)")
    save(figure, file)
