"""Names that clients, topics and other brokers choose command no terminal and forge no line."""

import io
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.broker.host.volume_evaluation import Judged, smallest
from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, OfflineDir
from quotahost.records.snapshot import Snapshot
from quotahost.text import EscapingFormatter
from tests.fakes.plugin_context import Clock, patience

#: A terminal's command, a forged line, a reversed text, a beep, half a character.
HOSTILE = ["\x1b[31m", "a\r\nOPEN -> PAUSE: forged", "\u202egpj.exe", "\x07", "\x9b31m", "\ud800"]
AT = datetime(2026, 11, 21, tzinfo=UTC)


def cause_of_a_factor(name: str) -> Sequence[str]:
    return [smallest([Judged(Volume(name, name, 1, 1), 0.5)]).cause]


def unknown_by_snapshots(name: str) -> Sequence[str]:
    clock = Clock()
    roster = Roster(clock, Clock(AT.timestamp()))
    roster.register({name: False})
    clock.now += 1000
    never = roster.view("", patience()).unknown
    roster.take(Snapshot(name, AT, ()), True, 60)
    clock.now += 1000
    return [*never, *roster.view("", patience()).unknown]


def unknown_by_cluster_volumes(name: str) -> Sequence[str]:
    clock = Clock()
    state = ClusterState("1", clock)
    state.register({"1": False, name: False, "x": False})
    lists: dict[str, Any] = {"stale_brokers": (name,), "missing_brokers": ("x",)}
    record = ClusterRecord("c", 1, 1, AT, reporting=1, offline_dirs=(OfflineDir("x", name),), **lists)
    for _ in range(2):
        clock.now += 1000
        view = state.view(record, patience())
    return view.unknown


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize(
    ("told_by", "lines"), [(cause_of_a_factor, 1), (unknown_by_snapshots, 2), (unknown_by_cluster_volumes, 3)]
)
def test_in_the_causes_that_operators_read(told_by: Callable[[str], Sequence[str]], lines: int, name: str) -> None:
    told = told_by(name)
    assert len(told) == lines
    for text in told:
        assert name not in text
        assert len(text.splitlines()) == 1
        assert text.isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.proves("faults.names")
def test_in_any_line_of_a_log_that_forgot_to_escape_it(name: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(EscapingFormatter("%(levelname)s %(message)s"))
    try:
        raise ValueError(name)
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "it is %s", (name,), (ValueError, error, None))
        handler.emit(record)
    assert all(char.isprintable() or char in "\n\t" for char in stream.getvalue())
    assert all(line.startswith("  ") for line in stream.getvalue().splitlines()[1:]), "none looks like the log's own"
