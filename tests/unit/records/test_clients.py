"""Tests records of clients: shares, usage and looks; wrong records are refused, and too long ones are cut.

tests/pipeline/test_shares.py tests which records of usage brokers and the pipeline refuse.
"""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from quotahost.model import Client, QuotaType, VolumeUse
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.records import look as look_codec
from quotahost.records import shares as shares_codec
from quotahost.records import usage as usage_codec
from quotahost.records.codec import Refused
from quotahost.records.look import MAX_USES, MAX_VOLUMES, Answered, of
from quotahost.records.shares import partition_of, partitions_for
from quotahost.records.usage import MAX_BYTES, MAX_CLIENTS, MAX_NAMES, Usage, Used
from tests.unit.cli.top.uses import look, use
from tests.unit.records.examples import EXAMPLES

# ---- usage and shares ----

NOW = datetime(2026, 11, 21, 21, 30, 0, 123000, UTC)
ONE = {"user": "alice", "clientId": "app", "quotaType": "PRODUCE", "share": 5.0, "quota": 5.0}


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("version", [None, 2], "version"), ("user", ["u" * MAX_NAMES], "size"), ("user", [None], "schema"),
        ("brokerId", [1], "schema"), ("clientId", [7], "schema"), ("quotaType", ["REQUEST", None], "schema"),
        ("quota", [0, -1, "3M", float("nan"), 1e400], "schema"), ("share", [-1, None], "schema"),
        ("clients", [None, [ONE, ONE], [ONE | {"user": f"u{n}"} for n in range(MAX_CLIENTS + 1)]], "schema"),
        ("run", [-1, "7"], "schema"), ("sequence", [1.5], "schema"),
    ],
)  # fmt: skip
def test_what_is_no_record_of_shares_is_refused(name: str, values: list[Any], reason: str) -> None:
    for value in values:
        content = copy.deepcopy(EXAMPLES["shares"])
        (content["clients"][0] if name in content["clients"][0] else content)[name] = value
        with pytest.raises(Refused, match=None if reason == "size" else name) as refused:
            shares_codec.decode(b"1", json.dumps(content).encode())
        assert (refused.value.reason, str(refused.value).isprintable()) == (reason, True)


def test_of_more_clients_than_a_record_holds_the_first_are_written() -> None:
    many = tuple(Used(f"u{n}", "app", QuotaType.FETCH, 1.0, None, 2.0) for n in range(MAX_CLIENTS + 5))
    assert usage_codec.decode(b"1", usage_codec.encode(Usage("1", NOW, many))).clients == many[:MAX_CLIENTS]
    long = tuple(Used(f"{n}" + "\0" * (MAX_NAMES // 3), "", QuotaType.FETCH, 1.0, None, 2.0) for n in range(9))
    value = usage_codec.encode(Usage("1", NOW, long))
    assert len(value) < MAX_BYTES
    assert usage_codec.decode(b"1", value).clients == long[:2]


@pytest.mark.parametrize("brokers", [1, 3, 100, 500, 1000])
@pytest.mark.parametrize("step", [1, 2, 10, 100, 1000])
def test_the_records_of_many_brokers_lie_in_partitions_of_their_own(brokers: int, step: int) -> None:
    partitions = partitions_for(brokers)
    found = [partition_of(str(n * step), partitions) for n in range(1, brokers + 1)]
    assert all(0 <= each < partitions for each in found)
    assert len(set(found)) == brokers
    assert {partition_of(str(n * step), 1) for n in range(brokers)} == {0}, "an old topic has one partition for all"
    assert partition_of("no-number", partitions) == 0


# ---- looks ----


def test_a_budget_of_javas_largest_long_fits_a_look_though_gauges_are_doubles() -> None:
    size = float(2**63 - 1)  # 2**63
    budget = VolumeUse("budget x", size, 0.0, None, size, 1.0)  # as broker_status makes it
    (found,) = look_codec.decode(b"1", look_codec.encode(of("1", "c", look(volumes=[budget])))).look.volumes
    assert found.capacity == 2**63 - 1


def test_whatever_the_clients_are_called_and_use_their_look_fits_a_record() -> None:
    many = [use("\u20ac" * 30, str(number)) for number in range(3 * MAX_USES)]  # six bytes each in JSON
    answers = [Answered("w", ("x" * 1_000_000,)), *[Answered(str(n), ("\u20ac" * 9_000,)) for n in range(9)]]
    seen = look(
        many, cause="\u20ac" * 10**6, volumes=[VolumeUse(f"/{n}", 10**15, n) for n in range(1000)],
        marks=[(Client("\u20ac" * n, "a"), "t") for n in range(1000)],
    )  # fmt: skip
    full = MeasuredVolume("v", 1, 1, ["/d"], 2.0, 1.0, [TopicUse("t" * 255, 1, 1.0)] * 21, ["/d/" + "t" * 255] * 5_000)
    value = look_codec.encode(of("1", "c", seen, answers, [full] * 9))
    assert len(value) <= look_codec.MAX_BYTES
    found = look_codec.decode(b"1", value)
    assert 900 < len(found.uses) <= MAX_USES
    assert (found.look.left_out, of("1", "c", look([use()] * 9)).left_out) == (True, False)
    assert of("1", "c", look([use()], left_out=True)).left_out
    assert [each.watcher for each in found.answers] == ["0", "1"]
    assert (len(found.volumes), len(found.marks), len(found.opened)) == (MAX_VOLUMES, 10, 2)
    assert found.look.where == "broker 1"
    huge = value.replace(b'"used":1,', b'"used":1' + 400 * b"0" + b",", 1)
    with pytest.raises(Refused, match="used: Input should be less than"):  # no float could show this size
        look_codec.decode(b"1", huge)
