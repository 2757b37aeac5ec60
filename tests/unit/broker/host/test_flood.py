"""Whatever fails again and again costs the broker's log a bounded number of lines, and is counted in full."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from quotahost.broker.host.logs import LINES_OF_CAUSE, RateLimit
from quotahost.broker.host.plugins import Guard
from quotahost.model import Client, Quota, QuotaType
from tests.fakes.shim import FakeShim
from tests.fakes.suppliers import Supplier, resolved

MANY = 10_000


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shim() -> FakeShim:
    return FakeShim()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(shim: FakeShim, clock: Clock) -> Guard:
    return Guard(shim, clock)


def fail() -> None:
    raise ValueError("broken")


def in_turns() -> Iterator[bool]:
    while True:
        yield True
        yield False


def test_a_task_that_fails_at_each_period_is_logged_once(
    guard: Guard, shim: FakeShim, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(MANY):
        guard.call("task", "run()", "it runs again", fail)
        clock.now += 0.5
    assert len(shim.failed) == MANY
    assert len(caplog.records) == 1


def test_a_task_that_fails_and_works_in_turns_is_logged_once_a_minute_with_what_was_left_out(
    guard: Guard, shim: FakeShim, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for fails, _ in zip(in_turns(), range(MANY), strict=False):
        guard.call("task", "run()", "it runs again", fail if fails else lambda: None)
        clock.now += 0.1
    minutes = MANY * 0.1 / 60
    assert len(shim.failed) == MANY / 2
    # One line that it fails, and one that it works again.
    assert 2 <= len(caplog.records) <= 2 * (minutes + 1)
    left_out = [int(count) for count in re.findall(r"\((\d+) of them before this one\)", caplog.text)]
    assert len(left_out) > 10
    assert all(count in (299, 300) for count in left_out)


def test_ever_new_types_of_errors_are_logged_a_few_times_a_minute(
    guard: Guard, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(MANY):
        guard.report("plugin", "read()", "the last stays", type(f"Error{number}", (Exception,), {})())
        clock.now += 0.001
    assert 1 < len(caplog.records) <= 5


def test_a_second_type_of_error_is_news(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    for error in (ValueError("a"), KeyError("b"), ValueError("c")):
        guard.report("plugin", "read()", "the last stays", error)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError, KeyError]


def test_a_supplier_that_fails_for_each_of_many_clients_is_logged_once(
    guard: Guard, shim: FakeShim, caplog: pytest.LogCaptureFixture
) -> None:
    def quota(client: Client, quota_type: QuotaType) -> Quota | None:
        raise ValueError(client.client_id)

    for number in range(MANY // 100):
        clients = [Client("alice", f"app-{number}-{each}") for each in range(100)]
        resolved({"broken": Supplier(quota)}, clients, guard=guard)
    assert len(shim.failed) >= MANY
    assert len(caplog.records) == 1


def test_what_a_plugin_logs_for_each_client_is_held_back_and_counted() -> None:
    clock = Clock()
    limit = RateLimit(clock)

    def record(client: int) -> logging.LogRecord:
        return logging.LogRecord("plugin", logging.WARNING, "", 0, "client %d is unknown", (client,), None)

    passed = sum(limit.filter(record(client)) for client in range(MANY))
    assert passed == LINES_OF_CAUSE
    clock.now += 60
    last = record(1)
    assert limit.filter(last)
    assert last.getMessage() == f"client 1 is unknown ({MANY - passed} such lines were left out before)"
