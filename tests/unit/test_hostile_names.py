"""Names that clients, topics and other brokers choose command no terminal and forge no line."""

import io
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotahost.broker.host.volume_evaluation import evaluated
from quotahost.broker.plugins.factor_sources.cluster_record import ClusterState
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.cli.lab.curves import Bucket, Curve, Name, Question, Report, in_utc
from quotahost.cli.lab.pages import report_page
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, OfflineDir
from quotahost.records.snapshot import Snapshot
from quotahost.text import EscapingFormatter
from tests.fakes.plugin_context import Clock, context, patience

#: A terminal's command, a forged line, a reversed text, a beep, half a character.
HOSTILE = ["\x1b[31m", "a\r\nOPEN -> PAUSE: forged", "\u202egpj.exe", "\x07", "\x9b31m", "\ud800"]
AT = datetime(2026, 11, 21, tzinfo=UTC)

hostile = pytest.mark.parametrize("name", HOSTILE, ids=ascii)


def is_plain(text: str, name: str, lines: int = 1) -> bool:
    """Whether nothing in the text commands a terminal, and it has no more lines than it should have."""
    assert name not in text
    assert len(text.splitlines()) <= lines, text
    return all(char.isprintable() or char == "\n" for char in text)


@hostile
def test_in_the_cause_of_a_factor(name: str) -> None:
    class Half:
        def quota_factor(self, volume: Volume) -> float:
            return 0.5

    factor, *_ = evaluated(Half(), [Volume(name, name, 1, 1)], "1", lambda volume, factor: None)
    assert is_plain(factor.cause, name)


@hostile
def test_in_what_the_source_snapshots_says_of_a_broker(name: str) -> None:
    clock = Clock()
    roster = Roster(clock, Clock(AT.timestamp()))
    roster.register({name: False})
    clock.now += 1000
    assert is_plain(roster.view("", patience()).unknown[0], name)
    roster.take(Snapshot(name, AT, ()), True, 60)
    clock.now += 1000
    assert is_plain(roster.view("", patience()).unknown[0], name)


@hostile
def test_in_what_the_source_cluster_volumes_says_of_a_broker(name: str) -> None:
    clock = Clock()
    state = ClusterState("1", clock)
    state.register({"1": False, name: False, "x": False})
    clock.now += 1000
    fields: dict[str, Any] = {
        "reporting": 1, "stale_brokers": (name,), "missing_brokers": ("x",), "offline_dirs": (OfflineDir("x", name),),
    }  # fmt: skip
    state.view(ClusterRecord("c", 1, 1, AT, **fields), patience())
    clock.now += 1000
    view = state.view(ClusterRecord("c", 1, 1, AT, **fields), patience())
    assert len(view.unknown) == 3
    assert all(is_plain(text, name) for text in view.unknown)


@hostile
def test_in_the_log_of_a_policy(name: str, caplog: pytest.LogCaptureFixture) -> None:
    policy = Limits(context(static__storage__soft="10", static__storage__hard__min_free_bytes="95"))
    policy.quota_factor(Volume(name, name, 100, 1))
    formatter = EscapingFormatter("%(message)s")
    (warning, *_) = caplog.records
    assert is_plain(formatter.format(warning), name)


@hostile
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


@hostile
def test_in_the_report(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    buckets = tuple(Bucket(AT.timestamp() + hour * 3600, hour, hour, hour, 100, 50, 90) for hour in range(3))
    curve = Curve(Name(name, name, name), buckets, 1 / 3600)
    since, until = in_utc(buckets[0].at), in_utc(buckets[-1].at)
    report = Report(Question("/history"), since, until, timedelta(hours=1), known=1, curves=(curve,))
    assert is_plain(report.title(curve), name)
    text = report_page(report)
    assert name not in text
    assert all(char.isprintable() or char == "\n" for char in text)
