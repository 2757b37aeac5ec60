"""KIP-13 on a real broker: quotas per client-id by KIP-13's own properties, measured as ``SampledRate`` predicts.

A raw client sends requests of known sizes at known times, each on a connection of its own, because Kafka mutes a
throttled connection. Kafka charges a produce request without its header (``RequestChannel.Request.sizeInBytes``) and a
fetch response from its correlation id on (``FetchResponse.sizeOf``); it takes back the charge of a throttled fetch. So
all bytes are known. The times are not: the broker reads its clock between the sending of a request and its response.
The throttle time is ``total / bound - window``, and the window begins with the oldest sample. So the prediction may be
wrong by the round trips of the oldest request and of this one, and by 2 ms of rounding: this is the tolerance. Sizes
and times are chosen so that no request is near the end of a sample.
"""

import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any, Final

import pytest

from harness.clients.raw import RawClient, RoundTrip, introduce_clients, now_ms, record_batch
from harness.java.helper import HelperError, helper
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, kafka_configs, set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from quotahost.throttling import SampledRate
from tests.broker.support.commands import explain_client, field
from tests.broker.support.node import callback_node, changed
from tests.broker.support.numbers import end_offset
from tests.broker.support.seen import ANYONE, has_own_quota, limit_of

SAMPLES: Final = 4
WINDOW_MS: Final = 1000
DEFAULT: Final = 20_000.0
MOMENTS: Final = (0.0, 0.2, 0.4, 0.6, 1.3, 1.5, 2.6, 2.8)  # s; samples begin at 0, 1.3 and 2.6
SETTINGS: Final = {
    "supplier": "overrides,client-quotas",
    "plugin.overrides.quota.producer.default": "20K",
    "plugin.overrides.quota.consumer.default": "20K",
    "plugin.overrides.quota.producer.override": r"clientA:40K,ns\:app\,1:60K,live:50K",
    "plugin.overrides.quota.consumer.override": "clientC:40K,clientD:5M,slow:4K",
}
Send = Callable[[RawClient], tuple[float, RoundTrip, int]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, SETTINGS, properties={"quota.window.num": str(SAMPLES)}) as node:
        create_topic(node, "t")
        create_topic(node, "filled")
        with RawClient(node, "filler") as client:
            client.produce("filled", record_batch(20_000))
        # The first query starts the management agent, which takes a while.
        Jmx(node).query("kafka.server:type=Produce")
        yield node


def producing(size: int) -> Send:
    """A function that produces one record of so many bytes."""
    batch = record_batch(size)

    def send(client: RawClient) -> tuple[float, RoundTrip, int]:
        round_trip = client.produce("t", batch)
        return round_trip.body_size, round_trip, round_trip.throttle_ms

    return send


def fetching(charge: int) -> Send:
    """A function that fetches the record, for which Kafka charges so many bytes."""

    def send(client: RawClient) -> tuple[float, RoundTrip, int]:
        round_trip = client.fetch("filled", 21_000)
        throttled = round_trip.throttle_ms
        assert throttled or len(round_trip.response) == charge
        return charge, round_trip, throttled

    return send


class Ledger:
    """Compares the throttle times of a broker's responses with those that the model predicts."""

    def __init__(self, bound: float, takes_back: bool, throttle_times: list[int]) -> None:
        self.model, self.bound, self.takes_back = SampledRate(SAMPLES, WINDOW_MS), bound, takes_back
        self.throttle_times, self.tolerance = throttle_times, 0

    def add(self, charge: float, round_trip: RoundTrip, throttled: int) -> None:
        at_ms = round_trip.sent_ms + round_trip.duration_ms // 2
        self.tolerance = max(self.tolerance, 2 * round_trip.duration_ms + 2)
        self.model.record(charge, at_ms)
        expected = self.model.throttle_ms(self.bound, at_ms)
        self.throttle_times.append(throttled)
        assert throttled == pytest.approx(expected, abs=self.tolerance)
        if throttled and self.takes_back:
            self.model.record(-charge, at_ms)

    def check_beans(self, node: KafkaNode, bean: str) -> None:
        before = now_ms()
        shown: dict[str, Any] = Jmx(node).query(f"kafka.server:type={bean}")[f"kafka.server:type={bean}"]
        rates = [self.model.measure(before), self.model.measure(now_ms())]
        slack = 1 + self.tolerance / ((SAMPLES - 1) * WINDOW_MS)  # the shortest window
        assert min(rates) / slack <= shown["byte-rate"] <= max(rates) * slack
        throttled = [t for t in self.throttle_times if t]
        means = [pytest.approx(mean(throttled[first:])) for first in range(len(throttled))]
        assert shown["throttle-time"] in means, "the mean of all tries, except those older than a minute"


def played(node: KafkaNode, client_id: str | None, send: Send, bound: float, *, takes_back: bool = False) -> Ledger:
    """The ledger of a client that has sent at MOMENTS, and was throttled in the end.

    On a busy machine the client may send too late, and starts again.
    """
    throttle_times: list[int] = []

    def play() -> Ledger:
        ledger, begin, first = Ledger(bound, takes_back, throttle_times), time.monotonic(), len(throttle_times)
        for moment in MOMENTS:
            time.sleep(max(0.0, begin + moment - time.monotonic()))
            with RawClient(node, client_id) as client:
                ledger.add(*send(client))
        assert max(throttle_times[first:]) > 0
        # Kafka takes back the charge of a throttled fetch, so the last fetch need not be throttled.
        assert takes_back or throttle_times[-1] > 1000
        return ledger

    return eventually(play, poll=SAMPLES + 1)  # seconds, so that the windows are empty


def make_known(node: KafkaNode, client_id: str | None) -> None:
    """Waits until the broker knows the client's quotas; its sensors have no record yet."""
    introduce_clients(node, [client_id])
    eventually(lambda: has_own_quota(node, ANYONE, client_id or ""))


@pytest.mark.proves("kip-13.client-id", "kip-13.default-and-override", "kip-13.bytes-written", "kip-13.windows")
@pytest.mark.proves("kip-13.delay", "kip-13.jmx")
@pytest.mark.parametrize(
    ("client_id", "bound", "size"),
    [("clientA", 40_000.0, 30_000), ("other", DEFAULT, 15_000), ("ns:app,1", 60_000.0, 45_000),
     (None, DEFAULT, 15_000)],
    ids=["override", "default", "special characters", "without client-id"],
)  # fmt: skip
def test_a_producer_is_throttled_as_predicted(node: KafkaNode, client_id: str | None, bound: float, size: int) -> None:
    make_known(node, client_id)
    ledger = played(node, client_id, producing(size), bound)
    assert ledger.throttle_times[0] == 0
    ledger.check_beans(node, "Produce" + bean_name(client_id))
    assert [q.bound for q in enforced_quotas(node, "PRODUCE", client_id=client_id or "", user="")] == [bound]


@pytest.mark.proves("kip-13.client-id", "kip-13.bytes-read", "kip-13.jmx")
@pytest.mark.parametrize(("client_id", "bound"), [("clientC", 40_000.0), ("reader", DEFAULT)])
def test_a_consumer_is_throttled_as_predicted(node: KafkaNode, client_id: str, bound: float) -> None:
    make_known(node, client_id)
    ledger = played(node, client_id, fetching(size_of_filled(node)), bound, takes_back=True)
    assert ledger.throttle_times[0] == 0
    ledger.check_beans(node, "Fetch" + bean_name(client_id))


def size_of_filled(node: KafkaNode) -> int:
    """The size in bytes of the response that has the record."""
    with RawClient(node, "clientD") as unthrottled:
        return len(unthrottled.fetch("filled", 21_000).response)


@pytest.mark.proves("kip-13.append-first", "kip-13.throttle-time-field", "kip-13.others-unaffected")
def test_a_throttled_batch_is_appended_and_answered_at_once_and_its_connection_alone_is_muted(node: KafkaNode) -> None:
    make_known(node, "modest")
    make_known(node, "greedy")

    def answered_at_once() -> bool:
        end = end_offset(node, "t")
        with RawClient(node, "modest") as modest, RawClient(node, "greedy") as client:
            first = client.produce("t", record_batch(90_000))
            throttled = first.throttle_ms
            assert end_offset(node, "t") == end + 1
            assert modest.produce("t", record_batch(1_000)).throttle_ms == 0
            second = client.produce("t", record_batch(10))
        # Kafka mutes before it responds, so the mute began within the first round trip.
        return first.duration_ms < throttled <= second.received_ms - first.sent_ms

    eventually(answered_at_once, poll=SAMPLES + 1)  # as played()


@pytest.mark.proves("kip-13.read-later", "kip-13.throttle-time-field")
def test_a_throttled_fetch_is_answered_at_once_without_a_record_and_its_connection_is_muted(node: KafkaNode) -> None:
    make_known(node, "slow")

    def answered_at_once() -> bool:
        with RawClient(node, "slow") as client:
            first = client.fetch("filled", 21_000)
            throttled = first.throttle_ms
            second = client.fetch("filled", 21_000)
        assert len(first.response) < size_of_filled(node) - 20_000 + 100, "the response has a frame and no records"
        return first.duration_ms < throttled <= second.received_ms - first.sent_ms

    eventually(answered_at_once, poll=SAMPLES + 1)  # as played()


@pytest.mark.proves("kip-13.client-metrics")
def test_kafkas_clients_show_the_mean_and_the_largest_throttle_time_and_0_if_not_throttled(node: KafkaNode) -> None:
    def shown(client: str, client_id: str, *what: object) -> list[float]:
        make_known(node, client_id)
        config = {"bootstrap.servers": node.bootstrap, "client.id": client_id}
        metrics = helper(node.version).ask(f"throttled-{client}", *what, config)
        return [value for _, value in sorted(metrics.items())]  # "...-avg" is before "...-max"

    assert shown("producer", "free-producer", "t", [10]) == [0, 0]
    avg, largest = shown("producer", "java-producer", "t", [10, 90_000])
    assert 0 < avg <= largest / 2
    # The mean of Kafka's producer includes each response of the connection, also those to Metadata and ApiVersions.
    assert largest / avg == pytest.approx(round(largest / avg)), "exactly one of the responses was throttled"
    assert shown("consumer", "clientD", "filled", 2) == [0, 0]
    avg, largest = shown("consumer", "java-consumer", "filled", 6)
    assert 0 < avg < largest


@pytest.mark.proves("kip-13.no-client-id")
def test_all_clients_without_a_client_id_share_one_quota(node: KafkaNode) -> None:
    make_known(node, None)
    batch = record_batch(70_000)

    def share() -> bool:
        with RawClient(node, None) as one, RawClient(node, "") as other:
            one.produce("t", batch)
            return other.produce("t", batch).throttle_ms > 1000

    eventually(share, poll=SAMPLES + 1)  # as played()


@pytest.mark.proves("kip-13.default-and-override", "kip-13.static-config")
def test_an_override_is_changed_live_and_a_wrong_one_is_refused_with_its_entry(node: KafkaNode) -> None:
    name = PREFIX + "plugin.overrides.quota.producer.override"

    def limited_to(rate: float) -> None:
        eventually(lambda: limit_of(node, ANYONE, "live") == rate)

        def enforced() -> bool:
            with RawClient(node, "live") as client:
                client.produce("t", record_batch(10))
            return [q.bound for q in enforced_quotas(node, "PRODUCE", client_id="live")] == [rate]

        eventually(enforced)

    make_known(node, "live")
    limited_to(50_000)
    with pytest.raises(HelperError, match=r"quota\.producer\.override=.*'live', whose rate is not"):
        alter_broker_config(node, {name: "live:much"})
    limited_to(50_000)
    brokers = ("--alter", "--entity-type", "brokers", "--entity-default")
    kafka_configs(node, *brokers, "--add-config", rf"{name}=[live:70K,ns\:app:60K]")
    limited_to(70_000)
    alter_broker_config(node, {name: None})
    limited_to(50_000)


def test_the_most_constraining_supplier_wins_and_explain_shows_the_other_suppliers_rate(node: KafkaNode) -> None:
    make_known(node, "clientA")
    set_quota(node, {"producer_byte_rate": 10_000}, user=ANYONE)
    assert limit_of(node, ANYONE, "clientA") == 40_000
    with changed(node, {"supplier.combine": "most-constraining"}):
        eventually(lambda: limit_of(node, ANYONE, "clientA") == 10_000)
        _, text = explain_client(node, ANYONE, "clientA")
    assert field(text, "quota") == f"10,000 bytes/s (10K), shared by user {ANYONE}"
    expected = "supplier client-quotas, the most constraining (overrides would give 40,000 bytes/s (40K))"
    assert field(text, "from") == expected
    set_quota(node, {"producer_byte_rate": None}, user=ANYONE)
    eventually(lambda: limit_of(node, ANYONE, "clientA") == 40_000)


def bean_name(client_id: str | None) -> str:
    """The tags as JMX writes them: without empty tags, and with quotation marks around special characters."""
    if not client_id:
        return ""
    return f",client-id={client_id}" if client_id.isalnum() else f',client-id="{client_id}"'
