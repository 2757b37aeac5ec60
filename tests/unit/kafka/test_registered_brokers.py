"""The registered brokers of the cluster, for which it is asked again and again."""

from collections.abc import Mapping

import pytest

from harness.system.waiting import eventually
from quotahost.kafka import registered_brokers as module
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PERIOD", 0.002)


def test_it_hands_on_what_the_cluster_answers_and_while_it_is_silent_the_last_answer_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Silence is logged once startup.grace is over."""
    broker, answers = FakeBroker(), list[Mapping[str, bool]]()
    registered = RegisteredBrokers(context(broker, startup__grace="1h"), answers.append)
    assert not registered.answered
    broker.brokers = {1: False, 2: True}
    eventually(lambda: registered.answered)
    assert (answers[0], caplog.messages) == ({"1": False, "2": True}, [])
    broker.brokers = TimeoutError("no answer")
    eventually(lambda: caplog.messages)
    broker.brokers = {1: False}
    eventually(lambda: answers[-1] == {"1": False})
    registered.close()
    silent = "the cluster doesn't say which brokers are registered; the last answer holds: no answer"
    assert (caplog.messages, registered.answered) == ([silent], True)


@pytest.mark.parametrize(("grace", "is_logged"), [("1ms", True), ("1h", False)])
def test_silence_is_logged_after_startup_grace(caplog: pytest.LogCaptureFixture, grace: str, is_logged: bool) -> None:
    asked = []

    class Silent(FakeBroker):
        def registered(self) -> dict[int, bool]:
            asked.append(1)
            raise TimeoutError("no answer")

    registered = RegisteredBrokers(context(Silent(), startup__grace=grace), lambda brokers: None)
    eventually(lambda: len(asked) > 5)
    registered.close()
    assert bool(caplog.records) is is_logged
