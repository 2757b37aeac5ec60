"""A refusal mutes a client that retries immediately, but not one that backs off, and all refused bytes are metered.

Kafka's own request quota does the muting. Its longest throttle time is one window, ``quota.window.size.seconds``.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from harness.clients.producer import fill_topic
from harness.clients.raw import RawClient, RoundTrip, record_batch
from harness.java.helper import Helper
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import FIXED, callback_node, set_factor, topic_of
from tests.broker.support.numbers import end_offset
from tests.broker.support.seen import gauge

TOTAL, OWN = "topics.total.bytes.in.per.sec.threshold", "topics.bytes.in.per.sec.threshold"
SETTINGS: Final = FIXED | {"static.produce": "1M", "static.excluded.principal.name.list": "User:root"}
LARGE, SMALL = record_batch(1_000_000), record_batch(100)
WINDOW_MS: Final = 1_000
APPENDED, TURNED_BACK = 0, 19  # Kafka's error codes NONE and NOT_ENOUGH_REPLICAS


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("4.0.1", marks=pytest.mark.long)])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory, users = tmp_path_factory.mktemp("node"), {"root": "r"}
    with callback_node(directory, SETTINGS, users=users, properties=FENCE, version=request.param) as node:
        yield node
        assert "Unexpected error" not in node.log_text()


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    yield topic_of(node, request)
    alter_broker_config(node, dict.fromkeys((PREFIX + TOTAL, PREFIX + OWN), None))
    set_factor(node, 1)


def error(trip: RoundTrip) -> int:
    """The error code in the answer to a Produce with one partition."""
    return int(trip.answer.responses[0].partition_responses[0].error_code)


def turned_back_bytes(node: KafkaNode, topic: str) -> float:
    beans = Jmx(node).query(f"quotahost:type=TurnedBack,name={topic}")
    return sum(float(bean["Bytes"]) for bean in beans.values())


def send_until_muted(client: RawClient, topic: str) -> list[RoundTrip]:
    """Sends large requests until an answer states a throttle time; the client may first use up some seconds' credit."""
    trips: list[RoundTrip] = []
    while not trips or trips[-1].throttle_ms == 0:
        assert len(trips) < 20, "the fence mutes the client within 20 requests"
        trips.append(client.produce(topic, LARGE))
    assert {error(trip) for trip in trips} == {TURNED_BACK}
    return trips


@pytest.mark.proves("kip-13.error-rejected")
def test_a_closed_fence_mutes_who_sends_on_for_a_window_and_who_sends_little_never(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    before = gauge(node, "Fence", "Mutes")
    with RawClient(node, "little") as client:
        assert [(error(trip), trip.throttle_ms) for trip in (client.produce(topic, SMALL) for _ in range(5))] == [
            (TURNED_BACK, 0)
        ] * 5
    assert gauge(node, "Fence", "Mutes") == before
    with RawClient(node, "greedy") as client:
        muted, after = send_until_muted(client, topic)[-1], client.produce(topic, SMALL)
    assert muted.throttle_ms == WINDOW_MS
    assert after.received_ms - muted.sent_ms >= WINDOW_MS, "the broker reads nothing while the connection is muted"
    assert gauge(node, "Fence", "Mutes") > before
    assert end_offset(node, topic) == 0


def test_what_was_turned_back_counts_against_no_quota_once_the_fence_is_open(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    for _ in range(15):  # 15 MB; a quota of 1 MB/s allows 11 MB in its windows
        with RawClient(node, "before") as client:
            assert error(client.produce(topic, LARGE)) == TURNED_BACK
    with RawClient(node, "before") as muted:
        send_until_muted(muted, topic)
        set_factor(node, 1)
        trip = muted.produce(topic, SMALL)
        assert (error(trip), trip.throttle_ms) == (APPENDED, 0), "the request that waited behind the mute is appended"
    with RawClient(node, "before") as client:
        trip = client.produce(topic, LARGE)
        assert (error(trip), trip.throttle_ms) == (APPENDED, 0)


@pytest.mark.proves("v1.throttled-meter", "v1.no-meter-by-topic")
def test_the_bytes_that_a_closed_fence_turns_back_are_metered_in_all_and_by_topic(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    before = gauge(node, "Fence", "RejectedBytes")
    with RawClient(node, "metered") as client:
        client.produce(topic, LARGE)
    assert gauge(node, "Fence", "RejectedBytes") == before + len(LARGE)
    eventually(lambda: turned_back_bytes(node, topic) == len(LARGE))
    # From 4.1 on Kafka's own producer sends topic ids instead of names.
    config = {"bootstrap.servers": node.bootstrap, "client.id": "java", "acks": "all"}
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(Helper(node.version).ask, "produce", topic, 1, 1, config, timeout=120)
        eventually(lambda: turned_back_bytes(node, topic) > len(LARGE))
        set_factor(node, 1)
        done.result(120)


@pytest.mark.proves("kip-13.error-rejected", "v1.throttled-meter")
def test_a_topic_quota_mutes_a_client_that_sends_on_and_not_one_that_sends_little(node: KafkaNode, topic: str) -> None:
    filler = node.client_config("root", "filler")
    fill_topic(filler, topic, 1_000)  # creates the topic's meter, so its credit counts from now on
    alter_broker_config(node, {PREFIX + TOTAL: "51K", PREFIX + OWN: f"{topic}:50K"})
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
