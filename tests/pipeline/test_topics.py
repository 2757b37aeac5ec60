"""The pipeline's topics: how they are made, and what is refused."""

import logging
from collections.abc import Collection, Mapping

import pytest

from quotahost.base.errors import Unusable
from quotahost.pipeline.clients import Topics
from quotahost.pipeline.options import options
from quotahost.records.topics import COMPACTED

OPTIONS = options(bootstrap="b:1", checkpoint="/c", topics_prefix="t.")


class Kafka:
    """A cluster with topics of so many partitions, of which some are hidden; some brokers come ``late``."""

    def __init__(self, brokers: int = 3, late: int = 0, hidden: str = "", there: dict[str, int] | None = None) -> None:
        self._brokers, self._late, self._hidden, self.there = brokers, late, hidden, there or {}
        self.made: dict[str, tuple[int, Mapping[str, str]]] = {}

    def cluster(self) -> tuple[str, list[str]]:
        return "id", [str(n) for n in range(self._brokers)]

    def topics(self, names: Collection[str]) -> dict[str, int]:
        return {name: partitions for name, partitions in self.there.items() if name in names}

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        if name == self._hidden:
            return False
        self.made[name] = replicas, config
        self.there[name] = partitions
        return True

    def _wait(self, _: float) -> None:
        self._brokers, self._late = self._brokers + self._late, 0

    def ensure(self) -> dict[str, tuple[int, Mapping[str, str]]]:
        Topics(self, OPTIONS).ensure(self._wait)  # type: ignore[arg-type]
        return self.made


@pytest.mark.parametrize("late", [0, 2])
def test_absent_topics_are_made_with_three_replicas_and_dead_letters_leave(late: int) -> None:
    made = Kafka(brokers=3 - late, late=late).ensure()
    assert {replicas for replicas, _ in made.values()} == {3}
    configs = {name: config for name, (_, config) in made.items()}
    assert configs["t.snapshots"] == configs["t.cluster_volumes"] == COMPACTED
    assert {config["min.insync.replicas"] for config in configs.values()} == {"1"}, "else two brokers down stop all"
    assert configs["t.refused"]["cleanup.policy"] == configs["t.ticks"]["cleanup.policy"] == "delete"
    assert int(configs["t.refused"]["retention.ms"]) == 7 * 24 * 3600 * 1000
    assert int(configs["t.refused"]["retention.bytes"]) == 2**30


def test_with_few_brokers_the_log_says_so_and_names_no_topic_that_it_may_not_see(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kafka = Kafka(brokers=1, hidden="t.snapshots")
    with caplog.at_level(logging.INFO):
        assert {replicas for replicas, _ in kafka.ensure().values()} == {1}
        kafka.ensure()
    assert caplog.text.count("reassign them if more come") == 1
    assert "snapshots" not in caplog.text


def test_several_partitions_of_the_topic_that_decides_who_leads_are_refused() -> None:
    with pytest.raises(Unusable, match=r"topic t\.cluster_volumes has 3 partitions, and must have one"):
        Kafka(there={"t.cluster_volumes": 3}).ensure()
    Kafka(there={"t.snapshots": 3}).ensure()  # a key's records have one order in any number
