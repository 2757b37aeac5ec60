"""The volumes of a cluster as a list, and one of them opened."""

from __future__ import annotations

from quotahost.cli.top.cluster import listed, opened
from quotahost.cli.top.live import Question
from quotahost.model import Client, QuotaType, State, VolumeUse
from quotahost.model.volume_use import MeasuredVolume, TopicUse
from quotahost.model.volumes import Volume
from tests.unit.cli.top.uses import look, use

GB = 10**9


def test_the_volume_with_the_least_left_comes_first_and_nine_can_be_opened() -> None:
    half = [VolumeUse(f"/dev/sd{letter}", 100 * GB, 50 * GB) for letter in "abcdefghi"]
    slowed = VolumeUse("/dev/sdb", 100 * GB, 45 * GB, 40 * GB, 60 * GB, 0.25)
    fuller = VolumeUse("/dev/sdc", 100 * GB, 80 * GB, 90 * GB, 95 * GB, 1.0)
    found = listed({"10": look(volumes=half), "2": look(volumes=[slowed, fuller]), "3": look()})
    assert found.volumes[:3] == [
        Question(None, "/dev/sdb", "2"),
        Question(None, "/dev/sdc", "2"),
        Question(None, "/dev/sda", "10"),
    ]
    assert len(found.volumes) == 9
    assert " ".join(found.lines[1].split()) == "1 2 /dev/sdb 100 GB 45.0 GB 40.0 GB 60.0 GB 0.25"
    assert found.lines[10].split()[:3] == ["10", "/dev/sdh", "100"], "without a key"
    assert found.lines[-1].startswith("unknown of broker 3:")


def test_without_any_volume_it_says_why() -> None:
    last = listed({"1": look(), "2": look()}).lines[-1]
    assert last.startswith("unknown of brokers 1, 2: nothing watches volumes there")


def test_an_opened_volume_shows_its_limits_what_fills_it_and_who_writes() -> None:
    slowed = VolumeUse("/dev/sdb", 1000, 450, 400, 600, 0.25)
    seen = look(
        [use(rate=5e6), use("bob", "web"), use("carol", quota_type=QuotaType.FETCH), use("", "", scope="newcomers")],
        volumes=[slowed], marks=[(Client("bob", "web"), "orders")], state=State.THROTTLE, factor=0.25,
    )  # fmt: skip
    topics = [TopicUse("orders", 300, 20.0), TopicUse("(3 others)", 50, 0.0)]
    text = opened("2", seen, MeasuredVolume(Volume("", "/dev/sdb", 1000, 450), ["/data/1"], 2.0, 10.0, topics))
    assert text[0].split() == ["broker", "2"]
    assert any(line.split()[:4] == ["hard", "600", "B,", "150"] for line in text)
    assert any(line.split() == ["orders", "300", "B", "66.7%", "+20", "B/s"] for line in text)
    written = [line.split() for line in text if line.startswith("user ")]
    assert written == [
        ["user", "alice,", "client-id", "app", "5.00", "MB/s"],
        ["user", "bob,", "client-id", "web", "1.00", "MB/s", "orders"],
    ]
