"""The demo's first part: a broker with quotahost, three clients, and three phases of quotas.

Each phase changes the running broker: client quotas by the Admin API, one of them raised, and a supplier swapped in.
The demo measures whether each client reaches its quota; ``table`` and ``picture`` show the result.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

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
MEGA: Final = 1_000_000


@dataclass
class Client:
    """One client of the demo.

    Attributes:
        user: its user name.
        quota_type: PRODUCE or FETCH.
        load: the running client.
        quotas: since when (monotonic seconds) which quota applies (bytes/s), and the supplier that gives it.
    """

    user: str
    quota_type: str
    load: Load
    quotas: list[tuple[float, float, str]] = field(default_factory=list)

    @property
    def supplier(self) -> str:
        """The name of the supplier that gives its present quota."""
        return self.quotas[-1][2]


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
    """A change of the running broker, and by user the quota (bytes/s) that follows and the supplier that gives it."""

    title: str
    change: Callable[[KafkaNode], None]
    quotas: dict[str, tuple[float, str]]


def _client_quotas(node: KafkaNode) -> None:
    set_quota(node, {"producer_byte_rate": 4 * MEGA}, user="gold")
    set_quota(node, {"producer_byte_rate": 1 * MEGA}, user="bronze")


def _raise_bronze(node: KafkaNode) -> None:
    set_quota(node, {"producer_byte_rate": 3 * MEGA}, user="bronze")


def _use_example_plugin(node: KafkaNode) -> None:
    plugin = {"plugin.off-peak.produce": "2500K", "plugin.off-peak.from": "00:00", "plugin.off-peak.to": "23:59"}
    alter_broker_config(node, prefixed(plugin | {"supplier": "off-peak,client-quotas,static"}))


PHASES: Final = (
    Phase(
        "client quotas are set by the Admin API; the consumer has the static rate",
        _client_quotas,
        {"gold": (4 * MEGA, "client-quotas"), "bronze": (1 * MEGA, "client-quotas"), "reader": (3 * MEGA, "static")},
    ),
    Phase(
        "the quota of bronze is raised from 1 to 3 MB/s while it runs, by the Admin API",
        _raise_bronze,
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
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-e", str(EXAMPLE)]
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
    """Two producers and a consumer, each as fast as its quota lets it be.

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


def limit(node: KafkaNode, client: Client) -> float | None:
    """The client's limit in the broker's table, in bytes/s; None if it is unlimited or still a newcomer."""
    quota = quota_now(node, client.user, "app", client.quota_type)
    return None if quota.newcomer else quota.limit


def _has(node: KafkaNode, client: Client, quota: float) -> bool:
    return limit(node, client) == quota


def start(phase: Phase, node: KafkaNode, all_clients: list[Client]) -> float:
    """Waits until the phase's change has reached the broker's table; returns the monotonic moment."""
    for client in all_clients:
        quota = phase.quotas[client.user][0]
        eventually(partial(_has, node, client, quota), what=f"{client.user}'s quota of {quota:.0f}")
    now = time.monotonic()
    for client in all_clients:
        quota, supplier = phase.quotas[client.user]
        client.quotas.append((now, quota, supplier))
    return now


def results(phase: Phase, since: float, windows: int, all_clients: list[Client]) -> list[Result]:
    """Each client's rate over whole quota windows, without the first one after the change."""
    begin, end = since + KAFKA_WINDOW, since + KAFKA_WINDOW * (1 + windows)
    return [
        Result(phase.title, client, phase.quotas[client.user][0], client.load.meter.rate(begin, end))
        for client in all_clients
    ]
