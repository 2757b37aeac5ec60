"""Tests ``quotahost explain --volume``: sizes and growth from log directories, cuts of retention, and the output."""

import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quotahost.broker.disks.topics import OTHERS, largest, list_files, topic_of, written
from quotahost.cli.explain import retention
from quotahost.cli.explain.retention import Cut, Retention, cut
from quotahost.cli.explain.volume import cut_row, stalled_uploads, topic_rows, volume_facts
from quotahost.model import State, VolumeUse
from quotahost.model.use import MeasuredVolume
from tests.unit.cli.top.uses import look

NOW = 1_000_000.0  # seconds since 1970


#: A broker in THROTTLE, whose disk /dev/sdb is above its soft limit.
LOOK = look(
    volumes=[VolumeUse("/dev/sdb", 1000, 600, 500, 900, 0.5)], state=State.THROTTLE, factor=0.5,
    cause="broker 2, volume \\d",
)  # fmt: skip


def partition(directory: Path, topic: str, *ages: float, size: int = 4096) -> Path:
    """A partition's directory with segments whose latest records have these ages (s); the last segment is active."""
    folder = directory / topic
    folder.mkdir(parents=True)
    for number, age in enumerate(ages):
        base = folder / f"{number:020}"
        base.with_name(base.name + ".log").write_bytes(b"x" * size)
        entry = struct.pack(">qi", int((NOW - age) * 1000), 7)
        base.with_name(base.name + ".timeindex").write_bytes(struct.pack(">qi", 1, 1) + entry)
    return folder


def measured(**changes: object) -> MeasuredVolume:
    given: dict[str, Any] = {"directories": ["/data/1"], "seconds": 5.0, "growth": 10.0, "topics": []}
    return MeasuredVolume("/dev/sdb", 1000, 600, **(given | changes))


def test_a_directory_belongs_to_a_topic() -> None:
    known = {"orders-0": "orders", "my-topic.v1-12": "my-topic.v1", f"t-0.{'a' * 32}-future": "t"}
    others = {f"t-0.{'a' * 32}-delete": "t (being deleted)", f"t-0.{'a' * 32}-stray": "t (stray)"}
    for name, topic in (known | others | {"cleaner-offset-checkpoint": OTHERS}).items():
        assert topic_of(name) == (topic, name in known)


def test_sizes_are_those_on_the_disk_and_growth_is_what_is_appended(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    partition(one, "a-0", 50, size=8192)
    partition(two, "a-1", 50, size=8192)
    gone = partition(one, "b-0", 50)
    cleaned = partition(two, "d-0", 50, size=9000) / f"{0:020}.log"
    with (one / "a-0" / "sparse.index").open("wb") as index:
        os.truncate(index.fileno(), 10 << 20)  # Kafka preallocates an index
    before = list_files(map(str, [one, two, tmp_path / "none"]))
    assert before.used["a"] < 1 << 20
    assert before.used["a"] > before.used["b"] > 0
    assert before.unread == []
    with (two / "a-1" / f"{0:020}.log").open("ab") as log:
        log.write(b"y" * 500)
    partition(two, "c-0", 1, size=300)
    cleaned.write_bytes(b"z" * 10)
    for file in gone.iterdir():
        file.unlink()
    now = list_files(map(str, [one, two]))
    now.at = before.at + 2.0
    assert written(before, now) == {"a": 250, "c": 150, "d": 0}


@pytest.mark.parametrize(
    ("kept", "ages", "size", "freed"),
    [
        # With 100 s, the first is older than a half, the first four are older than a quarter; the last is active.
        pytest.param(Retention(seconds=100), ((80, 40, 30, 26, 90), (20, 80, 0)), 4096, [1, 4],
                     id="the oldest closed segments go first, and a segment behind a younger one stays"),
        pytest.param(Retention(), ((80, 40, 30, 26, 90), (20, 80, 0)), 4096, [1, 4],
                     id="without a time limit, the age of the oldest closed segment counts"),
        pytest.param(Retention(size=6000), ((1, 1, 1, 1),), 1000, [1, 2],
                     id="half (3,000 bytes) or a quarter (1,500) of the retention stays, in whole segments"),
    ],
)  # fmt: skip
def test_half_and_a_quarter_of_a_retention_free(
    tmp_path: Path, kept: Retention, ages: tuple[tuple[int, ...], ...], size: int, freed: list[int]
) -> None:
    for number, each in enumerate(ages):
        partition(tmp_path, f"a-{number}", *each, size=size)
    (one,) = {segment.used for segment in retention.segments(str(tmp_path / "a-0"))}
    assert cut("a", kept, list_files([str(tmp_path)]).partitions["a"], NOW).freed == [each * one for each in freed]


@pytest.mark.parametrize(
    ("kept", "overdue"),
    [
        (Retention(seconds=100, tiered=True), 2),  # 701 s and 800 s; Kafka may find the others within 600 s
        (Retention(size=1000, tiered=True), 3),  # older than 600 s
        (Retention(seconds=100), 0),  # Kafka waits for no upload
    ],
)
def test_segments_that_outlive_their_retention_wait_for_upload(tmp_path: Path, kept: Retention, overdue: int) -> None:
    folder = partition(tmp_path, "a-0", 800, 701, 699, 599, 0, size=1000)
    one = retention.segments(str(folder))[0].used
    told = cut("a", kept, [str(folder)], NOW)
    assert told.overdue == overdue * one
    assert ("a: " in stalled_uploads([told])) == (overdue > 0)


TIERED = {"retention.ms": "5000", "remote.storage.enable": "true"}


@pytest.mark.parametrize(
    ("properties", "kept"),
    [
        ({"retention.ms": "5000", "retention.bytes": "-1", "cleanup.policy": "delete"}, Retention(5.0)),
        ({"retention.ms": "-1", "retention.bytes": "7"}, Retention(None, 7)),
        ({"cleanup.policy": "compact", "retention.ms": "5000"}, Retention(5.0, None, compacted=True)),
        ({"cleanup.policy": "compact,delete", "retention.ms": "5000"}, Retention(5.0)),
        (TIERED | {"local.retention.ms": "-2"}, Retention(5.0, tiered=True)),
        (TIERED | {"local.retention.ms": "1000"}, Retention(1.0, tiered=True)),
        (TIERED | {"local.retention.ms": "-2", "local.retention.bytes": "7"}, Retention(size=7, tiered=True)),
        ({"retention.ms": "5000", "local.retention.ms": "1000", "local.retention.bytes": "7"}, Retention(5.0)),
        ({}, Retention()),
    ],
)
def test_the_retention_on_this_disk_counts(properties: dict[str, str], kept: Retention) -> None:
    assert Retention.of(properties) == kept


@pytest.mark.parametrize("made", [os.mkfifo, Path.touch, partial(os.symlink, "../b-0")], ids=["pipe", "none", "link"])
def test_a_segment_without_an_index_of_its_own_counts_by_its_file(tmp_path: Path, made: Callable[[Path], None]) -> None:
    folder, index = partition(tmp_path, "a-0", 80, 0), tmp_path / "a-0" / f"{0:020}.timeindex"
    index.rename(tmp_path / "b-0")
    made(index)
    os.utime(folder / f"{0:020}.log", (5, 5))
    assert [segment.latest for segment in retention.segments(str(folder))[:-1]] == [5]


def test_the_facts_say_when_it_is_full() -> None:
    told = dict(volume_facts(LOOK, measured()))
    assert told["consumed"] == "600 B (60.0 %)"
    assert told["soft"] == "500 B, breached by 100 B"
    assert told["hard"] == "900 B, 300 B left"
    assert told["growth"] == "+10 B/s over 5 s; at this growth its hard limit in 30 s, full in 40 s"
    in_force = "THROTTLE with the factor 0.5 is in force (broker 2, volume \\d)"
    assert told["state"] == f"this volume's factor is 0.5; {in_force}"
    assert dict(volume_facts(LOOK, measured(growth=-3.0)))["growth"] == "-3 B/s over 5 s"
    unknown = dict(volume_facts(look(), measured()))
    assert unknown["limits"].startswith("unknown: no plugin reports them")
    assert "soft" not in unknown


def test_the_largest_and_the_quickest_topics_are_shown_and_the_rest_together() -> None:
    used = {f"t{number}": 10 + number for number in range(13)}
    rows = [list(row) for row in topic_rows(measured(topics=largest(used, {"t0": 5.0})))]
    assert [row[0] for row in rows[:2]] == ["t12", "t11"]
    assert ["t0", "10 B", "1.7 %", "+5 B/s"] in rows
    assert rows[-2][0] == "(2 others)"
    assert rows[-1][:2] == ["(not Kafka's, or the file system's own)", "392 B"]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        (Cut("t", Retention(7200.0), 7200.0, [10, 20]), ("2 h", "10 B (1 h)", "20 B (30 min)")),
        (Cut("t", Retention(None, 1000), 1000, [1, 2]), ("1.00 kB a partition", "1 B (500 B)", "2 B (250 B)")),
        (Cut("t", Retention(5.0, compacted=True), 5.0, [0, 0]), ("compacted: no retention applies", "", "")),
        (Cut("t", Retention(), None, [0, 0]), ("for ever", "0 B", "0 B")),
        (Cut("t", Retention(), 7200.0, [1, 2]),
         ("for ever; its oldest closed segment is 2 h old", "1 B (1 h)", "2 B (30 min)")),
    ],
)  # fmt: skip
def test_a_cut_is_shown_with_what_would_be_kept(given: Cut, row: tuple[str, ...]) -> None:
    assert cut_row(given) == ("t", *row)
