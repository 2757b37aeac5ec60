"""One broker and its own disk, with limits around the bytes used; test_volumes_that_fill.py fills a disk."""

import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, kafka_configs
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX, ROOT
from harness.system.filesystem import own_file_system
from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.broker.disks.file_stores import read_disks
from quotahost.model import Volume
from tests.broker.support.node import callback_node, topic_of
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, THROTTLE, causes, gauge, has_own_quota, scrape, state
from tests.broker.support.volumes import MEGA, ramp

SETTINGS: Final = {"factor.source": "local"}
SOFT, HARD = "static.storage.soft", "static.storage.hard"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker on a file system that is not empty; it is the broker's own if the machine can mount one."""
    properties = dict(QUICK_QUOTAS) | FENCE | {"log.segment.delete.delay.ms": "100"}
    directory = tmp_path_factory.mktemp("node")
    with own_file_system(directory):
        (directory / "ballast").write_bytes(bytes(200 * MEGA))
        settings = SETTINGS | {"metrics.port": str(free_port())}
        with callback_node(directory, settings, properties=properties) as node:
            yield node


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    yield topic_of(node, request)
    change(node, dict.fromkeys((SOFT, HARD, "factor.source")))
    eventually(lambda: state(node) == OPEN, what="the state is OPEN again")


def change(node: KafkaNode, settings: Mapping[str, str | None]) -> None:
    alter_broker_config(node, {PREFIX + name: value for name, value in settings.items()})


def volume(node: KafkaNode) -> Volume:
    return read_disks("1", [str(node.data_dirs[0])]).volumes[0]


def set_limits_around_usage(node: KafkaNode) -> tuple[int, int]:
    """Sets a soft and a hard limit so far apart that usage stays between them, and waits for THROTTLE."""
    seen = volume(node)
    soft, hard = seen.consumed // 4, min(seen.consumed * 2, seen.capacity)
    change(node, {SOFT: str(soft), HARD: str(hard)})
    eventually(lambda: state(node) == THROTTLE)
    return soft, hard


def test_the_factor_applies_to_the_former_rate_of_an_unlimited_client(node: KafkaNode, topic: str) -> None:
    with ProducerLoad(node.client_config(client_id="free"), topic, rate=4e6) as load:
        eventually(lambda: has_own_quota(node, ANYONE, "free"))
        eventually(lambda: load.meter.rate_over(4) > 3.6e6, what="the client has kept its rate for a window")
        assert quota_now(node, ANYONE, "free").limit is None
        limits = set_limits_around_usage(node)

        def is_a_part_of_its_rate() -> bool:
            quota = quota_now(node, ANYONE, "free")
            assert quota.stand_in is not None
            # Kafka measured this rate when the factor fell; a busy machine may have delayed the client just then.
            assert 1e6 < quota.stand_in < 8e6
            # The limit follows the factor over a window, and the factor follows the disk.
            return quota.limit == pytest.approx(quota.stand_in * ramp(volume(node).consumed, *limits), rel=0.1)

        eventually(is_a_part_of_its_rate)
        since = time.monotonic()
        eventually(lambda: load.max_throttle(since) > 0, what="the client sees throttle times")


def shown(node: KafkaNode) -> dict[str, float]:
    """The limits of the broker's volume, as JMX shows them."""
    (found,) = Jmx(node).query("quotahost:type=VolumeLimits,*").values() or [{}]
    return found


def scraped(node: KafkaNode) -> dict[str, float]:
    """The same volume's metrics at the Prometheus endpoint, by name without ``quotahost_volume_``."""
    labels = {"volume": volume(node).name}
    return {each.name.removeprefix("quotahost_volume_"): each.value for each in scrape(node) if each.labels == labels}


@pytest.mark.proves("proposal-035.policy-limits", "proposal-035.metric-volumes")
def test_the_limits_of_the_volume_are_shown_as_configured_in_bytes_used(node: KafkaNode, topic: str) -> None:
    soft, hard = set_limits_around_usage(node)
    seen = volume(node)
    factor_now = pytest.approx(ramp(seen.consumed, soft, hard), abs=0.05)
    expected = {"Soft": soft, "Hard": hard, "Breached": 1, "Factor": factor_now}
    eventually(lambda: shown(node) == expected)
    expected = {"soft_limit_bytes": soft, "hard_limit_bytes": hard, "limit_breached": 1}
    expected["capacity_bytes"] = seen.capacity  # under the same label
    eventually(lambda: expected.items() <= scraped(node).items())
    change(node, {SOFT: None, HARD: None, f"{HARD}.min-free-percent": "0.0"})
    expected = {"Soft": seen.capacity, "Hard": seen.capacity, "Breached": 0, "Factor": 1}
    eventually(lambda: shown(node) == expected, what="min-free-percent=0.0 allows the whole disk")
    change(node, {f"{HARD}.min-free-percent": None})
    eventually(lambda: "Hard" not in shown(node), what="no limit is left")


@pytest.mark.parametrize("source", ["log-dirs", "snapshots"])
def test_a_source_swapped_in_live_sees_the_same_disk(node: KafkaNode, topic: str, source: str) -> None:
    limits = set_limits_around_usage(node)
    change(node, {"factor.source": source})
    expected = pytest.approx(ramp(volume(node).consumed, *limits), abs=0.05)
    eventually(lambda: gauge(node, "QuotaTable", "Factor") == expected)
    change(node, {SOFT: None, HARD: "1"})
    eventually(lambda: state(node) == PAUSE and "broker 1, volume" in causes(node))


def drill() -> list[list[str]]:
    """The arguments of kafka-configs.sh in both commands of the drill in docs/operate.md, except the address."""
    text = (ROOT / "docs/operate.md").read_text(encoding="utf-8").partition("## A drill before you enforce\n")[2]
    section = text.partition("```sh\n")[2].partition("```")[0]
    (common,) = re.findall(r'^b="--bootstrap-server \S+ (.*)"$', section, re.MULTILINE)
    commands = re.findall(r"^kafka-configs.sh \$b (.*)$", section, re.MULTILINE)
    return [shlex.split(f"{common} {line}") for line in commands]


def test_the_commands_of_the_drill_pause_producers_and_take_the_pause_back(node: KafkaNode, topic: str) -> None:
    begin, end = drill()
    kafka_configs(node, *begin)
    eventually(lambda: state(node) == PAUSE)
    eventually(lambda: attempt(node.client_config(), topic) == "NOT_ENOUGH_REPLICAS")
    kafka_configs(node, *end)
    eventually(lambda: state(node) == OPEN)
    eventually(lambda: attempt(node.client_config(), topic) is None)


@pytest.mark.proves("faults.directory-gone")
@pytest.mark.parametrize(
    ("leaves_its_place", "why"), [(False, "data-2"), (True, "data-2: its meta.properties is gone")],
    ids=["removed", "unmounted"],
)  # fmt: skip
def test_a_log_directory_that_is_gone_leads_to_a_pause(tmp_path: Path, leaves_its_place: bool, why: str) -> None:
    settings = SETTINGS | {"static.storage.hard.min-free-bytes": "1", "validity": "10s"}
    with callback_node(tmp_path, settings, log_dirs=2) as node:
        eventually(lambda: gauge(node, "Factor", "LackOfData") == 0 and state(node) == OPEN)
        node.data_dirs[1].rename(tmp_path / "gone")
        if leaves_its_place:
            node.data_dirs[1].mkdir()
        eventually(lambda: gauge(node, "LogDirs", "Offline") == 1)
        eventually(lambda: state(node) == PAUSE)
        eventually(lambda: why in node.log_text().rpartition("-> PAUSE")[2].splitlines()[0])
