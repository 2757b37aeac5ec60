"""The rows of JMX's table of clients, as Java asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest

from quotahost.background import start_daemon
from quotahost.broker.host.broker_status import ClientTable, lines
from quotahost.model import QuotaType
from quotahost.model.client_use import Bound, ClientUse


def use(user: str = "alice", client_id: str = "app", **changes: Any) -> ClientUse:
    facts: dict[str, Any] = {
        "quota_type": QuotaType.PRODUCE, "user": user, "client_id": client_id, "scope": "client", "rate": 900.0,
        "quota": 1000.0, "limit": 500.0, "delay_ms": 250.0, "bound": Bound.FACTOR, "idle": 0.0,
    }  # fmt: skip
    return ClientUse(**(facts | changes))


def test_a_row_has_the_columns_in_javas_order() -> None:
    assert lines([use("ä b\n", "")]) == "%C3%A4%20b%0A  client PRODUCE 900.0 1000.0 500.0 0.9 250.0 factor"
    assert lines([use("\ud800")]).startswith("%3F ")


def test_what_is_unlimited_has_no_number() -> None:
    fields = lines([use(quota=None, limit=None, bound=Bound.NOTHING)]).split(" ")
    assert fields[5:8] == ["NaN", "NaN", "NaN"]


def test_a_row_tells_what_binds_or_would_bind() -> None:
    rows = [use(bound=Bound.TOPIC_QUOTA), use(bound=Bound.NOTHING, shadow="factor"), use(bound=Bound.NOTHING)]
    words = [unquote(line.split(" ")[-1]) for line in lines(rows).splitlines()]
    assert words == ["topic quota", "shadow: factor", "nothing"]


def test_those_with_a_rate_or_held_back_are_shown() -> None:
    idle = use("idle", rate=0.0, delay_ms=0.0, bound=Bound.NOTHING)
    fenced = use("fenced", rate=0.0, delay_ms=0.0, bound=Bound.FENCE)
    assert [line.split(" ")[0] for line in lines([idle, fenced, use("busy")]).splitlines()] == ["fenced", "busy"]


def at_once(name: str, run: Callable[[], None]) -> threading.Thread:
    thread = start_daemon(name, run)
    thread.join(10)
    return thread


def test_java_gets_so_many_rows_as_metrics_clients_says() -> None:
    answers: list[tuple[str, str]] = []
    table = ClientTable(lambda most: [use()] * most, lambda *answer: answers.append(answer), at_once)
    table.answer("7", 2)
    table.answer("8", 0)
    assert [(ticket, len(text.splitlines())) for ticket, text in answers] == [("7", 2), ("8", 0)]


def test_one_table_is_made_at_a_time() -> None:
    answers: list[tuple[str, str]] = []
    going, go = threading.Event(), threading.Event()

    def uses(_: int) -> list[ClientUse]:
        going.set()
        assert go.wait(10)
        return [use()]

    table = ClientTable(uses, lambda *answer: answers.append(answer), start_daemon)
    table.answer("1", 5)
    assert going.wait(10)
    table.answer("2", 5)
    go.set()
    assert table._thread
    table._thread.join(10)
    assert [ticket for ticket, _ in answers] == ["1"]


def test_what_cannot_be_read_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: int) -> list[ClientUse]:
        raise ConnectionError("no JMX")

    answers: list[tuple[str, str]] = []
    ClientTable(fails, lambda *answer: answers.append(answer), at_once).answer("1", 5)
    assert answers == []
    assert "can't be made (no JMX)" in caplog.text
