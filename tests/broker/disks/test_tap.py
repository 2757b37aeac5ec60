"""The tap on a real broker with two quota windows: no burst after a PAUSE, and no long silence on the way down."""

import time
from collections.abc import Iterator
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import FACTOR, FIXED, callback_node, set_factor
from tests.broker.support.seen import gauge, wait_for_rate
from tests.broker.support.volumes import SMALL_BURSTS

QUOTA: Final = 2_000_000  # bytes/s
WINDOWS: Final = 3.0  # seconds: as far back as Kafka looks


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with callback_node(
        tmp_path_factory.mktemp("node"), FIXED | {"static.produce": str(QUOTA)}, properties=SMALL_BURSTS | FENCE
    ) as node:
        create_topic(node, "t", config={"segment.bytes": str(1 << 20), "retention.bytes": str(8 << 20)})
        yield node
        # Kafka's line for each sensor at each change of the limits (ClientQuotaManager.updateQuotaMetricConfigs).
        assert "already exists. Setting quota to" not in node.log_text()


@pytest.fixture
def eager(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[ProducerLoad]:
    """A producer that has had its quota for a few windows."""
    set_factor(node, 1)
    eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 1)
    with ProducerLoad(node.client_config(client_id=request.node.name), "t") as load:
        wait_for_rate(pytest.approx(QUOTA, rel=0.2), load)
        yield load


def test_after_a_pause_a_producer_gets_its_quota_not_its_windows_at_once(node: KafkaNode, eager: ProducerLoad) -> None:
    set_factor(node, 0)
    paused, meter = time.monotonic(), eager.meter
    eventually(lambda: time.monotonic() - paused > WINDOWS and meter.rate_over(WINDOWS) == 0, what="empty windows")

    released = time.monotonic()
    alter_broker_config(node, {FACTOR: "1"})
    after = meter.total_at(released) + 3 * QUOTA
    eventually(lambda: meter.total_at(time.monotonic()) > after, what="three seconds' bytes")

    # Kafka's two windows, empty, would let it send 2 s of its quota at once. A busy machine makes the acknowledgements
    # later and not earlier, so no total runs further ahead of the quota because of it.
    moments = [released + n * meter.RESOLUTION for n in range(int(1.5 / meter.RESOLUTION))]
    ahead = [meter.total_at(at) - meter.total_at(released) - QUOTA * (at - released) for at in moments]
    assert max(ahead) <= QUOTA
    # A busy machine may hold it up; a tap that doesn't open does so for good.
    eventually(lambda: meter.rate_over(WINDOWS) >= 0.7 * QUOTA)


def test_a_factor_falling_at_once_silences_nobody_as_long_as_kafka_would(node: KafkaNode, eager: ProducerLoad) -> None:
    begin = time.monotonic()
    set_factor(node, 0.3)
    eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 0.3)
    wait_for_rate(pytest.approx(0.3 * QUOTA, rel=0.3), eager)
    # What the broker says: on a busy machine a client may be silent for other reasons. It is 0.2 s on a quiet one, and
    # (1 - 0.3) / 0.3 times two windows or more if the limit falls at once.
    assert 0 < eager.max_throttle(begin) < 4
