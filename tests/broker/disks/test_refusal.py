"""What a PAUSE costs a client, and how its limits follow the factor (the tap).

A client that sends on at once is muted, one that backs off isn't, and all bytes are metered. Kafka's own request quota
does the muting. Its longest throttle time is one window, ``quota.window.size.seconds``. After a PAUSE there is no
burst, and on the way down no long silence.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.clients.raw import RawClient, RoundTrip, record_batch
from harness.java.helper import Helper
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import FACTOR, FIXED, callback_node, changed, set_factor, topic_name
from tests.broker.support.numbers import end_offset
from tests.broker.support.seen import gauge
from tests.broker.support.volumes import SMALL_BURSTS

LARGE, SMALL = record_batch(1_000_000), record_batch(100)
WINDOW_MS: Final = 1_000
APPENDED, TURNED_BACK = 0, 19  # Kafka's error codes NONE and NOT_ENOUGH_REPLICAS


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("4.0.1", marks=pytest.mark.long)])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = FIXED | {"static.produce": "1M", "static.excluded.principal.name.list": "User:root"}
    more = {"users": {"root": "r"}, "properties": FENCE, "version": request.param}
    with callback_node(tmp_path_factory.mktemp("node"), settings, **more) as node:
        yield node
        assert "Unexpected error" not in node.log_text()


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    name = topic_name(request)
    create_topic(node, name)
    yield name
    set_factor(node, 1)


def error(trip: RoundTrip) -> int:
    """The error code in the answer to a Produce with one partition."""
    return int(trip.answer.responses[0].partition_responses[0].error_code)


def turned_back_bytes(node: KafkaNode, topic: str) -> float:
    beans = Jmx(node).query(f"quotahost:type=TurnedBack,name={topic}")
    return sum(float(bean["Bytes"]) for bean in beans.values())


def send_until_muted(client: RawClient, topic: str) -> list[RoundTrip]:
    """Sends large requests until an answer states a throttle time; some seconds of them may have been saved up."""
    trips: list[RoundTrip] = []
    while not trips or trips[-1].throttle_ms == 0:
        assert len(trips) < 20, "the client is never muted"
        trips.append(client.produce(topic, LARGE))
    assert {error(trip) for trip in trips} == {TURNED_BACK}
    return trips


@pytest.mark.proves("kip-13.error-rejected", "v1.throttled-meter", "v1.no-meter-by-topic")
def test_a_closed_fence_mutes_a_client_that_sends_on_for_a_window_and_one_that_sends_little_not_at_all(
    node: KafkaNode, topic: str
) -> None:
    set_factor(node, 0)
    before, bytes_before = gauge(node, "Fence", "Mutes"), gauge(node, "Fence", "RejectedBytes")
    with RawClient(node, "little") as client:
        trips = [client.produce(topic, SMALL) for _ in range(5)]
    assert {(error(trip), trip.throttle_ms) for trip in trips} == {(TURNED_BACK, 0)}
    assert gauge(node, "Fence", "Mutes") == before
    with RawClient(node, "greedy") as client:
        trips, after = send_until_muted(client, topic), client.produce(topic, SMALL)
    assert trips[-1].throttle_ms == WINDOW_MS
    assert after.received_ms - trips[-1].sent_ms >= WINDOW_MS, "the broker reads nothing while it is muted"
    assert gauge(node, "Fence", "Mutes") > before
    assert end_offset(node, topic) == 0
    sent = 6 * len(SMALL) + len(trips) * len(LARGE)
    assert gauge(node, "Fence", "RejectedBytes") == bytes_before + sent
    eventually(lambda: turned_back_bytes(node, topic) == sent)


def test_what_was_turned_back_counts_against_no_quota_once_the_fence_is_open(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    for _ in range(15):  # 15 MB, where a quota of 1 MB/s allows 11 MB in its windows
        with RawClient(node, "before") as client:
            assert error(client.produce(topic, LARGE)) == TURNED_BACK
    with RawClient(node, "before") as muted:
        send_until_muted(muted, topic)
        set_factor(node, 1)
        trip = muted.produce(topic, SMALL)
        assert (error(trip), trip.throttle_ms) == (APPENDED, 0), "also what waited behind the mute"
    with RawClient(node, "before") as client:
        trip = client.produce(topic, LARGE)
        assert (error(trip), trip.throttle_ms) == (APPENDED, 0)


@pytest.mark.proves("v1.no-meter-by-topic")
def test_bytes_are_metered_by_topic_also_of_kafkas_own_producer_which_names_topics_by_their_ids(
    node: KafkaNode, topic: str
) -> None:
    set_factor(node, 0)
    config = {"bootstrap.servers": node.bootstrap, "client.id": "java", "acks": "all"}
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(Helper(node.version).ask, "produce", topic, 1, 1, config, timeout=120)
        eventually(lambda: turned_back_bytes(node, topic) > 0)
        set_factor(node, 1)
        done.result(120)


@pytest.mark.proves("kip-13.error-rejected", "v1.throttled-meter")
def test_a_topic_quota_mutes_a_client_that_sends_on_and_not_one_that_sends_little(node: KafkaNode, topic: str) -> None:
    filler = node.client_config("root", "filler")
    fill_topic(filler, topic, 1_000)  # so that the topic has a meter, and its credit is counted from now on
    quotas = {"topics.total.bytes.in.per.sec.threshold": "51K", "topics.bytes.in.per.sec.threshold": f"{topic}:50K"}
    with changed(node, quotas):
        eventually(lambda: gauge(node, "TopicQuotas", "Share") > 0)
        fill_topic(filler, topic, 30_000_000)
        with RawClient(node, "little") as client:
            eventually(lambda: error(client.produce(topic, SMALL)) == TURNED_BACK)
            before, bytes_before = gauge(node, "Fence", "Mutes"), gauge(node, "TopicQuotas", "RejectedBytes")
            trip = client.produce(topic, SMALL)
            assert (error(trip), trip.throttle_ms) == (TURNED_BACK, 0)
            assert gauge(node, "Fence", "Mutes") == before
        with RawClient(node, "greedy") as client:
            trips = send_until_muted(client, topic)
        assert trips[-1].throttle_ms == WINDOW_MS
        assert gauge(node, "TopicQuotas", "RejectedBytes") == bytes_before + len(SMALL) + len(trips) * len(LARGE)
        eventually(lambda: turned_back_bytes(node, topic) >= len(SMALL) + len(LARGE))


def test_after_a_pause_a_producer_gets_no_burst_and_a_factor_that_falls_at_once_silences_it_for_no_long_time(
    tmp_path: Path,
) -> None:
    """By the tap, with two quota windows."""
    quota, windows = 2_000_000, 3.0  # bytes/s, and seconds: as far back as Kafka looks
    settings = FIXED | {"static.produce": str(quota)}
    with callback_node(tmp_path, settings, properties=SMALL_BURSTS | FENCE) as node:
        create_topic(node, "t", config={"segment.bytes": str(1 << 20), "retention.bytes": str(8 << 20)})
        with ProducerLoad(node.client_config(client_id="eager"), "t") as eager:
            meter = eager.meter

            def wait_for_rate(rate: object, after: float, over: float = windows) -> None:
                """Waits so many windows, and then until the rate over the last seconds is this one."""
                begin = time.monotonic()
                eventually(lambda: time.monotonic() - begin > after * windows and meter.rate_over(over) == rate)

            wait_for_rate(pytest.approx(quota, rel=0.2), after=2)
            set_factor(node, 0)
            wait_for_rate(0, after=1)
            released = time.monotonic()
            alter_broker_config(node, {FACTOR: "1"})
            three_seconds = meter.total_at(released) + 3 * quota
            eventually(lambda: meter.total_at(time.monotonic()) > three_seconds)
            # Kafka's two windows, empty, would let it send 2 s of its quota at once. A busy machine makes the
            # acknowledgements later and not earlier, so no total runs further ahead of the quota because of it.
            moments = [released + n * meter.RESOLUTION for n in range(int(1.5 / meter.RESOLUTION))]
            ahead = [meter.total_at(at) - meter.total_at(released) - quota * (at - released) for at in moments]
            assert max(ahead) <= quota

            # A busy machine may hold it up; a tap that doesn't open does so for good.
            wait_for_rate(pytest.approx(quota, rel=0.2), after=2)
            lowered = time.monotonic()
            set_factor(node, 0.3)
            eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 0.3)
            wait_for_rate(pytest.approx(0.3 * quota, rel=0.3), after=3, over=2 * windows)
            # What the broker says: on a busy machine a client may be silent for other reasons. It is 0.2 s on a quiet
            # one, and (1 - 0.3) / 0.3 times two windows or more if the limit falls at once.
            assert 0 < eager.max_throttle(lowered) < 4
        # Kafka's line for each sensor at each change of the limits (ClientQuotaManager.updateQuotaMetricConfigs).
        assert "already exists. Setting quota to" not in node.log_text()
