"""A volume that somebody opens is measured on a thread of its own, and told once it is."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.system.waiting import eventually
from quotahost.api import DiskState
from quotahost.broker.plugins.tasks.broker_status import OpenedVolumes
from quotahost.model.use import MeasuredVolume
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context


class FakeDisks:
    """Knows where the volumes are."""

    cluster_id = ""

    def __init__(self, **places: Path) -> None:
        self.places = tuple((str(place), name) for name, place in places.items())

    def latest(self) -> tuple[float, DiskState]:
        return 0.0, DiskState((), (), self.places)


def volumes(
    disks: FakeDisks, sleep: Callable[[float], object], clock: Callable[[], float] = time.monotonic
) -> OpenedVolumes:
    given = context(FakeBroker(), "publish-usage")
    given.open_disks = lambda: disks  # type: ignore[assignment, return-value]
    return OpenedVolumes(given, sleep, clock)


def topic(directory: Path, size: int = 8192) -> Path:
    log = directory / "orders-0" / "0.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"x" * size)
    return log


def measured(opened: OpenedVolumes, *names: str) -> Sequence[MeasuredVolume]:
    return eventually(lambda: found if len(found := opened.of(names)) == len(names) else None)


def test_what_fills_a_volume_is_told_once_it_is_measured(tmp_path: Path) -> None:
    log, goes_on = topic(tmp_path), threading.Event()

    def sleep(seconds: float) -> None:
        goes_on.wait(30)
        log.write_bytes(b"x" * 16384)

    opened = volumes(FakeDisks(full=tmp_path), sleep)
    assert [*opened.of(["full"]), *opened.of(["full"])] == [], "it waits for no disk"
    goes_on.set()
    (found,) = measured(opened, "full")
    assert (found.volume.name, found.directories) == ("full", [str(tmp_path)])
    assert found.volume.capacity > found.volume.consumed > 0
    assert [(each.name, each.written > 0) for each in found.topics] == [("orders", True)]
    assert opened.of(["full"])[0] is found, "as long as it is asked for"
    opened.of([])
    assert opened.of(["full"]) == []
    opened.close()


def test_after_a_volume_that_takes_long_to_list_it_rests(tmp_path: Path) -> None:
    topic(tmp_path)
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds + 1.5

    opened = volumes(FakeDisks(full=tmp_path), sleep, clock)
    measured(opened, "full")
    opened.of([])
    clock.now += 29
    assert opened.of(["full"]) == []
    assert not opened._busy
    clock.now += 1
    measured(opened, "full")


def running() -> int:
    return [each.name for each in threading.enumerate()].count("quotahost-opened-volume")


def test_several_are_measured_one_after_the_other(tmp_path: Path) -> None:
    topic(tmp_path / "1")
    topic(tmp_path / "2")
    goes_on = threading.Event()
    opened = volumes(FakeDisks(a=tmp_path / "1", b=tmp_path / "2"), lambda _: goes_on.wait(30))
    assert [*opened.of(["a", "b"]), *opened.of(["b", "a"])] == []
    assert running() == 1
    goes_on.set()
    assert [each.volume.name for each in measured(opened, "a", "b")] == ["a", "b"]


@pytest.mark.parametrize("name", ["gone", "unknown"])
def test_of_a_volume_that_cannot_be_read_it_tells_why(tmp_path: Path, name: str) -> None:
    (found,) = measured(volumes(FakeDisks(gone=tmp_path / "none"), lambda _: None), name)
    assert (found.volume.name, found.topics) == (name, ())
    assert found.unread
