"""The drill of docs/operate.md: its own commands pause all producers of a broker with limits, and take it back."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from harness.kafka.admin import create_topic, kafka_configs
from harness.plugin import FENCE, ROOT
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, PAUSE, callback_node, state
from tests.broker.support.numbers import attempt

pytestmark = pytest.mark.broker

SECTION: Final = re.search(
    r"^## A drill before you enforce\n.*?```sh\n(.*?)```",
    (ROOT / "docs/operate.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def commands() -> list[list[str]]:
    """The arguments of kafka-configs.sh in both of the drill's commands, but for the address."""
    assert SECTION
    (common,) = re.findall(r'^b="--bootstrap-server \S+ (.*)"$', SECTION[1], re.MULTILINE)
    lines = re.findall(r"^kafka-configs.sh \$b (.*)$", SECTION[1], re.MULTILINE)
    return [shlex.split(f"{common} {line}") for line in lines]


@pytest.mark.parametrize("source", ["snapshots", pytest.param("local", marks=pytest.mark.long)])
def test_the_commands_pause_producers_and_take_the_pause_back(tmp_path: Path, source: str) -> None:
    limits = {"static.storage.hard.min-free-bytes": "1K", "fence.authorizer": "none", "factor.source": source}
    with callback_node(tmp_path, limits, properties=FENCE) as node:
        create_topic(node, "t")
        eventually(lambda: state(node) == OPEN)
        begin, end = commands()
        kafka_configs(node, *begin)
        eventually(lambda: state(node) == PAUSE)
        assert attempt(node.client_config(), "t") == "NOT_ENOUGH_REPLICAS"
        kafka_configs(node, *end)
        eventually(lambda: state(node) == OPEN)
        assert attempt(node.client_config(), "t") is None
