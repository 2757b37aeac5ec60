"""Fixtures for tests of plugins without Kafka: no thread follows a topic, and a fake takes published records."""

from collections.abc import Callable
from typing import Any

import pytest

from quotahost.broker.plugins.cluster_quota import quotas, shares
from quotahost.broker.plugins.factor_sources import budgets, snapshots
from quotahost.broker.plugins.tasks import publish_looks
from quotahost.kafka import publisher
from quotahost.kafka.client import Login
from tests.fakes.kafka import FakeKafka, FakeThread, Publish


@pytest.fixture(autouse=True)
def _no_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (quotas, shares, budgets, snapshots, publish_looks):
        monkeypatch.setattr(module, "Follower", FakeThread)
    monkeypatch.setattr(snapshots, "RegisteredBrokers", FakeThread)
    monkeypatch.setattr(publish_looks, "BETWEEN", 0.0)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Publish[Any]:
    """A function that makes a fake of Kafka, which takes the publishers' records and decodes them."""

    def make(decode: Callable[[bytes, bytes], Any]) -> FakeKafka[Any]:
        kafka = FakeKafka(decode)
        monkeypatch.setattr(Login, "admin", lambda login, topic: None)
        monkeypatch.setattr(publisher, "AdminClient", lambda config: kafka)
        monkeypatch.setattr(publisher, "ensure_compacted", kafka.ensure)
        monkeypatch.setattr(publisher, "Producer", kafka.producer)
        return kafka

    return make
