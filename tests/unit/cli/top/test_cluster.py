"""The brokers' records become a look at the cluster, whatever strangers write beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quotahost.cli.explain.broker_socket import Unanswered
from quotahost.cli.top import cluster as module
from quotahost.cli.top.cluster import Cluster
from quotahost.cli.top.live import Question
from quotahost.kafka.watching import NotWatched
from quotahost.records import look as look_record
from quotahost.records.look import Answered
from quotahost.records.watch import Watch
from tests.unit.cli.top.uses import look, use


class Brokers:
    """Stands for ``Watching``: brokers 1 and 2 are alive, and more is written than they write."""

    def __init__(self, *_: object) -> None:
        self.asked: list[Watch] = []
        self.written: list[tuple[bytes, bytes]] = []

    def brokers(self) -> frozenset[str]:
        return frozenset({"1", "2"})

    def ask(self, watch: Watch) -> None:
        self.asked.append(watch)

    def read(self, seconds: float) -> Iterator[tuple[bytes, bytes]]:
        written, self.written = self.written, []
        yield from written

    def write(self, broker: str, *answers: Answered) -> None:
        record = look_record.of(broker, "", look([use(f"user-{broker}")]), answers)
        self.written.append((broker.encode(), look_record.encode(record)))

    def close(self) -> None:
        pass


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(module, "Watching", lambda *_: made)
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    return made


def test_looks_of_brokers_that_the_cluster_does_not_list_are_not_kept(brokers: Brokers) -> None:
    with Cluster({}) as cluster:
        brokers.write("1")
        for number in range(1_000):
            brokers.write(f"forged-{number}")
        seen = cluster.look()
        assert list(seen.looks) == ["1"]
        assert seen.silent == ["2"]
        assert list(cluster._known) == ["1"]
        brokers.brokers = lambda: frozenset({"2"})  # type: ignore[method-assign]
        brokers.write("2")
        cluster.look()
        cluster.look()
        assert list(cluster._known) == ["2"], "a broker that was taken out is forgotten"


def test_only_strangers_is_nobody(brokers: Brokers) -> None:
    with Cluster({}) as cluster:
        brokers.write("forged")
        with pytest.raises(NotWatched, match="no broker answers"):
            cluster.look()


def test_who_is_not_answered_is_told_that_others_are(brokers: Brokers) -> None:
    with Cluster({}) as cluster:
        brokers.write("1")
        (row,) = cluster.look().uses
        brokers.write("1", *(Answered(f"invented-{number}", ("{}",)) for number in range(4)))
        answer = cluster.answer(Question(row))
        brokers.write("1", *(Answered(f"invented-{number}", ("{}",)) for number in range(4)))
        with pytest.raises(Unanswered, match="brokers answer 4 other watchers now"):
            cluster.answer(Question(volume="/dev/sdb", broker="1"))
        assert brokers.asked[-1].volume is not None
        assert answer.lines[-1].startswith("no answer (brokers answer 4 other watchers now")
