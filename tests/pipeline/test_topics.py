"""The pipeline's topics: how they are made, and what is said of those that others made."""

import logging
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, repeat

import pytest

from quotahost.errors import Unusable
from quotahost.pipeline.clients import GATHERING, Topic, Topics
from quotahost.pipeline.options import options
from quotahost.records.topics import COMPACTED

OPTIONS = options(
    bootstrap="b:1", checkpoint="/c", snapshots_topic="snapshots", cluster_volumes_topic="volumes",
    refused_topic="refused", tick_topic="ticks", usage_topic="usage", shares_topic="shares",
)  # fmt: skip


class Kafka:
    """A cluster whose brokers come up one after the other."""

    def __init__(self, brokers: Iterator[int], **there: Topic) -> None:
        self._brokers, self.there = brokers, there
        self.made: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.hidden: set[str] = set()
        self.asked = 0

    def cluster(self) -> tuple[str, list[str]]:
        return "id", [str(n) for n in range(next(self._brokers))]

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        return {name: topic for name, topic in self.there.items() if name in names}

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        self.asked += 1
        if name in self.hidden:
            return False
        self.made[name] = replicas, config
        self.there[name] = Topic(partitions, config["cleanup.policy"])
        return True


class World:
    def __init__(self, brokers: Iterator[int] = repeat(3), **there: Topic) -> None:  # noqa: B008
        self.kafka, self.now = Kafka(brokers, **there), 0.0
        self.topics = Topics(self.kafka, OPTIONS)  # type: ignore[arg-type]

    def ensure(self) -> dict[str, tuple[int, Mapping[str, str]]]:
        self.topics.ensure(self._wait, lambda: self.now)
        return self.kafka.made

    def _wait(self, seconds: float) -> None:
        self.now += seconds


def test_absent_topics_are_made_with_three_replicas_and_dead_letters_leave() -> None:
    made = World().ensure()
    assert {replicas for replicas, _ in made.values()} == {3}
    configs = {name: config for name, (_, config) in made.items()}
    assert configs["snapshots"] == configs["volumes"] == COMPACTED
    assert {config["min.insync.replicas"] for config in configs.values()} == {"1"}, "else two brokers down stop all"
    assert configs["refused"]["cleanup.policy"] == "delete"
    assert int(configs["refused"]["retention.ms"]) == 7 * 24 * 3600 * 1000
    assert int(configs["refused"]["retention.bytes"]) == 2**30


def test_at_a_first_start_it_waits_for_brokers_that_are_still_coming_up() -> None:
    world = World(chain(repeat(1, 8), repeat(2, 8), repeat(3)))
    assert {replicas for replicas, _ in world.ensure().values()} == {3}
    assert world.now < 2 * GATHERING


def test_a_small_cluster_is_waited_for_once_and_told_so(caplog: pytest.LogCaptureFixture) -> None:
    world = World(repeat(1))
    with caplog.at_level(logging.WARNING):
        assert {replicas for replicas, _ in world.ensure().values()} == {1}
    assert world.now == pytest.approx(GATHERING, abs=1)
    assert "reassign them if more come" in caplog.text
    before = world.now
    world.ensure()
    assert world.now == before


def test_a_topic_that_it_may_not_see_is_neither_made_again_and_again_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(repeat(1))
    world.kafka.hidden.add("snapshots")
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            world.ensure()
    assert world.kafka.asked == 6
    assert world.now == pytest.approx(GATHERING, abs=1)
    assert "created the topic snapshots" not in caplog.text


def test_several_partitions_of_the_topic_that_decides_who_leads_are_refused() -> None:
    with pytest.raises(Unusable, match="topic volumes has 3 partitions, and must have one"):
        World(volumes=Topic(3, "compact")).ensure()
    World(snapshots=Topic(3, "compact")).ensure()  # a key's records have one order in any number


def test_a_topic_with_another_policy_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(refused=Topic(1, "compact"), snapshots=Topic(1, "delete"), ticks=Topic(1, ""))
    for _ in range(2):
        world.ensure()
    assert sorted(each.getMessage() for each in caplog.records if each.levelno == logging.WARNING) == [
        "topic refused has cleanup.policy=compact: set delete, or its records stay for ever",
        "topic snapshots has cleanup.policy=delete: set compact, or those of brokers that have nothing new to publish "
        "are lost",
    ]
