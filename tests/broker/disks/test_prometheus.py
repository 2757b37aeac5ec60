"""The factor source ``prometheus`` against a real Prometheus, which scrapes a broker whose disk fills."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.ports import free_port
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node
from tests.broker.support.numbers import end_offset, stopped_at
from tests.broker.support.prometheus import Server, empty, firing, health, panels, prometheus, rules, series
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, gauge, state
from tests.broker.support.volumes import MEGA, small_volume

NODE_ID: Final = 1
SOFT, HARD, FULL = 600 * MEGA, 900 * MEGA, 950 * MEGA  # bytes used of a file system of 1 GiB
#: The MBeans that this broker does not show. Brokers that do are in test_dashboard_of_a_cluster.py, but for budgets
#: (quotas/test_budgets.py) and the load (host/test_load.py).
ELSEWHERE: Final = {
    "Snapshot", "Brokers", "Refused", "ClusterRecord", "FactorSource", "ClusterQuotas", "Usage", "Shares", "Cordon",
    "Shadow", "Budget", "TypedFactor", "Load",
}  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaNode, Server]]:
    """A broker on a volume of its own, and the server that scrapes it and tells it how full the volume is."""
    port, directory = free_port(), tmp_path_factory.mktemp("node")
    with (
        prometheus(tmp_path_factory.mktemp("prometheus"), port, broker=str(NODE_ID)) as server,
        small_volume(directory, 1 << 30),
        callback_node(directory, settings(server, port), properties=FENCE) as node,
    ):
        create_topic(node, "t")
        yield node, server


def settings(server: Server, port: int) -> dict[str, str]:
    own = {
        "url": server.url,
        "capacity": "quotahost_volume_capacity_bytes",
        "consumed": "quotahost_volume_consumed_bytes",
        "volume-label": "volume",
        # By its node.id a broker knows its own volumes, whose limits it shows.
        "broker-label": "broker",
        "expected": str(NODE_ID),
        "interval": "200ms",
    }
    return {
        "metrics.port": str(port),
        "tasks": "publish-volumes",  # shows the broker's own volumes
        "volumes.period": "200ms",
        "snapshots.period": "1s",
        "factor.source": "prometheus",
        "factor.interval": "200ms",
        "validity": "5s",
        "static.produce": "400K",
        "static.storage.soft": str(SOFT),
        "static.storage.hard": str(HARD),
    } | {f"plugin.prometheus.{name}": text for name, text in own.items()}


def fill(node: KafkaNode, used: int) -> None:
    """Makes the broker's disk have about this many bytes used, or as few as it can."""
    with (node.directory / "ballast").open("ab") as ballast:
        missing = used - shutil.disk_usage(node.directory).used
        if missing < 0:
            ballast.truncate(0)
        for _ in range(missing // MEGA):
            ballast.write(bytes(MEGA))


@pytest.mark.proves("proposal-035.other-sources", "proposal-035.properties-old")
def test_a_full_disk_pauses_by_prometheus_and_every_panel_and_alert_shows_it(scene: tuple[KafkaNode, Server]) -> None:
    node, server = scene
    alerts, since = {"QuotahostPause", "QuotahostVolumeOverSoftLimit"}, time.time()
    bound = 'quotahost_client_bound{{client_id="greedy",type="PRODUCE",by="{}"}}'.format
    eventually(lambda: gauge(node, "Factor", "Unknown") == 0 and state(node) == OPEN, what="Prometheus has scraped it")
    eventually(lambda: "QuotahostSilent" not in firing(server))
    with ProducerLoad(node.client_config(client_id="greedy"), "t") as load:
        fill(node, (SOFT + HARD) // 2)
        # Prometheus may scrape while it fills, and a factor above this one comes first.
        between = pytest.approx(0.5, abs=0.1)
        eventually(lambda: gauge(node, "QuotaTable", "Factor") == between and state(node) == THROTTLE)
        eventually(lambda: len(series(server, bound("factor"), since)) == 1)
        fill(node, FULL)
        eventually(lambda: gauge(node, "Fence", "Closed") == 1)
        (end,) = stopped_at(node, "t")
        eventually(lambda: len(series(server, bound("fence"), since)) == 1)
        eventually(lambda: alerts <= firing(server).keys())
        eventually(lambda: "127.0.0.1" in firing(server)["QuotahostPause"]["summary"])
        shown_nothing = partial(empty, server, since, ELSEWHERE)
        eventually(lambda: not shown_nothing(), on_timeout=lambda: str(shown_nothing()))
        for each in (*panels(), *rules()):
            series(server, each.text, since)  # is no error, shown or not
        assert set(health(server).values()) == {"ok"}
        fill(node, 0)
        eventually(lambda: state(node) == OPEN)
        eventually(lambda: end_offset(node, "t") > end)
        assert load.drain() == 0
    assert load.errors == []
    eventually(lambda: not alerts & firing(server).keys())


@pytest.mark.proves("proposal-035.freshness", "faults.prometheus-down")
def test_a_prometheus_that_is_down_pauses_after_validity_until_it_is_back(scene: tuple[KafkaNode, Server]) -> None:
    node, server = scene
    eventually(lambda: state(node) == OPEN)
    server.kill()
    eventually(lambda: state(node) == PAUSE, what="fallback.action")
    eventually(lambda: gauge(node, "Factor", "LackOfData") == 1)
    node.wait_for_log("prometheus 127.0.0.1 has not answered for")
    server.start()
    eventually(lambda: state(node) == OPEN)
    assert gauge(node, "Host", "Restarts") == 0
