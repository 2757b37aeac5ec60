"""The supplier ``controller-mutation`` gives the quotas of KIP-599 on a real controller.

Kafka measures mutations by a token bucket, as the KIP's current page says, and not by the rate of its version 15. No
supplier can change this. The model is ``throttling.TokenBucket``; the tests compute it for the earliest and the latest
time at which the controller can have read its clock.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import mean
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from harness.clients.mutations import mutate
from harness.clients.raw import QUOTA_EXCEEDED, Kind, RawClient, now_ms
from harness.java.jmx import Jmx
from harness.kafka.admin import set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.kafka.settings import CONTROLLER, INTERNAL
from harness.plugin import JAR
from harness.system.waiting import eventually
from quotahost.throttling import SampledRate, TokenBucket
from tests.broker.support.commands import explain_client, field, last_line
from tests.broker.support.node import callback_properties
from tests.broker.support.seen import ANYONE

SAMPLES: Final = 100
Q: Final = 5.0
SLOW: Final = 0.5  # a burst of 50
BY_ITSELF: Final = 12  # partitions of a topic that Kafka creates by itself when a client asks for it
KIP_599: Final = {f"topic-{n}": 80 for n in range(7)}
SETTINGS: Final = {
    "supplier": "client-quotas,controller-mutation",
    "plugin.controller-mutation.default": "50",
    "plugin.controller-mutation.client-ids": "strict:5,ledger:0.5,asker:0.5,direct:0.5,both:0.5,both-old:0.5",
}


# test_as_stock.py has broker and controller in one node, too.
COMBINED: Final = pytest.param(0, marks=pytest.mark.long, id="combined")


@pytest.fixture(scope="module", params=[COMBINED, pytest.param(1, id="separate-controller")])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    window = {"controller.quota.window.num": str(SAMPLES), "controller.quota.window.size.seconds": "1"}
    directory = tmp_path_factory.mktemp("cluster")
    properties = callback_properties(SETTINGS) | window | {"num.partitions": str(BY_ITSELF)}
    made = Cluster(directory, brokers=1, controllers=request.param, classpath=[JAR], properties=properties, probe=True)
    with made:
        yield made


def controller(cluster: Cluster) -> KafkaNode:
    return next(node for node in cluster.nodes if "controller" in node.roles)


def make_known(cluster: Cluster, client_id: str) -> None:
    """Waits until broker and controller know the client, so that its mutations are not charged to the newcomers."""
    for node, listener in ((cluster.brokers[0], INTERNAL), (controller(cluster), CONTROLLER)):
        with RawClient(node, client_id, listener) as client:
            client.ping()
            assert client.has_response(within=30)
        # Until the host has answered for this client-id, too, it has the default of its principal.
        eventually(lambda node=node: quota_now(node, ANYONE, client_id, "CONTROLLER_MUTATION").client_id == client_id)


def bean(node: KafkaNode, name: str) -> dict[str, Any]:
    return Jmx(node).query(name).get(name, {})


def tokens(cluster: Cluster, client_id: str = "ledger") -> float:
    """The tokens left in the client's bucket, which is full before the client's first request."""
    found = enforced_quotas(controller(cluster), "CONTROLLER_MUTATION", client_id=client_id)
    return found[0].value if found else SLOW * SAMPLES


@contextmanager
def charged(cluster: Cluster, expected: int, client_id: str = "ledger") -> Iterator[None]:
    """Checks how many tokens a client's requests take; the bucket refills meanwhile."""
    begin, before = now_ms(), tokens(cluster, client_id)
    yield
    taken = before - tokens(cluster, client_id)
    assert taken - 1e-6 <= expected <= taken + SLOW * (now_ms() - begin) / 1000 + 1e-6


@pytest.mark.proves("kip-599.mutations", "kip-599.rate-type", "kip-599.validate-only")
def test_creating_growing_deleting_and_in_kraft_validating_are_charged_by_partitions(cluster: Cluster) -> None:
    """Kafka 4.3.1 charges ValidateOnly; the document: "we plan to not apply the quota is this particular case"."""
    make_known(cluster, "ledger")
    requests: tuple[tuple[Kind, dict[str, int], int, bool], ...] = (
        ("create", {"a": 12, "b": 4}, 16, False),
        ("grow", {"a": 20}, 8, False),
        ("delete", {"a": 0, "b": 0}, 24, False),
        ("create", {"c": 5}, 5, True),
    )
    for kind, topics, expected, validate_only in requests:
        eventually(lambda: tokens(cluster) > 1)
        with charged(cluster, expected):
            outcome = mutate(cluster.brokers[0], "ledger", kind, topics, validate_only=validate_only)
        assert set(outcome.values()) == {None}


@pytest.mark.proves("kip-599.auto-creation", "kip-599.auto-creation-client")
def test_a_topic_that_kafka_creates_by_itself_is_charged_to_the_client_that_asked_for_it(cluster: Cluster) -> None:
    make_known(cluster, "asker")
    with charged(cluster, BY_ITSELF, "asker"):
        producer = Producer(cluster.brokers[0].client_config(client_id="asker"))
        producer.produce("by-itself", b"a record")
        assert producer.flush(30) == 0


@pytest.mark.proves("kip-599.two-quotas", "kip-599.throttle-time", "kip-599.throttle-time-of-topics")
@pytest.mark.parametrize(("client_id", "strict"), [("both", True), ("both-old", False)])
def test_with_a_request_quota_the_longer_throttle_time_applies(cluster: Cluster, client_id: str, strict: bool) -> None:
    make_known(cluster, client_id)
    broker = cluster.brokers[0]
    set_quota(broker, {"request_percentage": 1e-4}, user=ANYONE, client_id=client_id)  # 11 us in its windows
    eventually(lambda: quota_now(broker, ANYONE, client_id, "REQUEST").limit == 0.0001)
    answers = []
    for topics in ({"one": 1}, {"two": 1}, {"many": 60}, {"three": 1, "four": 1}):
        with RawClient(broker, client_id) as client:
            # Kafka also charges a request that only validates, so the test needn't create topics.
            answers.append(client.mutate("create", topics, strict=strict, validate_only=True))
    assert answers[1].throttle_ms == 1000, "the bucket is nearly full; a request quota throttles for at most a window"
    assert {code for code, _ in answers[-1].errors.values()} == {QUOTA_EXCEEDED if strict else 0}
    # The client owes 12 tokens, and refused topics add none. An old client, which is not refused, owes 14.
    assert 10_000 < answers[-1].throttle_ms <= (24_000 if strict else 28_000)


@pytest.mark.proves("kip-599-revision.metrics", "kip-599-revision.throttle-time-average", "kip-599.metric")
@pytest.mark.proves("kip-599.controller")
def test_the_throttle_time_is_shown_where_it_is_applied(cluster: Cluster) -> None:
    """The broker that forwards a request mutes the client, and counts the throttle time among its Request metrics."""
    make_known(cluster, "direct")
    ours = "client-id=direct"
    throttled = []
    for topics in ({"direct": 51}, {"direct-2": 4}):
        with RawClient(controller(cluster), "direct", CONTROLLER) as client:
            throttled.append(client.mutate("create", topics, strict=False).throttle_ms)
    assert 0 < throttled[0] < throttled[1]
    shown = bean(controller(cluster), f"kafka.server:type=ControllerMutation,{ours}")
    assert shown["throttle-time"] == mean(throttled)
    with RawClient(cluster.brokers[0], "direct") as client:
        forwarded = client.mutate("create", {"forwarded": 5}, strict=False).throttle_ms
    # All clients without a request quota share this sensor.
    shown = bean(cluster.brokers[0], 'kafka.server:type=Request,user="<unlimited>"')
    assert forwarded > 0
    assert shown["throttle-time"] > 0


@pytest.mark.proves("kip-599.burst", "kip-599.wait", "kip-599-revision.bucket-example", "kip-599.strictly-below")
@pytest.mark.proves("kip-599.error-name", "kip-599.metric", "kip-599-revision.bucket-enforced")
@pytest.mark.proves("kip-599-revision.metrics")
def test_the_documents_burst_is_throttled_for_12_s_and_the_next_is_admitted_after_them(cluster: Cluster) -> None:
    # This must be the last test: afterwards the broker's metadata thread, which also applies quotas, creates 560 logs.
    make_known(cluster, "strict")
    assert quota_now(controller(cluster), ANYONE, "strict", "CONTROLLER_MUTATION").limit == Q
    early, late = TokenBucket(Q, SAMPLES, 1000), TokenBucket(Q, SAMPLES, 1000)

    begin = now_ms()
    outcome = mutate(cluster.brokers[0], "strict", "create", KIP_599)
    end = now_ms()
    assert outcome == dict.fromkeys(KIP_599), "the last of the seven topics finds 20 tokens and may take 80"
    assert early.admit(sum(KIP_599.values()), begin)
    assert late.admit(sum(KIP_599.values()), end)

    before = now_ms()
    error = mutate(cluster.brokers[0], "strict", "create", {"eighth": 1})["eighth"]
    assert error is not None
    assert error.error == "ThrottlingQuotaExceededException"
    assert early.throttle_ms(now_ms()) - 2 <= error.throttle_ms <= late.throttle_ms(before) + 2

    shown = bean(controller(cluster), "kafka.server:type=ControllerMutation,client-id=strict")
    assert {"mutation-rate", "tokens", "throttle-time"} <= set(shown)
    assert shown["tokens"] < 0
    assert is_explained_as_limited(cluster, early, late)
    # This rate has the windows of Kafka's metrics (metrics.num.samples, metrics.sample.window.ms), not of the quota.
    shown_rate = SampledRate(2, 30_000)
    shown_rate.record(sum(KIP_599.values()), begin)
    assert shown_rate.measure(now_ms()) <= shown["mutation-rate"] <= sum(KIP_599.values()) / 30

    eventually(lambda: early.tokens(now_ms()) >= 5 * Q - 60, poll=0.2)  # 5 s after
    is_explained_as_limited(cluster, early, late)

    broker = cluster.brokers[0]
    eventually(lambda: mutate(broker, "strict", "create", {"eighth": 1}) == {"eighth": None}, poll=0.5)
    assert now_ms() >= begin + 12_000
    early.record(1, now_ms())
    late.record(1, now_ms())
    eventually(lambda: late.tokens(now_ms()) >= 0, poll=0.2)  # 13 s after
    assert not is_explained_as_limited(cluster, early, late)


def is_explained_as_limited(cluster: Cluster, early: TokenBucket, late: TokenBucket) -> bool:
    """Whether the controller's ``quotahost explain`` calls the client limited; compares its tokens with the models'."""
    least = late.tokens(now_ms())
    _, text = explain_client(controller(cluster), ANYONE, "strict", "CONTROLLER_MUTATION")
    most = early.tokens(now_ms())
    tokens, burst = map(float, re.findall(r"-?[\d.]+", field(text, "tokens"))[:2])
    assert least - 0.01 <= tokens <= most + 0.01
    assert burst == 500
    words = "CONTROLLER_MUTATION is limited by the client-id's quota of controller-mutation"
    limited = last_line(text).startswith(words)
    assert limited == (tokens < 0), text
    return limited
