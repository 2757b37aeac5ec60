"""The factor source ``load`` on a real broker: greedy clients are slowed while its request handler has no time left."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.commands import explain_client, field, last_line
from tests.broker.support.node import callback_node
from tests.broker.support.seen import ANYONE, gauge, limit_of

TARGET: Final = 0.3
#: Large batches of noise, which the broker compresses in vain: that costs its one handler thirty times what it costs a
#: client, so a busy machine slows the handler first.
BATCHES: Final = {"batch.size": 1_000_000, "queue.buffering.max.kbytes": 8_192}
LARGE: Final = 900_000  # bytes of a record
COSTLY: Final = {"compression.type": "gzip", "compression.gzip.level": "9"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    properties = {"num.io.threads": "1", "quota.window.num": "2"} | FENCE  # two windows, as docs/quotas.md advises
    with callback_node(
        tmp_path_factory.mktemp("node"), {"factor.source": "load", "fence.authorizer": "none"}, properties=properties
    ) as node:
        create_topic(node, "t", config=COSTLY)
        yield node


def factor(node: KafkaNode) -> float:
    return gauge(node, "TypedFactor,name=load", "Factor")


def idle(node: KafkaNode) -> float:
    return gauge(node, "Load", "HandlersIdle")


def explained(node: KafkaNode) -> str:
    return explain_client(node, ANYONE, "greedy-0")[1]


def test_greedy_clients_are_slowed_until_the_handler_has_time_and_let_go_afterwards(node: KafkaNode) -> None:
    with ProducerLoad(node.client_config(client_id="small"), "t", rate=20_000) as small:
        eventually(lambda: small.meter.bytes > 40_000)
        eventually(lambda: factor(node) == 1, what="it has time enough for who is there")
        with ExitStack() as greedy:
            for number in range(4):
                config = {**node.client_config(client_id=f"greedy-{number}"), **BATCHES}
                greedy.enter_context(ProducerLoad(config, "t", LARGE, noise=True))
            eventually(lambda: factor(node) < 0.9, what="the handler has no time left")
            eventually(lambda: limit_of(node, ANYONE, "greedy-0") < 1e9)

            def is_explained() -> bool:
                text = explained(node)
                assert "since this broker's request handlers are" in last_line(text)
                assert "idle (target 30 %)" in text
                assert field(text, "state") == "OPEN", "that of the disks"
                return True

            eventually(is_explained)
            eventually(lambda: idle(node) > TARGET / 2, what="the handler has time again")
            assert gauge(node, "Fence", "Closed") == 0
        eventually(lambda: factor(node) == 1)
        eventually(lambda: math.isnan(limit_of(node, ANYONE, "greedy-0")), what="nobody is slowed any more")
