"""What others ask of this broker: who uses what, for top and for JMX, and how long topics are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import unquote

import pytest

from harness.system.waiting import eventually
from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.broker_status import answer_question, lines, parse, uses
from quotahost.broker.host.messages import ConfigRow, Gauge
from quotahost.cli.explain.answer import parse as parse_answer
from quotahost.model import Client, ClientUsage, QuotaType, State, VolumeUse
from quotahost.model.use import LimitedBy
from quotahost.settings.broker import Settings
from tests.fakes import dump
from tests.fakes.client_use import use
from tests.fakes.shim import FakeShim

STATE = {"factor": 0.5, "limit_factor": 0.7, "cause": "volume ü\\"}


def shim() -> FakeShim:
    made = FakeShim()
    made.answers["uses"] = dump.uses(*(dump.row(client_id=str(number)) for number in range(3)), **STATE)
    made.answers["state"] = dump.state(**STATE)
    return made


def broker() -> HostBroker:
    return HostBroker(shim(), Settings())


@pytest.mark.parametrize(("most", "rows", "left_out"), [(0, 0, False), (2, 2, True), (3, 3, False), (9, 3, False)])
def test_a_look_has_as_many_clients_as_wanted_and_tells_if_more_are_there(most: int, rows: int, left_out: bool) -> None:
    look = broker().look(most)
    assert [each.client_id for each in look.uses] == ["0", "1", "2"][:rows]
    assert look.left_out == left_out


@pytest.mark.parametrize(
    ("shadow", "told"), [([], "FETCH, PRODUCE x0.42: busy"), (["factor"], "FETCH, PRODUCE x0.42 (in shadow): busy")]
)
def test_a_look_tells_the_factors_of_single_quota_types(shadow: list[str], told: str) -> None:
    asked = shim()
    types = {"PRODUCE": [0.42, "busy"], "FETCH": [0.42, "busy"]}
    asked.answers["state"] = dump.state(cause="volume", type_factors=types, shadow=shadow)
    assert HostBroker(asked, Settings()).look(0).cause == told
    asked.answers["state"] = dump.state(factor=0.5, cause="volume", type_factors=types, shadow=shadow)
    assert HostBroker(asked, Settings()).look(0).cause == f"volume; {told}"


def test_a_look_has_the_budgets_of_storage_the_smallest_factors_first() -> None:
    asked = shim()
    asked.numbers = [
        Gauge("Budget", name, attribute, value)
        for name, numbers in {"idle": (10.0, 1.0, 1.0), "full": (10.0, 10.0, 0.0), "near": (10.0, 9.0, 1.0)}.items()
        for attribute, value in zip(("Bytes", "Used", "Factor"), numbers, strict=True)
    ]
    volumes = HostBroker(asked, Settings()).look(0).volumes
    assert [(use.budget, use.capacity, use.consumed, use.factor) for use in volumes] == [
        ("full", 10.0, 10.0, 0.0), ("near", 10.0, 9.0, 1.0), ("idle", 10.0, 1.0, 1.0),
    ]  # fmt: skip


def test_a_look_tells_the_state_and_who_is_marked() -> None:
    asked = shim()
    asked.answers["marks"] = [["alice", "app", "orders"]]
    look = HostBroker(asked, Settings()).look(0)
    assert (look.where, look.state, look.factor, look.limit_factor) == ("broker 1 (pid 42)", State.THROTTLE, 0.5, 0.7)
    assert (look.cause, look.fence, look.affected) == ("volume ü\\", "open", -1)
    assert look.marks == [(Client("alice", "app"), "orders")]
    assert [words[0] for words in asked.questions] == ["state", "gauges", "marks"], "no clients cost Java nothing"


def test_a_look_has_the_volumes_of_which_the_sizes_are_known() -> None:
    asked = shim()
    asked.numbers = [
        Gauge("Volume", "/dev/sdb", "Capacity", 1000.0), Gauge("Volume", "/dev/sdb", "Consumed", 600.0),
        Gauge("VolumeLimits", "/dev/sdb", "Hard", 900.0), Gauge("VolumeLimits", "/dev/sdb", "Soft", 500.0),
        Gauge("VolumeLimits", "/dev/sdb", "Factor", 0.5), Gauge("VolumeLimits", "/gone", "Factor", 0.5),
        Gauge("Volume", "/dev/sda", "Capacity", 10.0), Gauge("Volume", "/dev/sda", "Consumed", 1.0),
        Gauge("Factor", "", "Value", 0.5),
    ]  # fmt: skip
    volumes = HostBroker(asked, Settings()).look(0).volumes
    assert volumes == [VolumeUse("/dev/sda", 10, 1), VolumeUse("/dev/sdb", 1000, 600, 500, 900, 0.5)]


def test_usage_is_of_those_whom_kafka_measures_alone_with_the_limit_that_they_have() -> None:
    asked = shim()
    slowed = dump.row(user="a%3Ab", slowed_limit=5e5, slowed_rate=20.0, slowed_delay_ms=250.0, mark=dump.MARK)
    others = dump.row(type="FETCH", base=None, limit=None, delay_ms=None), dump.row(exempt=True), dump.row(rate=None)
    asked.answers["usage"] = dump.usage(slowed, *others, factor=0.5, affected_topics=1)
    assert HostBroker(asked, Settings()).usage(9) == [
        ClientUsage("a:b", "app", QuotaType.PRODUCE, 1020.0, 5e5, 0.25, 0.1),
        ClientUsage("alice", "app", QuotaType.FETCH, 1000.0, None, 0.0, 0.1),
    ]


def test_what_is_explained_to_those_who_watch_is_what_explain_reads() -> None:
    asked, client = shim(), Client("alice", "\u20ac\udc80")
    asked.answers["client"] = dump.client(dump.row(client_id="\u20ac"))
    (line,) = HostBroker(asked, Settings()).explain(client)
    assert line.isascii()
    assert parse_answer(json.loads(line), client).quotas[0].client_id == "\u20ac"


def test_an_answer_of_another_version_is_refused_by_name() -> None:
    without = {name: value for name, value in dump.state().items() if name != "clients_max"}
    with pytest.raises(ValueError, match="clients_max"):
        parse({"state": without, "uses": []})


def test_a_row_has_the_columns_in_javas_order() -> None:
    assert lines([use("ä b\n", "")]) == "%C3%A4%20b%0A  client PRODUCE 900.0 1000.0 500.0 0.9 250.0 factor"
    assert lines([use("\ud800")]).startswith("%3F ")
    unlimited = lines([use(quota=None, limit=None, bound=LimitedBy.NOTHING)])
    assert unlimited.split(" ")[5:8] == ["NaN", "NaN", "NaN"]


def test_a_row_tells_what_binds_or_would_bind() -> None:
    rows = [
        use(bound=LimitedBy.TOPIC_QUOTA),
        use(bound=LimitedBy.NOTHING, shadow="factor"),
        use(bound=LimitedBy.NOTHING),
    ]
    words = [unquote(line.split(" ")[-1]) for line in lines(rows).splitlines()]
    assert words == ["topic quota", "shadow: factor", "nothing"]


def test_those_with_a_rate_or_held_back_are_shown() -> None:
    asked = shim()
    asked.answers["uses"] = dump.uses(
        dump.row(user="idle", rate=0.0, passes=True), dump.row(user="fenced", rate=None, turned_back="fence"),
        dump.row(user="delayed", rate=0.0, delay_ms=1.0), dump.row(user="busy", rate=0.1),
        fence={"closed": True}, factor=0.0,
    )  # fmt: skip
    assert [use.user for use in uses(asked.ask, 9)] == ["fenced", "delayed", "busy"]


@pytest.mark.parametrize(("most", "rows"), [(2, 2), (0, 0)])
def test_java_gets_so_many_rows_as_metrics_clients_says(most: int, rows: int) -> None:
    asked = shim()
    asked.answers["uses"] = dump.uses(*[dump.row()] * most)
    answer_question(asked, "7", ["clients-table", str(most)])
    eventually(lambda: "7" in asked.answered)
    assert len(asked.answered["7"].splitlines()) == rows


class Silent(FakeShim):
    """A broker that gets no answer of the cluster."""

    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        raise ConnectionError("TimeoutException: no answer")


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("retention", "a"), "TimeoutException: no answer"), (("what", "else"), "unknown question: what else")],
)
def test_a_question_without_an_answer_has_an_error(words: tuple[str, ...], problem: str) -> None:
    shim = Silent()
    answer_question(shim, "5", words)
    eventually(lambda: "5" in shim.answered)
    assert json.loads(shim.answered["5"]) == {"error": problem}
