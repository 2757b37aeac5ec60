"""Records: they read as they are described, and what is too much for one, or for a reader's memory, is left out."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from quotahost.model import Client, Limit, LimitType, QuotaType, Volume, VolumeUse
from quotahost.model.budgets import Budget
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.records import budgets, cluster_volumes, look, quotas, usage
from quotahost.records.budgets import MAX_BUDGETS, LatestBudgets
from quotahost.records.cluster_volumes import ClusterRecord, VolumeTrend
from quotahost.records.codec import Refused
from quotahost.records.fields import rounded
from quotahost.records.look import MAX_USES, Answered, of
from quotahost.records.quotas import ClusterQuota, Entity, LatestQuotas, entity_of, key_of
from quotahost.records.shares import partition_of, partitions_for
from quotahost.records.snapshot import MAX_BYTES, Snapshot, decode, encode
from quotahost.records.usage import MAX_CLIENTS, MAX_NAMES, Usage, Used
from tests.unit.cli.top import uses
from tests.unit.cli.top.uses import use
from tests.unit.records.examples import SNAPSHOT_SCHEMA, example
from tests.unit.records.strategies import entities, limits, sizes

NOW = datetime(2022, 4, 7, 13, 0, tzinfo=UTC)
USED, FREE, PERCENT = LimitType

# ---- snapshots ----


@pytest.mark.proves("proposal-035.percent")
@given(limits, sizes)
def test_rounding_for_json_never_lets_a_volume_fill_further(limit: Limit, capacity: int) -> None:
    assert isinstance(rounded(limit).level, int)
    assert rounded(limit).consumed_at(capacity) <= limit.consumed_at(capacity)


def test_what_is_not_known_is_left_out_and_no_limit_is_an_empty_one() -> None:
    content = json.loads(encode(Snapshot("0", NOW, (), cluster="c-1", age_ms=250)))
    assert (content["clusterId"], content["ageMs"]) == ("c-1", 250)
    content = json.loads(encode(Snapshot("0", NOW, ())))
    assert not {"clusterId", "ageMs"} & set(content)
    assert (content["softLimit"], content["hardLimit"]) == ({}, {})


@pytest.mark.proves("proposal-035.volume-limits")
def test_the_record_reads_as_in_the_proposal() -> None:
    disk = Volume("0", "/dev/sdd", 107374182400, 10737418240, topics=frozenset("yx"))
    other = Volume("0", "/dev/sde", 10, 1, soft=Limit(USED, 7))
    limits = Limit(PERCENT, 4.5), Limit(FREE, 1_000_000)
    own = {"type": "MinFreeBytes", "level": 4_831_838_208}  # 4.5 % of it
    assert json.loads(encode(Snapshot("0", NOW, (disk, other), *limits, ("/data/3",)))) == {
        "schemaVersion": 1, "brokerId": "0", "snapshotAt": "2022-04-07T13:00:00Z",
        "hardLimit": {"type": "MinFreeBytes", "level": 1_000_000},
        "softLimit": {"type": "MinFreePercentage", "level": 5},
        "volumes": [
            {"volumeName": "/dev/sdd", "capacity": 107374182400, "consumed": 10737418240, "softLimit": own,
             "topics": ["x", "y"]},
            {"volumeName": "/dev/sde", "capacity": 10, "consumed": 1,
             "softLimit": {"type": "ConsumedBytes", "level": 7}},
        ],
        "offlineLogDirs": ["/data/3"],
    }  # fmt: skip


@pytest.mark.proves("proposal-035.snapshot")
def test_the_proposals_example_is_read() -> None:
    free, percent = Limit(FREE, 1_000_000), Limit(PERCENT, 5)
    disk = Volume("0", "/dev/sdd", 107374182400, 10737418240, soft=percent, hard=free)
    assert decode(*example("snapshot")) == Snapshot("0", NOW, (disk,), percent, free)


@pytest.mark.parametrize(
    ("volumes", "reason"),
    [
        ([Volume("0", "\udcff", 1, 1)], "json"),
        ([Volume("0", "a", 1, 1, soft=Limit(FREE, 2**63))], "limit"),
        ([Volume("0", f"{n:1024}", 1, 1) for n in range(300)], "size"),
    ],
)
def test_what_no_reader_would_take_is_not_written(volumes: list[Volume], reason: str) -> None:
    with pytest.raises(Refused) as caught:
        encode(Snapshot("0", NOW, tuple(volumes)))
    assert caught.value.reason == reason


@pytest.mark.parametrize(("length", "fits"), [(100, True), (200, False), (249, False)])
def test_topics_that_do_not_fit_are_left_out_and_the_volumes_are_published(length: int, fits: bool) -> None:
    listed = frozenset(f"{n:04}".ljust(length, "x") for n in range(1000))
    volumes = (Volume("0", "/a", 1, 1, topics=listed), Volume("0", "/b", 1, 1, topics=listed))
    value = encode(Snapshot("0", NOW, volumes))
    assert len(value) <= MAX_BYTES
    assert [each.topics for each in decode(b"0", value).volumes] == [listed if fits else None] * 2


def test_topics_that_are_null_stand_for_all() -> None:
    volume = {"volumeName": "/a", "capacity": 1, "consumed": 1, "topics": None}
    assert [each.topics for each in decode(*example("snapshot", volumes=[volume])).volumes] == [None]


@pytest.mark.proves("proposal-035.schema-integers")
def test_an_integer_may_have_a_fraction_of_zeros_or_an_exponent_as_draft_7_has_it() -> None:
    volume = {"volumeName": "/dev/sdd", "capacity": 2**53 - 1, "consumed": 20}
    soft = {"type": "MinFreePercentage", "level": 5}
    key, plain = example("snapshot", schemaVersion=1, ageMs=5, volumes=[volume], softLimit=soft)
    text = plain.decode()
    for number, form in (("5", "5.0"), ("9007199254740991", "9007199254740991.0"), ("20", "2e1"), ("1", "1.00")):
        text = text.replace(f": {number},", f": {form},").replace(f": {number}}}", f": {form}}}")
    assert text.count(".0") == 4
    jsonschema.Draft7Validator(SNAPSHOT_SCHEMA).validate(json.loads(text))
    found = decode(key, text.encode())
    assert found == decode(key, plain)
    assert type(found.volumes[0].capacity) is int


@pytest.mark.proves("proposal-035.exact-integers")
def test_an_integer_with_a_fraction_is_refused_where_doubles_are_not_exact() -> None:
    key, wide = example("snapshot", volumes=[{"volumeName": "/a", "capacity": 2**53 + 1, "consumed": 1}])
    assert decode(key, wide).volumes[0].capacity == 2**53 + 1
    with pytest.raises(Refused, match=r"volumes\.0\.capacity"):
        decode(key, wide.replace(b"%d" % (2**53 + 1), b"%d.0" % (2**53 + 1)))


@pytest.mark.parametrize(
    "odd",
    ['"a"', "[1]", '[["a"]]', '[["a",-1]]', '[["a","1"]]', '{"a":1}', "[[1,1]]", '[["a",1],["a",2]]', '[["a b",1]]'],
)
def test_a_list_of_budgets_that_is_wrong_counts_as_none_and_the_rest_of_the_snapshot_is_taken(odd: str) -> None:
    good = encode(Snapshot("0", NOW, (), budgets=(("a", 3),)))
    assert decode(b"0", good).budgets == (("a", 3),)
    assert decode(b"0", good.replace(b'[["a",3]]', odd.encode())).budgets is None


# ---- the pipeline's records ----

DISK = Volume("2", "/d", 100, 97, hard=Limit(FREE, 5))
RECORD = ClusterRecord("c", 7, 42, NOW, reporting=1, volume_count=1, fullest=(VolumeTrend(DISK, -12.5, None),))
ABOVE = replace(DISK, soft=Limit(FREE, 50))


def test_what_has_no_value_may_be_null_or_left_out() -> None:
    schema: Any = cluster_volumes.CODEC.schema()
    content = json.loads(cluster_volumes.encode(RECORD))
    disk = {"brokerId": "2", "volumeName": "/d", "capacity": 100, "consumed": 97}

    def read(value: dict[str, Any]) -> ClusterRecord:
        jsonschema.validate(value, schema)
        return cluster_volumes.decode(b"c", json.dumps(value).encode())

    bare = {name: value for name, value in content.items() if name in schema["required"]}
    assert read(bare) == read(bare | dict.fromkeys(content.keys() - bare.keys()))
    assert read(bare).volumes == (DISK,)
    assert read(bare).affected is None, "a record without topics, as earlier pipelines wrote it, is for all"
    nobody = read(content | {"reporting": 0, "fullest": []} | dict.fromkeys(("volumeCount", "offline", "capacity")))
    assert (nobody.volume_count, nobody.offline, nobody.capacity, nobody.consumed) == (0, 0, 0, 0)
    for none in ({}, {"x": 1}):
        fullest = [disk | {"softLimit": none, "hardLimit": none}]
        assert read(content | {"fullest": fullest}).volumes == (replace(DISK, hard=None),)
    later = cluster_volumes.decode(b"c", json.dumps(content | {"worst": {"MinFreeTea": [5]}}).encode())
    assert later.worst[FREE] == (), "a later version's"


def test_listed_volumes_above_their_published_limits_have_the_clusters_topics_and_others_are_for_all() -> None:
    """The union has nothing of the others, whose readers may judge them by limits of their own."""
    filled = tuple(map(VolumeTrend, (ABOVE, replace(ABOVE, consumed=50), Volume("3", "/d", 100, 100))))
    given = replace(RECORD, fullest=filled, silent=filled, worst={USED: filled}, affected=frozenset("ab"))
    found = cluster_volumes.decode(b"c", cluster_volumes.encode(given))
    for listed in (found.fullest, found.silent, found.worst[USED]):
        assert [each.volume.topics for each in listed] == [frozenset("ab"), None, None]


def test_topics_that_do_not_fit_into_the_record_are_left_out() -> None:
    topics = frozenset(f"{n:03}".ljust(249, "x") for n in range(1000))
    # Names that take twelve bytes a character in JSON, as many as the record lists.
    brokers = tuple(f"{n:04}" + "\U0001f600" * 1020 for n in range(64))
    given = replace(RECORD, stale_brokers=brokers, missing_brokers=brokers[:9], affected=topics)
    found = cluster_volumes.decode(b"c", cluster_volumes.encode(given))
    assert (found.affected, found.stale_brokers) == (None, brokers)
    fewer = replace(given, missing_brokers=())
    assert cluster_volumes.decode(b"c", cluster_volumes.encode(fewer)).affected == topics


@pytest.mark.parametrize("brokers", [1, 3, 100, 500, 1000])
@pytest.mark.parametrize("step", [1, 2, 10, 100, 1000])
def test_shares_for_many_brokers_lie_in_partitions_of_their_own(brokers: int, step: int) -> None:
    partitions = partitions_for(brokers)
    found = [partition_of(str(n * step), partitions) for n in range(1, brokers + 1)]
    assert all(0 <= each < partitions for each in found)
    assert len(set(found)) == brokers
    assert {partition_of(str(n * step), 1) for n in range(brokers)} == {0}, "of an old topic everybody reads the one"
    assert partition_of("no-number", partitions) == 0


# ---- usage, and looks ----


def test_of_more_clients_than_a_record_holds_the_first_are_written() -> None:
    many = tuple(Used(f"u{n}", "app", QuotaType.FETCH, 1.0, None, 2.0) for n in range(MAX_CLIENTS + 5))
    assert usage.decode(b"1", usage.encode(Usage("1", NOW, many))).clients == many[:MAX_CLIENTS]
    long = tuple(Used(f"{n}" + "\0" * (MAX_NAMES // 3), "", QuotaType.FETCH, 1.0, None, 2.0) for n in range(9))
    value = usage.encode(Usage("1", NOW, long))
    assert len(value) < usage.MAX_BYTES
    assert usage.decode(b"1", value).clients == long[:2]


def test_whatever_the_clients_are_called_and_use_their_look_fits_a_record() -> None:
    # Each character becomes six in JSON; a number that JSON lacks, and half of a surrogate pair, spoil nothing.
    many = [use("\u20ac" * 30, f"{number}\ud800") for number in range(3 * MAX_USES)]
    odd = [use("nan", rate=math.nan), use("inf", quota=math.inf)]
    answers = [Answered("w", ("x" * 1_000_000,)), *[Answered(str(n), ("\u20ac" * 9_000,)) for n in range(9)]]
    seen = uses.look(
        [*odd, *many], cause="\u20ac" * 10**6,
        volumes=[VolumeUse(f"\ud800{n}" * n, 10**15, n if n % 2 else math.inf) for n in range(1000)],
        marks=[(Client("\u20ac" * n, "\ud800"), "t") for n in range(1000)],
    )  # fmt: skip
    long = "\ud800" * 5_000
    full = MeasuredVolume("v", 1, 1, [long] * 99, 2.0, 1.0, [TopicUse(long, 1, 1.0)] * 99, [long] * 99)
    value = look.encode(of("1", "c", seen, answers, [full] * 9))
    assert len(value) <= look.MAX_BYTES
    found = look.decode(b"1", value)
    assert 900 < len(found.uses) <= MAX_USES
    assert found.look.left_out
    assert found.uses[0].client_id == "0?"
    assert [each.watcher for each in found.answers] == ["0", "1"]
    assert (len(found.volumes) > 40, len(found.marks), len(found.opened)) == (True, 10, 2)
    assert found.look.where == "broker 1"


def test_a_look_tells_whether_its_record_has_room_for_all() -> None:
    few, long = [use()] * 9, [use("u" * 100, "c" * 1_000)] * 100
    assert [of("1", "c", uses.look(each)).left_out for each in (few, long)] == [False, True]
    assert of("1", "c", uses.look(few, left_out=True)).left_out


# ---- cluster-wide quotas and budgets, which share a topic ----


@given(entities, entities)
def test_an_entity_has_one_key_and_no_two_share_one(one: Entity, other: Entity) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)
    assert entity_of(key_of(one)) == one


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        (Entity("alice", None), b"users/alice"),
        (Entity(None, "app"), b"clients/app"),
        (Entity("alice", "app"), b"users/alice/clients/app"),
        (Entity("alice", ""), b"users/alice/clients/"),
        (quotas.DEFAULT, b"users/<default>"),
        (Entity("<default>", None), b"users/%3Cdefault%3E"),
        (Entity("CN=a,O=b", "x*~"), b"users/CN%3Da%2CO%3Db/clients/x%2A%7E"),
    ],
)
def test_the_key_names_the_entity_as_kafkas_config_paths_do(entity: Entity, key: bytes) -> None:
    assert key_of(entity) == key


@pytest.mark.parametrize("entity", [Entity("", None), Entity(None, ""), Entity("\ud800", None), Entity("é" * 1025, "")])
def test_an_entity_that_no_key_can_name_is_refused(entity: Entity) -> None:
    with pytest.raises(Refused):
        key_of(entity)


def test_a_rate_may_be_null_or_unlimited_and_a_version_a_whole_float() -> None:
    value = b'{"version":1.0,"produce":null,"fetch":"unlimited"}'
    assert quotas.decode(b"users/alice", value) == ClusterQuota(None, math.inf)


ORDERS = Budget("orders.*", ("orders.*", "payments"), 500 * 10**9, replicas=True)


def test_there_are_so_many_budgets_and_no_more() -> None:
    latest = LatestBudgets()
    value = budgets.encode(ORDERS)
    for number in range(MAX_BUDGETS):
        latest.take(b"budgets/%d" % number, value)
    with pytest.raises(Refused, match="more than 1,000"):
        latest.take(b"budgets/more", value)
    latest.take(b"budgets/7", budgets.encode(replace(ORDERS, bytes=6)))
    assert latest.by_name["7"].bytes == 6


@pytest.mark.parametrize("between", [(), (None,), (quotas.encode(ClusterQuota(6.0)), None)])
def test_a_refused_record_leaves_what_was_there_before_it_and_nothing_that_a_tombstone_removed(
    between: tuple[bytes | None, ...],
) -> None:
    latest, alice = LatestQuotas(), Entity("alice", None)
    latest.take(key_of(alice), quotas.encode(ClusterQuota(5.0)))
    latest.begins()  # the place in the topic was lost
    for value in (*between, b"no JSON"):
        with nullcontext() if value != b"no JSON" else pytest.raises(Refused):
            latest.record(key_of(alice), value, live=False)
        assert latest.by_name == {alice: ClusterQuota(5.0)}, "until all is read, what held before holds"
    latest.caught_up()
    assert latest.by_name == ({} if between else {alice: ClusterQuota(5.0)})


def test_a_record_reads_as_it_was_written_and_readers_leave_the_others_records_alone() -> None:
    all_quotas, all_budgets, alice = LatestQuotas(), LatestBudgets(), Entity("alice", None)
    for latest in (all_quotas, all_budgets):
        latest.take(budgets.key_of(ORDERS.name), budgets.encode(ORDERS))
        latest.take(key_of(alice), quotas.encode(ClusterQuota(5.0)))
    assert (list(all_quotas.by_name), all_budgets.by_name) == ([alice], {"orders.*": ORDERS})
    all_budgets.take(budgets.key_of(ORDERS.name), None)
    assert all_budgets.by_name == {}
