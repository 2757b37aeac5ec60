"""Client quotas at all eight levels: a broker without the plugin shows what is right."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import pytest

from harness.clients.consumer import ConsumerLoad
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import DEFAULT, create_topic, kafka_configs, set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, has_own_quota, table_row

pytestmark = pytest.mark.broker

USER: Final = "us:er ü"
CLIENT: Final = "cli:ent ü"
KEY: Final = "producer_byte_rate"
LEVELS: Final[tuple[dict[str, Any], ...]] = (  # the least specific first
    {"client_id": DEFAULT},
    {"client_id": CLIENT},
    {"user": DEFAULT},
    {"user": DEFAULT, "client_id": DEFAULT},
    {"user": DEFAULT, "client_id": CLIENT},
    {"user": USER},
    {"user": USER, "client_id": DEFAULT},
    {"user": USER, "client_id": CLIENT},
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaNode, KafkaNode]]:
    users = {USER: "a", "other": "b"}
    stock = KafkaNode(tmp_path_factory.mktemp("stock"), users=users, probe=True)
    with stock, callback_node(tmp_path_factory.mktemp("hosted"), users=users) as with_plugin:
        for node in (stock, with_plugin):
            create_topic(node, "t")
        yield stock, with_plugin


def quota_in_force(node: KafkaNode) -> tuple[dict[str, str], float | None]:
    """The tags and the bound by which Kafka measures the client's next records."""
    before = {tuple(q.tags.items()): q.value for q in enforced_quotas(node, "PRODUCE")}
    with ProducerLoad(node.client_config(USER, CLIENT), "t", rate=500_000) as load:
        eventually(lambda: load.meter.total_at(float("inf")) > 50_000)

        def risen() -> list[Any]:
            return [
                q for q in enforced_quotas(node, "PRODUCE")
                if q.value > before.get(tuple(q.tags.items()), 0) and "<" not in q.tags["user"]
            ]  # fmt: skip

        now = eventually(risen)
    assert len(now) == 1
    return now[0].tags, now[0].bound


@pytest.mark.proves("kip-13.client-id", "kip-13.dynamic-config", "kip-599.levels")
def test_every_level_gives_the_tags_and_the_limit_that_the_stock_broker_gives(
    nodes: tuple[KafkaNode, KafkaNode],
) -> None:
    up = [(level, 1e6 * n, 1e6 * n) for n, level in enumerate(LEVELS, start=1)]
    down = [(level, None, 1e6 * (n - 1)) for n, level in reversed(list(enumerate(LEVELS, start=1)))]
    with ThreadPoolExecutor(len(nodes)) as both:
        for level, rate, expected in up + down[:-1]:
            stock, with_plugin = both.map(partial(_tags_after, level=level, rate=rate, expected=expected), nodes)
            assert stock == with_plugin, level


def _tags_after(node: KafkaNode, level: dict[str, Any], rate: float | None, expected: float) -> dict[str, str]:
    set_quota(node, {KEY: rate}, **level)
    return eventually(lambda: _with_bound(node, expected), poll=0.1)


def _with_bound(node: KafkaNode, bound: float) -> dict[str, str]:
    tags, now = quota_in_force(node)
    assert now == bound
    return tags


def test_a_quota_set_by_kafka_configs_sh_is_enforced(nodes: tuple[KafkaNode, KafkaNode]) -> None:
    _, node = nodes
    entity = ("--entity-type", "users", "--entity-name", "other")
    kafka_configs(node, "--alter", *entity, "--add-config", "consumer_byte_rate=1234567")
    with ConsumerLoad(node.client_config("other", "c"), "t"):
        eventually(lambda: has_own_quota(node, "other", "c"))
        eventually(lambda: [q.bound for q in enforced_quotas(node, "FETCH", user="other")] == [1234567.0])
    kafka_configs(node, "--alter", *entity, "--delete-config", "consumer_byte_rate")
    eventually(lambda: table_row(node, "other", "c", "FETCH")["limit"] == "null")
