"""What plugins see of the broker in one look, of the dump that the Java half answers with."""

from __future__ import annotations

import json

import pytest

from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.looks import parse, uses
from quotahost.broker.host.messages import Gauge
from quotahost.cli.explain.answer import parse as parse_answer
from quotahost.model import Client, ClientUsage, QuotaType, State, VolumeUse
from quotahost.settings.broker import Settings
from tests.fakes import dump
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
def test_a_look_has_as_many_clients_as_are_wanted_and_tells_if_there_are_more(
    most: int, rows: int, left_out: bool
) -> None:
    look = broker().look(most)
    assert [each.client_id for each in look.uses] == ["0", "1", "2"][:rows]
    assert look.left_out == left_out


def test_a_look_without_clients_costs_java_nothing() -> None:
    asked = shim()
    assert uses(asked.ask, 0) == []
    HostBroker(asked, Settings()).look(0)
    assert [each[0] for each in asked.questions] == ["state", "gauges", "marks"]


def test_a_look_tells_the_state() -> None:
    look = broker().look(0)
    assert (look.where, look.state, look.factor, look.limit_factor) == ("broker 1 (pid 42)", State.THROTTLE, 0.5, 0.7)
    assert (look.cause, look.fence, look.affected) == ("volume ü\\", "open", -1)


def test_a_look_tells_who_is_marked() -> None:
    asked = shim()
    asked.answers["marks"] = [["alice", "app", "orders"]]
    assert HostBroker(asked, Settings()).look(0).marks == [(Client("alice", "app"), "orders")]


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
