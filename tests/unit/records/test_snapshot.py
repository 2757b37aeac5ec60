"""Tests snapshots: records are as in the proposal, and wrong records are refused with a reason."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from quotahost.model import Limit, LimitType, Volume
from quotahost.records.codec import Refused
from quotahost.records.fields import exact_for, rounded
from quotahost.records.snapshot import MAX_BYTES, MAX_VOLUMES, Snapshot, decode, encode
from tests.unit.records.examples import EXAMPLES
from tests.unit.records.strategies import limits, sizes

LONG = 2**63 - 1
NOW = datetime(2022, 4, 7, 13, 0, tzinfo=UTC)


def written(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it is in JSON: percentages are whole numbers, or bytes of their volume."""

    def of(limit: Limit | None, capacity: int) -> Limit | None:
        return limit and exact_for(limit, capacity)

    volumes = tuple(replace(v, soft=of(v.soft, v.capacity), hard=of(v.hard, v.capacity)) for v in snapshot.volumes)
    soft, hard = (limit and rounded(limit) for limit in (snapshot.soft, snapshot.hard))
    return replace(snapshot, volumes=volumes, soft=soft, hard=hard)


def record(**fields: Any) -> dict[str, Any]:
    """The example of the proposal's schema, with fields replaced; None leaves a field out."""
    content = EXAMPLES["snapshot"] | fields
    return {name: value for name, value in content.items() if value is not None}


def volume(**fields: Any) -> dict[str, Any]:
    return {"volumeName": "/dev/sdd", "capacity": 100, "consumed": 10} | fields


def refusal(value: object) -> Refused:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(Refused) as caught:
        decode(b"0", raw)
    return caught.value


# ---- written records -------------------------------------------------------------------------------


@pytest.mark.proves("proposal-035.percent")
@given(limits, sizes)
def test_rounding_for_json_never_lets_a_volume_fill_further(limit: Limit, capacity: int) -> None:
    assert isinstance(rounded(limit).level, int)
    assert rounded(limit).consumed_at(capacity) <= limit.consumed_at(capacity)


@pytest.mark.proves("proposal-035.volume-limits", "proposal-035.limit-types")
def test_the_record_reads_as_in_the_proposal() -> None:
    percent, free = Limit(LimitType.MIN_FREE_PERCENTAGE, 4.5), Limit(LimitType.MIN_FREE_BYTES, 1_000_000)
    disk = Volume("0", "/dev/sdd", 107374182400, 10737418240)
    other = Volume("0", "/dev/sde", 10, 1, soft=Limit(LimitType.CONSUMED_BYTES, 7))

    own = {"type": "MinFreeBytes", "level": 4_831_838_208}  # 4.5 % of the volume
    assert json.loads(encode(Snapshot("0", NOW, (disk, other), percent, free, ("/data/3",)))) == {
        "schemaVersion": 1, "brokerId": "0", "snapshotAt": "2022-04-07T13:00:00Z",
        "hardLimit": {"type": "MinFreeBytes", "level": 1_000_000},
        "softLimit": {"type": "MinFreePercentage", "level": 5},
        "volumes": [
            {"volumeName": "/dev/sdd", "capacity": 107374182400, "consumed": 10737418240, "softLimit": own},
            {"volumeName": "/dev/sde", "capacity": 10, "consumed": 1,
             "softLimit": {"type": "ConsumedBytes", "level": 7}},
        ],
        "offlineLogDirs": ["/data/3"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("volumes", "reason"),
    [
        ([Volume("0", "\udcff", 1, 1)], "json"),
        ([Volume("0", "a", 1, 1, soft=Limit(LimitType.MIN_FREE_BYTES, LONG + 1))], "limit"),
        ([Volume("0", f"{n:1024}", 1, 1) for n in range(300)], "size"),
    ],
)
def test_what_no_reader_would_take_is_not_written(volumes: list[Volume], reason: str) -> None:
    with pytest.raises(Refused) as caught:
        encode(Snapshot("0", NOW, tuple(volumes)))
    assert caught.value.reason == reason


# ---- read records ----------------------------------------------------------------------------------


@pytest.mark.proves("proposal-035.snapshot")
def test_the_proposals_example_is_read() -> None:
    free, percent = Limit(LimitType.MIN_FREE_BYTES, 1_000_000), Limit(LimitType.MIN_FREE_PERCENTAGE, 5)
    disk = Volume("0", "/dev/sdd", 107374182400, 10737418240, soft=percent, hard=free)
    assert decode(b"0", json.dumps(record()).encode()) == Snapshot("0", NOW, (disk,), percent, free)


def test_the_largest_record_allowed_is_read() -> None:
    raw = json.dumps(record(volumes=[volume(volumeName=str(n)) for n in range(MAX_VOLUMES)])).encode()
    assert len(decode(b"0", raw.ljust(MAX_BYTES)).volumes) == MAX_VOLUMES
    assert refusal(raw.ljust(MAX_BYTES + 1)).reason == "size"


# ---- topics ----------------------------------------------------------------------------------------


def test_topics_are_written_only_where_they_are_known_and_null_stands_for_all_too() -> None:
    made = [Volume("0", "/a", 1, 1, topics=frozenset(("y", "x"))), Volume("0", "/b", 1, 1), Volume("0", "/c", 1, 1)]
    value = json.loads(encode(Snapshot("0", NOW, (*made[:2], replace(made[2], topics=frozenset())))))
    assert [each.get("topics") for each in value["volumes"]] == [["x", "y"], None, []]
    assert "topics" not in value["volumes"][1]
    value["volumes"][0]["topics"] = None
    assert [each.topics for each in decode(b"0", json.dumps(value).encode()).volumes] == [None, None, frozenset()]


@pytest.mark.parametrize(("length", "fits"), [(100, True), (200, False), (249, False)])
def test_topics_that_do_not_fit_are_left_out_and_the_volumes_are_published(length: int, fits: bool) -> None:
    listed = frozenset(f"{n:04}".ljust(length, "x") for n in range(1000))
    volumes = (Volume("0", "/a", 1, 1, topics=listed), Volume("0", "/b", 1, 1, topics=listed))
    value = encode(Snapshot("0", NOW, volumes))
    assert len(value) <= MAX_BYTES
    assert [each.topics for each in decode(b"0", value).volumes] == [listed if fits else None] * 2


# ---- refused records -------------------------------------------------------------------------------

PERCENT = "MinFreePercentage"
NO_TOPICS: tuple[Any, ...] = (
    "orders", {}, [None], [["a"]], [""], ["a", "t" * 250], ["a\n"], ["a b"], [*map(str, range(1001))],
)  # fmt: skip


#: Fields that break the form, and the reason for the refusal.
WRONG: list[tuple[Any, str]] = [
    *((each, "schema") for each in (
        {"brokerId": 0}, {"brokerId": None}, {"brokerId": "0" * 1025}, {"snapshotAt": None},
        {"snapshotAt": 1649336400}, {"hardLimit": None}, {"softLimit": None}, {"softLimit": []}, {"volumes": None},
        {"volumes": {}}, {"volumes": [5]}, {"offlineLogDirs": [1]}, {"ageMs": -1}, {"ageMs": 5.5}, {"ageMs": "5"},
        {"ageMs": LONG + 1}, {"volumes": [volume(volumeName=5)]}, {"volumes": [volume(consumed=int("9" * 2000))]},
        {"volumes": [volume(consumed=float("nan"))]},
        *({"volumes": [volume(capacity=size)]} for size in (100.5, True, "100", -1, LONG + 1)),
        *({"volumes": [volume(topics=listed)]} for listed in NO_TOPICS))),
    *((each, "limit") for each in (
        {"softLimit": {"type": "MinFreeSpace", "level": 1}}, {"softLimit": {"type": None, "level": None}},
        {"softLimit": {"type": "MinFreeBytes"}}, {"hardLimit": {"level": 5}},
        *({"hardLimit": {"type": "MinFreeBytes", "level": level}} for level in (-1, LONG + 1, "1")),
        *({"hardLimit": {"type": PERCENT, "level": level}} for level in (101, 5.5)),
        {"volumes": [volume(softLimit={"type": PERCENT, "level": 101})]},
        {"volumes": [volume(hardLimit={"type": "x", "level": 1})]})),
    ({"volumes": [volume(), volume()]}, "volumes"),
    ({"volumes": [volume(volumeName=str(n)) for n in range(MAX_VOLUMES + 1)]}, "volumes"),
]  # fmt: skip


@pytest.mark.proves("proposal-035.schema-integers")
@pytest.mark.parametrize(("fields", "reason"), WRONG)
def test_what_breaks_the_form_is_refused_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    assert refusal(record(**fields)).reason == reason


@pytest.mark.proves("proposal-035.exact-integers")
def test_an_integer_with_a_fraction_is_refused_where_doubles_are_not_exact() -> None:
    wide = json.dumps(record(volumes=[volume(capacity=2**53 + 1)]))
    assert decode(b"0", wide.encode()).volumes[0].capacity == 2**53 + 1
    assert refusal(wide.replace(str(2**53 + 1), f"{2**53 + 1}.0").encode()).reason == "schema"


def test_a_refusal_names_the_place_and_shows_little_of_what_was_given() -> None:
    text = str(refusal(record(volumes=[volume(), volume(volumeName="b", capacity="x\n\x1b" * 10_000)])))
    assert text.startswith("volumes.1.capacity: ")
    assert (r"not 'x\n\x1b" in text, text.isprintable(), len(text) < 200) == (True, True, True)
