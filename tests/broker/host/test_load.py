"""The factor source ``load`` on a real broker: greedy clients are slowed while its request handler has no time left."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
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


def test_greedy_clients_are_slowed_until_the_handler_has_time_and_let_go_afterwards(tmp_path: Path) -> None:
    properties = {"num.io.threads": "1", "quota.window.num": "2"} | FENCE  # two windows, as docs/quotas.md advises
    settings = {"factor.source": "load"}

    def factor() -> float:
        return gauge(node, "TypedFactor,name=load", "Factor")

    with ExitStack() as stack:
        node = stack.enter_context(callback_node(tmp_path, settings, properties=properties))
        create_topic(node, "t", config=COSTLY)
        small = stack.enter_context(ProducerLoad(node.client_config(client_id="small"), "t", rate=20_000))
        eventually(lambda: small.meter.bytes > 40_000)
        eventually(lambda: factor() == 1, what="it has time enough for who is there")
        with ExitStack() as greedy:
            for number in range(4):
                config = {**node.client_config(client_id=f"greedy-{number}"), **BATCHES}
                greedy.enter_context(ProducerLoad(config, "t", LARGE, noise=True))
            eventually(lambda: factor() < 0.9, what="the handler has no time left")
            eventually(lambda: limit_of(node, ANYONE, "greedy-0") < 1e9)

            def is_explained() -> bool:
                text = explain_client(node, ANYONE, "greedy-0")[1]
                assert "since this broker's request handlers are" in last_line(text)
                assert "idle (target 30 %)" in text
                assert field(text, "state") == "OPEN", "that of the disks"
                return True

            eventually(is_explained)
            eventually(lambda: gauge(node, "Load", "HandlersIdle") > TARGET / 2, what="the handler has time again")
            assert gauge(node, "Fence", "Closed") == 0
        eventually(lambda: factor() == 1)
        eventually(lambda: math.isnan(limit_of(node, ANYONE, "greedy-0")), what="nobody is slowed any more")
