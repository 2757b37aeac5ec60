"""A volume fills: ``explain`` and ``top`` show the reason, and ``cordon`` keeps new topics away from the volume."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics, kafka_configs
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from tests.broker.support.commands import Terminal, explain, explain_client, field
from tests.broker.support.node import OWN_ID
from tests.broker.support.seen import ANYONE, gauge, wait_for_watch_topic
from tests.broker.support.volumes import (
    MEGA,
    directory_of,
    node_with_two_volumes,
    offline_directories,
    topic_on_each,
    used,
)

VOLUME: Final = 100 * MEGA  # bytes of each volume
SOFT: Final = 20 * MEGA  # bytes used
RATE: Final = 250_000  # bytes/s of a writer: no volume may fill in the minutes that a busy machine takes
SETTINGS: Final = {
    "factor.source": "local",
    "static.produce": "20M",
    "factor.scope": "topics",
    "static.storage.soft": str(SOFT),
    "static.storage.hard": str(90 * MEGA),
    "tasks": "cordon,publish-usage",
    "plugin.cordon.hold": "1s",
}
SEGMENTS: Final = {"segment.bytes": str(1 << 20), "retention.ms": "600000"}
CORDONED: Final = "cordoned.log.dirs"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with node_with_two_volumes(tmp_path_factory.mktemp("node"), SETTINGS, VOLUME, node_id=OWN_ID) as node:
        topic_on_each(node.data_dirs, lambda topic: create_topic(node, topic, config=SEGMENTS))
        yield node


def topic_at(directory: Path) -> str:
    """The module's topic whose first partition lies in this log directory."""
    return next(each.name for each in directory.iterdir() if each.name.startswith("volume-")).rpartition("-")[0]


def cordoned(node: KafkaNode) -> list[str]:
    text = kafka_configs(node, "--describe", "--entity-type", "brokers", "--entity-name", str(OWN_ID))
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(CORDONED)]
    return sorted(lines[0].split("=")[1].split(" ")[0].split(",")) if lines else []


def places_of_new_topics(node: KafkaNode, name: str) -> set[Path]:
    topics = [f"{name}-{number}" for number in range(4)]
    for topic in topics:
        create_topic(node, topic)
    return {directory_of(topic, node.data_dirs) for topic in topics}


def test_explain_and_top_show_what_fills_a_volume_who_writes_and_what_a_shorter_retention_frees(
    node: KafkaNode,
) -> None:
    full, other = node.data_dirs
    topic = topic_at(full)
    wait_for_watch_topic(node)
    fill_topic(node.client_config(client_id="filler"), topic, 25 * MEGA)
    eventually(lambda: used(full) > SOFT)
    code, text = explain("--pid", node.pid, "--volume")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[1:]] == [str(each) for each in node.data_dirs]
    with ProducerLoad(node.client_config(client_id="writer"), topic, rate=RATE) as load:
        eventually(lambda: load.meter.bytes > RATE)

        def all_is_shown() -> bool:
            """Checks the output for a volume that grows meanwhile; raises while a busy machine delays the writer."""
            code, text = explain("--broker-id", OWN_ID, "--volume", full, "--interval", "2s")
            assert code == 0, text
            assert field(text, "capacity") == "100 MB"
            assert "breached by" in field(text, "soft")
            assert "left" in field(text, "hard")
            assert "its hard limit in" in field(text, "growth")
            written, kept = (line.split() for line in text.splitlines() if line.startswith(topic))
            assert written[-1] in ("MB/s", "kB/s")
            assert kept[1:3] == ["10", "min"]
            writers = [line.split()[-1] for line in text.splitlines() if "client-id writer" in line]
            assert writers == [topic], "factor.scope=topics shows the topic of each writer"
            return True

        eventually(all_is_shown)
        slowed = f"slowed, since it writes to {topic}, which has a replica on broker {OWN_ID}"
        eventually(lambda: slowed in field(explain_client(node, ANYONE, "writer")[1], "scope"))
        with ProducerLoad(node.client_config(client_id="other"), topic_at(other), rate=RATE) as elsewhere:
            eventually(lambda: elsewhere.meter.bytes > RATE)
            spared = "keeps its full quota: it has not written to an affected topic"
            eventually(lambda: spared in field(explain_client(node, ANYONE, "other")[1], "scope"))
        with Terminal("top", "--bootstrap", node.bootstrap, lines=60, columns=180) as terminal:
            terminal.shows("writer")
            terminal.press(b"v")
            first = terminal.line(rf"^1 +{OWN_ID} .* 0\.\d+\s*$").split()
            second = terminal.line(f"^2 +{OWN_ID} ").split()
            terminal.press(b"1")
            # Wait for a rate first, because a busy machine may delay the writer.
            terminal.line(rf"^{topic} .*[kM]B/s\s*$")
            writes = terminal.line("client-id writer").split()
            terminal.press(b"\x1bq")
            assert terminal.ends() == 0
    assert first[2:5] == [str(full), "100", "MB"], "the fullest volume is first"
    assert first[-5:-1] == ["20.0", "MB", "90.0", "MB"], "the limits of the volume are shown"
    assert 0 < float(first[-1]) < 1, "the factor is between 0 and 1"
    assert (second[2], second[-1]) == (str(other), "1")
    assert writes[-1] == topic, "factor.scope=topics shows the topic of each writer"


def test_a_volume_above_its_soft_limit_gets_no_new_replicas_but_what_an_operator_says_holds(node: KafkaNode) -> None:
    full, other = map(str, node.data_dirs)
    eventually(lambda: cordoned(node) == [full])
    # Kafka shows a new config shortly before it applies the config.
    tries = count()
    eventually(lambda: places_of_new_topics(node, f"before-{next(tries)}") == {node.data_dirs[1]})
    node.stop()
    node.start()
    assert places_of_new_topics(node, "after") == {node.data_dirs[1]}
    eventually(lambda: gauge(node, "Cordon", "LogDirs") == 1)
    alter_broker_config(node, {CORDONED: f"{full},{other}"}, broker=OWN_ID)
    let_go = f"{PREFIX}plugin.cordon.let-go"
    alter_broker_config(node, {let_go: "true"}, broker=OWN_ID)
    eventually(lambda: cordoned(node) == [other], what="a directory that an operator has cordoned stays cordoned")
    eventually(lambda: gauge(node, "Cordon", "LogDirs") == 0)
    alter_broker_config(node, {let_go: None}, broker=OWN_ID)
    eventually(lambda: cordoned(node) == sorted([full, other]), what="if let-go is off, the task cordons again")
    delete_topics(node, topic_at(node.data_dirs[0]))
    eventually(lambda: cordoned(node) == [other], what="a directory that an operator has cordoned stays cordoned")
    alter_broker_config(node, {CORDONED: None}, broker=OWN_ID)
    eventually(lambda: node.data_dirs[0] in places_of_new_topics(node, f"free-{next(tries)}"))


def test_a_volume_that_kafka_has_taken_offline_is_listed_as_lost(node: KafkaNode) -> None:
    """The volume can still be read. It stays offline until the broker restarts, so this is the last test."""
    place = node.data_dirs[1]
    alter_broker_config(node, {PREFIX + "shadow": "all"})
    with suppress(OSError), (place / "ballast").open("wb") as ballast:
        while True:
            ballast.write(bytes(MEGA))
    with ProducerLoad(node.client_config(), topic_at(place)):
        eventually(lambda: offline_directories(node) == 1, what="an append has failed")
    eventually(lambda: f"unknown: {place}: the broker has lost" in explain("--pid", node.pid, "--volume")[1])
