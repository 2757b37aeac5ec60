"""This broker's file stores, and the monitor that looks at them: volumes, the cluster's id, a disk that hangs."""

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.api import DiskState
from quotahost.broker.disks import file_stores as disks
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.disks.file_stores import cluster_id, log_dirs, read_disks
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.broker.plugins.factor_sources.direct import Local
from quotahost.model import Volume
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context, monitor


def test_log_directories_are_those_that_kafka_takes() -> None:
    assert log_dirs({"log.dirs": "/a, /b,"}) == ("/a", "/b")
    assert (log_dirs({"log.dir": "/c"}), log_dirs({"log.dirs": "/a", "log.dir": "/c"})) == (("/c",), ("/a",))
    assert log_dirs({}) == ("/tmp/kafka-logs",)


def test_two_directories_on_one_file_store_are_one_volume_with_the_stores_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    found = read_disks("1", [str(tmp_path / "a"), str(tmp_path / "b")])
    (volume,) = found.volumes
    store = os.statvfs(tmp_path)
    assert volume.capacity == store.f_blocks * store.f_frsize
    assert volume.free == pytest.approx(store.f_bavail * store.f_frsize, rel=0.05), "what Kafka may still use"
    assert found.offline == ()


@pytest.mark.parametrize("call", ["scandir", "statvfs"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_directory_that_can_not_be_listed_or_measured_is_offline_though_stat_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def refuse(path: str) -> None:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(os, call, refuse)
    assert read_disks("1", [str(tmp_path)]) == DiskState((), (f"{tmp_path}: {os.strerror(code)}",))


MOUNTS = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 1 8:17 / /data\\0402 rw - xfs /dev/sdb1 rw
23 1 0:40 / /data/3 rw - tmpfs tmpfs rw
24 1 0:41 / /data/4 rw - zfs /dev/pool rw
25 1 0:42 / /data/5 rw - zfs /dev/pool rw
not a line of it
"""


def test_a_volume_has_its_devices_name_or_its_mount_point_or_its_directorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "_MOUNTS", tmp_path / "mountinfo")
    assert [volume.name for volume in read_disks("1", [str(tmp_path)]).volumes] == [str(tmp_path)], "without mounts"
    (tmp_path / "mountinfo").write_text(MOUNTS)
    stores = {(8, 1): "/dev/sda1", (8, 17): "/dev/sdb1", (0, 40): "/data/3", (0, 41): "/data/4", (0, 42): "/data/5",
              (9, 9): "its directory"}  # fmt: skip
    assert disks._names({os.makedev(*at): "its directory" for at in stores}) == {
        os.makedev(*at): name for at, name in stores.items()
    }


def formatted(directory: Path, text: str) -> str:
    directory.mkdir()
    (directory / "meta.properties").write_text(text)
    return str(directory)


def test_the_first_directory_that_has_an_id_decides(tmp_path: Path) -> None:
    texts = ("", "cluster.id=\n", "cluster.id=\\uZZZZ\n", "\0\xff", "version=0\nbroker.id=1\n")
    without = [formatted(tmp_path / str(number), text) for number, text in enumerate(texts)]
    one = formatted(tmp_path / "one", "#\n#Sat Nov 21\ncluster.id=4L6g3nShT-eMCtK--X86sw\nversion=1\nnode.id=1\n")
    other = formatted(tmp_path / "other", "cluster.id=another\n")
    assert cluster_id([str(tmp_path / "gone"), "\0", *without, one, other]) == "4L6g3nShT-eMCtK--X86sw"
    assert cluster_id(without) == ""


class Disk:
    """Stands for the disks: what a look answers, and how often they were looked at."""

    def __init__(self) -> None:
        self.answer: DiskState | Exception = DiskState((Volume("1", "/d", 100, 10),))
        self.looks = 0
        self.hangs = False
        self.free = threading.Event()
        self.free.set()

    def __call__(self, broker: str, directories: Any, marked_offline: Any = ()) -> DiskState:
        self.hangs = not self.free.is_set()
        self.free.wait()
        self.looks += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def looked_again(self) -> None:
        """Whatever was set before is seen now."""
        seen = self.looks
        eventually(lambda: self.looks >= seen + 2)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk()
    monkeypatch.setattr(disk_monitor, "read_disks", made)
    monkeypatch.setattr(disk_monitor, "_FIRST_LOOK_WITHIN", 0.05)
    yield made
    made.free.set()


Make = Callable[..., Local]


@pytest.fixture
def local(disk: Disk) -> Iterator[Make]:
    made: list[DiskMonitor] = []

    def make(broker: FakeBroker | None = None, clock: Clock | None = None, looks: bool = True) -> Local:
        given = context(broker, clock=clock or Clock(), volumes__period="2ms", validity="60s")
        made.append(monitor(given))
        if looks:
            disk.looked_again()
        return Local(given)

    yield make
    disk.free.set()
    for each in made:
        each.close()


def test_a_disk_that_hangs_blocks_nobody_and_is_unknown_after_validity(disk: Disk, local: Make) -> None:
    clock = Clock()
    source = local(clock=clock)
    disk.free.clear()
    clock.now += 60
    assert source.read().unknown == ()
    clock.now += 1
    found = source.read()
    assert found.unknown == ("broker 1: its disks have not answered for more than validity (60 s)",)
    assert found.volumes == (Volume("1", "/d", 100, 10),), "the last volumes stay"
    disk.free.set()
    eventually(lambda: source.read().unknown == ())


def test_a_disk_that_hangs_at_the_start_blocks_nobody_and_is_waited_for(disk: Disk, local: Make) -> None:
    disk.free.clear()
    source = local(looks=False)
    assert source.read().waiting == "broker 1: its disks have not answered yet"
    disk.free.set()
    eventually(lambda: source.read().volumes and not source.read().waiting)


def test_an_unforeseen_failure_is_logged_once(disk: Disk, local: Make, caplog: pytest.LogCaptureFixture) -> None:
    source = local()
    disk.answer = RuntimeError("unforeseen")
    disk.looked_again()
    disk.answer = DiskState((Volume("1", "/d", 100, 12),))
    disk.looked_again()
    assert source.read().volumes[0].consumed == 12
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@pytest.mark.proves("proposal-035.metric-volumes")
def test_the_numbers_of_the_volumes_are_shown_and_those_of_gone_ones_forgotten(disk: Disk, local: Make) -> None:
    broker = FakeBroker()
    local(broker)
    assert broker.number("Volume", "Capacity", "/d") == 100
    assert broker.number("Volume", "Consumed", "/d") == 10
    assert broker.number("LogDirs", "Offline") == 0
    disk.answer = DiskState((), ("/d: gone",))
    disk.looked_again()
    assert broker.number("Volume", "Capacity", "/d") is None
    assert broker.number("LogDirs", "Offline") == 1


def test_each_look_asks_what_kafka_has_taken_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker({"log.dirs": str(tmp_path)})
    disks = monitor(context(broker, volumes__period="2ms"))
    assert len(disks.known().volumes) == 1
    broker.offline = (str(tmp_path),)
    eventually(lambda: disks.known().unknown == (f"broker 1, log dir {tmp_path}: taken offline by Kafka",))
    disks.close()
