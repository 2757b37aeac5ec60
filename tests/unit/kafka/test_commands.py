"""What one who watches reads of the topic of looks, however much is written to it."""

from types import SimpleNamespace
from typing import Any

import pytest

from quotahost.kafka import commands
from quotahost.kafka.commands import Watching


class Flooded:
    """A consumer that always has more, of ten brokers; each call takes 50 ms of its own clock."""

    def __init__(self, options: Any) -> None:
        self.now, self.messages = 0.0, 0

    def consume(self, most: int, seconds: float) -> list[Any]:
        self.now += 0.05
        first, self.messages = self.messages, self.messages + most
        return [self._message(number) for number in range(first, self.messages)] if self.now < 20 else []

    def _message(self, number: int) -> Any:
        key, value = str(number % 10).encode(), str(number).encode()
        return SimpleNamespace(key=lambda: key, value=lambda: value, error=lambda: None)

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        return (0, 0)

    def assign(self, partitions: Any) -> None: ...


def test_a_flooded_topic_is_read_for_a_bounded_time_and_of_each_broker_the_newest_look_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer = Flooded(None)
    topics = {name: SimpleNamespace(error=None, partitions={0: ""}) for name in ("watch", "looks")}
    admin = SimpleNamespace(list_topics=lambda topic, timeout: SimpleNamespace(topics=topics))
    monkeypatch.setattr(commands, "reach", lambda options, wait, topic: admin)
    monkeypatch.setattr(commands, "Producer", lambda options: None)
    monkeypatch.setattr(commands, "Consumer", lambda options: consumer)
    monkeypatch.setattr(commands, "time", SimpleNamespace(monotonic=lambda: consumer.now))
    looks = dict(Watching({}, "watch", "looks").read(0.1))
    assert consumer.now < 5
    assert looks == {str(number % 10).encode(): str(number).encode() for number in range(consumer.messages)}
