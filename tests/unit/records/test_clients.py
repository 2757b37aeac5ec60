"""Records of usage and of shares: wrong ones are refused, and what is too much is cut."""

import copy
import json
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from quotahost.model import QuotaType
from quotahost.records import shares as shares_codec
from quotahost.records import usage as usage_codec
from quotahost.records.codec import Refused
from quotahost.records.shares import partition_of, partitions_for
from quotahost.records.usage import MAX_BYTES, MAX_CLIENTS, MAX_NAMES, Usage, Used
from tests.unit.records.examples import EXAMPLES

NOW = datetime(2026, 11, 21, 21, 30, 0, 123000, UTC)
BOTH = pytest.mark.parametrize(("codec", "kind"), [(usage_codec, "usage"), (shares_codec, "shares")])


def example(kind: str, **fields: Any) -> dict[str, Any]:
    content = copy.deepcopy(EXAMPLES[kind])
    for name, value in fields.items():
        target = content["clients"][0] if name in {*content["clients"][0], "bytes"} else content
        target[name] = value
    return {name: value for name, value in content.items() if value is not ...}


@BOTH
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"version": ...}, "version"),
        ({"user": "u" * MAX_NAMES}, "size"),
        *((each, "schema") for each in (
            {"brokerId": 1}, {"clients": ...}, {"clients": None}, {"quota": 0}, {"quota": -1}, {"quota": "3M"},
            {"quota": float("nan")}, {"quota": 1e400}, {"quotaType": "REQUEST"}, {"quotaType": None}, {"user": None},
            {"clientId": 7})),
    ],
)  # fmt: skip
def test_what_is_no_record_of_its_kind_is_refused_with_its_reason(
    codec: ModuleType, kind: str, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        codec.decode(b"1", json.dumps(example(kind, **fields)).encode())
    assert refused.value.reason == reason
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *(("usage", {name: value}) for name, value in (
            ("rate", -1), ("demand", -0.1), ("demand", "all"), ("bytes", -1), ("bytes", "1"),
            ("usageAt", "1649336400"), ("usageAt", 5))),
        *(("shares", {name: value}) for name, value in (
            ("share", -1), ("share", None), ("run", -1), ("sequence", 1.5), ("run", "7"))),
    ],
)  # fmt: skip
def test_a_wrong_number_or_time_is_refused(kind: str, fields: dict[str, Any]) -> None:
    codec = usage_codec if kind == "usage" else shares_codec
    with pytest.raises(Refused, match=next(iter(fields))):
        codec.decode(b"1", json.dumps(example(kind, **fields)).encode())


@BOTH
def test_a_client_twice_and_too_many_clients_are_refused(codec: ModuleType, kind: str) -> None:
    record = example(kind)
    (one,) = record["clients"]
    for clients in ([one, one], [one | {"user": f"u{n}"} for n in range(MAX_CLIENTS + 1)]):
        with pytest.raises(Refused) as refused:
            codec.decode(b"1", json.dumps(record | {"clients": clients}).encode())
        assert refused.value.reason == "schema"


def test_of_more_clients_than_a_record_holds_the_first_are_written() -> None:
    many = tuple(Used(f"u{n}", "app", QuotaType.FETCH, 1.0, None, 2.0) for n in range(MAX_CLIENTS + 5))
    assert usage_codec.decode(b"1", usage_codec.encode(Usage("1", NOW, many))).clients == many[:MAX_CLIENTS]
    long = tuple(Used(f"{n}" + "\0" * (MAX_NAMES // 3), "", QuotaType.FETCH, 1.0, None, 2.0) for n in range(9))
    value = usage_codec.encode(Usage("1", NOW, long))
    assert len(value) < MAX_BYTES
    assert usage_codec.decode(b"1", value).clients == long[:2]


def test_what_could_not_be_read_is_not_written() -> None:
    for used in (
        Used("\ud800", "", QuotaType.FETCH, 1.0, None, 2.0),
        Used("u", "", QuotaType.FETCH, float("nan"), None, 2.0),
    ):
        with pytest.raises(Refused):
            usage_codec.encode(Usage("1", NOW, (used,)))


@pytest.mark.parametrize("brokers", [1, 3, 100, 500, 1000])
@pytest.mark.parametrize("step", [1, 2, 10, 100, 1000])
def test_the_records_of_many_brokers_lie_in_partitions_of_their_own(brokers: int, step: int) -> None:
    partitions = partitions_for(brokers)
    found = [partition_of(str(n * step), partitions) for n in range(1, brokers + 1)]
    assert all(0 <= each < partitions for each in found)
    assert len(set(found)) == brokers
    assert {partition_of(str(n * step), 1) for n in range(brokers)} == {0}, "of an old topic everybody reads the one"
    assert partition_of("no-number", partitions) == 0
