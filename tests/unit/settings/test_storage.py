"""Tests limits of volumes: texts that an operator may write, limits of 0, and which volume an override applies to."""

from functools import partial

import pytest

from quotahost.api import DiskState
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.model import Limit, LimitType, Volume
from quotahost.settings.declaration import SettingsError
from quotahost.settings.storage import Override, match
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context, monitor, settings
from tests.unit.broker.plugins.test_policies import policy, used
from tests.unit.settings.properties import read, shown

NAME = "static.storage.overrides"
bytes_used, bytes_free, percent_free = (partial(Limit, kind) for kind in LimitType)


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("/dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2 hard=5T soft.min-free-bytes=9",
         (Override("/dev/sdb", percent_free(10), bytes_free(10**10)),
          Override("/data/2", bytes_free(9), bytes_used(5 * 10**12)))),
        (" /a  soft=1Ki ;; ", (Override("/a", soft=bytes_used(1024)),)),
        ("/my disk/x hard=5", (Override("/my disk/x", hard=bytes_used(5)),)),
        ("/a hard.min-free-percent=5%", (Override("/a", hard=percent_free(5)),)),
        ("", ()),
    ],
)  # fmt: skip
def test_each_entry_is_a_volume_and_its_limits(text: str, overrides: tuple[Override, ...]) -> None:
    assert read({NAME: text}).static.storage.overrides == overrides


def test_an_override_alone_makes_the_broker_guard_its_disks_and_is_shown_in_full() -> None:
    given = read({NAME: "/a hard=5T; /b soft.min-free-percent=0.1"})
    assert (given.factor_source, given.policy) == ("local", "limits")
    assert shown(given)[NAME] == "/a: hard ConsumedBytes 5,000,000,000,000 bytes; /b: soft MinFreePercentage 10 %"


def test_a_volume_goes_by_its_name_or_any_log_directory_on_it() -> None:
    one, two, three = (Override(name, hard=bytes_used(5)) for name in ("/dev/sda", "/data/2/", "/data/3"))
    matched = match([one, two, three], ["/dev/sda", "/dev/sdb"], {"/data/2": "/dev/sdb", "/data/4": "/dev/sda"})
    assert matched.limits == {"/dev/sda": (None, bytes_used(5)), "/dev/sdb": (None, bytes_used(5))}
    assert matched.unmatched == ("/data/3",)
    unknown = match([Override("/data/1", hard=bytes_used(5))], [], {"/data/1": ""})
    assert (unknown.limits, unknown.unmatched) == ({}, ()), "the directory's volume isn't known now"


def test_two_entries_for_one_volume_are_joined_and_the_first_that_sets_a_side_applies() -> None:
    one = Override("/dev/sda", hard=bytes_used(5))
    two = Override("/data/1", soft=bytes_used(3), hard=bytes_used(9))
    matched = match([one, two], ["/dev/sda"], {"/data/1": "/dev/sda"})
    assert matched.limits == {"/dev/sda": (bytes_used(3), bytes_used(5))}
    (conflict,) = matched.conflicts
    assert conflict == "/data/1 is the volume /dev/sda, whose hard limit was set before: ConsumedBytes 5 bytes"


def test_a_name_of_no_volume_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    one, other = (Volume("1", name, 100, 50) for name in ("/dev/sda", "/dev/sdb"))
    places = (("/data/1", "/dev/sda"), ("/data/2", "/dev/sdb"))
    both, gone = DiskState((one, other), (), places), DiskState((one,), ("/data/2: gone",), places[:1])
    broker = FakeBroker({"log.dirs": "/data/1,/data/2"})
    for state, overrides in ((both, "/data/7 hard=5"), (gone, "/data/2 hard=5; /dev/sdb soft=4")):
        monkeypatch.setattr(disk_monitor, "read_disks", lambda *_, state=state: state)
        disks = monitor(context(broker, volumes__period="30s", static__storage__overrides=overrides))
        disks.look()
        disks.close()
    assert caplog.messages == ["static.storage.overrides: /data/7 is neither a volume nor a log directory here"]


SHARE, BYTES = "static__storage__{}__min_free_percent", "static__storage__{}__min_free_bytes"


@pytest.mark.proves("proposal-035.properties-new", "proposal-035.consumed-nothing")
@pytest.mark.parametrize("side", ["soft", "hard"])
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("static__storage__{}", "0", r"static\.storage\.\w+=0: must be at least one byte, or none"),
        *((SHARE, text, r"write 0\.05 or 5%") for text in ("-0.1", "-1", "1.1", "101%")),
        (BYTES, "0.05", r"min-free-bytes=0\.05"),  # the operator meant a share
    ],
)
def test_0_bytes_may_mean_always_or_never_and_a_share_is_0_to_1(side: str, name: str, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings(**{name.format(side): text})


@pytest.mark.proves("proposal-035.properties-new")
@pytest.mark.parametrize(("name", "text"), [(SHARE, "0"), (SHARE, "0.0"), (SHARE, "0%"), (BYTES, "0"), (BYTES, "0.0")])
def test_a_limit_of_nothing_free_stops_or_slows_nobody_before_nothing_is_free(name: str, text: str) -> None:
    storage = settings(**{name.format(side): text for side in ("soft", "hard")}).static.storage
    judge = policy(Limit(LimitType.MIN_FREE_PERCENTAGE, 50), storage.hard_limit)
    assert [judge.quota_factor(used(consumed, 20)) for consumed in (10, 15, 19, 20, 21)] == [1, 0.5, 0.1, 0, 0]
    assert [policy(storage.soft_limit).quota_factor(used(consumed, 20)) for consumed in (0, 19, 20)] == [1, 1, 0]
    kind = name.rpartition("__")[2].replace("_", "-")
    override = f"/d soft.{kind}={text} hard.{kind}={text}"
    (made,) = settings(static__storage__overrides=override).static.storage.overrides
    assert (made.soft, made.hard) == (storage.soft_limit, storage.hard_limit), "an override may leave nothing free, too"
