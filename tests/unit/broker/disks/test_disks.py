"""Tests the look at this broker's file stores, also on real file systems, and its monitor: disks that hang or die.

Some tests mount a file system; if this machine doesn't allow that, the test is skipped and says so.
"""

import errno
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.system.waiting import eventually
from quotahost.api import DiskState
from quotahost.broker.disks import file_stores as disks
from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.disks.file_stores import cluster_id, log_dirs, read_disks, unreadable
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.model import ClusterVolumes, Volume
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import WITHIN, Clock, context, fails, monitor, settings
from tests.skips import COULD_NOT_RUN


def test_log_directories_are_those_that_kafka_takes() -> None:
    assert log_dirs({"log.dirs": "/a, /b,"}) == ("/a", "/b")
    assert (log_dirs({"log.dir": "/c"}), log_dirs({"log.dirs": "/a", "log.dir": "/c"})) == (("/c",), ("/a",))
    assert log_dirs({}) == ("/tmp/kafka-logs",)


def test_two_directories_on_one_file_store_are_one_volume_with_the_stores_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = str(tmp_path / "a"), str(tmp_path / "b")
    found = read_disks("1", [one, other])
    (volume,) = found.volumes
    store = os.statvfs(tmp_path)
    assert volume.capacity == store.f_blocks * store.f_frsize
    assert volume.free == pytest.approx(store.f_bavail * store.f_frsize, rel=0.05), "free is what Kafka may still use"
    assert found.offline == ()
    without = read_disks("1", [one, other], [other])
    assert (without.offline, [place for place, _ in without.places]) == ((f"{other}: taken offline by Kafka",), [one])


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
26 1 0:43 / /data/六\\0406\u3000 rw - tmpfs tmpfs rw
"""


def test_a_volume_is_named_by_device_mount_point_or_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "_MOUNTS", tmp_path / "mountinfo")
    assert [volume.name for volume in read_disks("1", [str(tmp_path)]).volumes] == [str(tmp_path)], "no mounts are read"
    (tmp_path / "mountinfo").write_text(MOUNTS)
    stores = {(8, 1): "/dev/sda1", (8, 17): "/dev/sdb1", (0, 40): "/data/3", (0, 41): "/data/4", (0, 42): "/data/5",
              (0, 43): "/data/六 6\u3000", (9, 9): "its directory"}  # fmt: skip
    assert disks._names({os.makedev(*at): "its directory" for at in stores}, disks._mounts()) == {
        os.makedev(*at): name for at, name in stores.items()
    }


def formatted(directory: Path, text: str = "cluster.id=c-1\n") -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "meta.properties").write_text(text)
    return directory


def test_the_first_directory_that_has_an_id_decides(tmp_path: Path) -> None:
    texts = ("", "cluster.id=\n", "cluster.id=\\uZZZZ\n", "\0\xff", "version=0\nbroker.id=1\n")
    without = [str(formatted(tmp_path / str(number), text)) for number, text in enumerate(texts)]
    one = formatted(tmp_path / "one", "#\n#Sat Nov 21\ncluster.id=4L6g3nShT-eMCtK--X86sw\nversion=1\nnode.id=1\n")
    other = formatted(tmp_path / "other", "cluster.id=another\n")
    assert cluster_id([str(tmp_path / "gone"), *without, str(one), str(other)]) == "4L6g3nShT-eMCtK--X86sw"
    assert cluster_id(without) == ""


def looks_at(directory: Path, clock: Clock | None = None, *shown: str) -> DiskMonitor:
    broker = FakeBroker({"log.dirs": str(directory)})
    return DiskMonitor(broker, broker, 1, settings, clock or Clock(), shown={name: {} for name in shown})


def test_a_hanging_disk_is_waited_for_at_the_start_and_unknown_after_validity(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, free, hangs = Clock(), threading.Event(), threading.Event()
    known = ClusterVolumes((Volume("1", "/d", 100, 10),))

    def look(*_: object) -> DiskState:
        if not free.is_set():
            hangs.set()
            free.wait()
        return DiskState(known.volumes)

    monkeypatch.setattr(disk_monitor, "read_disks", look)
    monkeypatch.setattr(disk_monitor, "_LOOK_WITHIN", 0.05)
    disks = monitor(context(clock=clock, volumes__period="2ms", validity="60s"))
    assert disks.known().waiting == "broker 1: its disks have not answered yet"
    free.set()
    eventually(lambda: disks.known() == known)
    hangs.clear()
    free.clear()
    eventually(hangs.is_set)
    clock.now += 60
    assert disks.known() == known
    clock.now += 1
    silent = "broker 1: its disks have not answered for more than validity (60 s)"
    assert disks.known() == replace(known, unknown=(silent,)), "the last known volumes stay"
    free.set()
    eventually(lambda: disks.known() == known)
    disks.close()


def test_an_unforeseen_failure_is_logged_once_and_followed_by_other_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disks = monitor(context(FakeBroker({"log.dirs": str(tmp_path)}), volumes__period="2ms"))
    looks = threading.Semaphore(0)
    with monkeypatch.context() as broken:
        broken.setattr(disk_monitor, "read_disks", lambda *_: (looks.release(), fails()))
        assert all(looks.acquire(timeout=WITHIN) for _ in range(3))
        seen = disks.latest()[1]
    eventually(lambda: disks.latest()[1] is not seen)
    disks.close()
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


# ---- looks at real file systems ----


Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """A function that mounts a file system and returns its directory; its arguments are those of the command mount."""
    mounted: list[Path] = []

    def make(*arguments: str) -> Path:
        place = tmp_path / f"mounted-{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{COULD_NOT_RUN}this machine can't mount a file system: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_file_system_without_a_size_is_unknown_and_not_full() -> None:
    if os.statvfs("/proc").f_blocks:
        pytest.skip(f"{COULD_NOT_RUN}/proc has a size on this system")
    assert read_disks("1", ["/proc"]) == DiskState((), ("/proc: its file system reports no size",))


def test_a_volume_without_free_inodes_is_full(mount: Mount, caplog: pytest.LogCaptureFixture) -> None:
    place = mount("-t", "tmpfs", "-o", "size=1m,nr_inodes=20", "tmpfs")
    monitor = looks_at(place)
    monitor.look()
    (volume,) = monitor.known().volumes
    assert volume.free > 900_000
    for number in range(19):
        (place / str(number)).touch()
    with pytest.raises(OSError, match="No space left"):
        (place / "one-more").touch()
    for _ in range(3):
        monitor.look()
    (volume,) = monitor.known().volumes
    assert (volume.free, volume.consumed) == (0, volume.capacity)
    (warned,) = caplog.messages
    assert "no inodes (files) left" in warned
    (place / "0").unlink()
    monitor.look()
    assert monitor.known().volumes[0].free > 900_000
    place = mount("-t", "tmpfs", "-o", "size=1m,nr_inodes=0", "tmpfs")  # without a fixed number of inodes
    assert (os.statvfs(place).f_files, read_disks("1", [str(place)]).volumes[0].free > 900_000) == (0, True)


def test_a_file_system_that_was_made_read_only_is_offline(mount: Mount) -> None:
    place = mount("-t", "tmpfs", "-o", "size=1m,ro", "tmpfs")
    assert read_disks("1", [str(place)]) == DiskState((), (f"{place}: its file system is read-only",))


def test_an_ext4_that_an_error_made_read_only_is_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux 6.18 shows such a file system read-only neither in the flags of statvfs nor in those of the mount."""
    device, mounts = tmp_path.stat().st_dev, tmp_path / "mountinfo"
    monkeypatch.setattr(disks, "_MOUNTS", mounts)
    place = f"21 1 {os.major(device)}:{os.minor(device)} / / rw - ext4 /dev/sda1"
    for options, offline in (("rw,errors=remount-ro", 0), ("rw,errors=remount-ro,emergency_ro", 1)):
        mounts.write_text(f"{place} {options}\n")
        assert read_disks("1", [str(tmp_path)]).offline == (f"{tmp_path}: its file system is read-only",) * offline


def test_a_dead_disk_that_still_answers_from_memory_is_offline(tmp_path: Path, mount: Mount) -> None:
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(16 * 1024 * 1024)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{COULD_NOT_RUN}this machine can't make an ext4 file system: {error}")
    place = formatted(mount("-o", "loop", str(image)))
    os.sync()
    clock = Clock()
    monitor = looks_at(place, clock)
    monitor.look()
    assert monitor.known().unknown == ()
    os.truncate(image, 0)  # from now on each read of the disk fails
    assert (place / "meta.properties").read_text() == "cluster.id=c-1\n", "the page cache answers the read"
    assert read_disks("1", [str(place)]).offline == (), "questions about the file system are answered, too"
    clock.now += 5
    monitor.look()
    assert monitor.known().unknown == (f"broker 1, log dir {place}: Input/output error",)
    assert monitor.known().volumes == ()


def test_reading_changes_nothing_and_takes_any_directory(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    meta = formatted(tmp_path / "a") / "meta.properties"
    before = meta.stat().st_ctime_ns
    assert unreadable([str(tmp_path / name) for name in ("a", "new", "none")]) == {}
    assert (meta.stat().st_ctime_ns, list(meta.parent.iterdir())) == (before, [meta])


def test_the_place_of_an_unmounted_volume_is_none_until_it_is_back_for_a_python_that_starts_again_too(
    tmp_path: Path,
) -> None:
    monitor = looks_at(tmp_path, None, str(tmp_path))
    monitor.look()
    gone = f"broker 1, log dir {tmp_path}: its meta.properties is gone; is its volume mounted?"
    assert (monitor.known().volumes, monitor.known().unknown) == ((), (gone,))
    formatted(tmp_path)
    monitor.look()
    assert (len(monitor.known().volumes), monitor.known().unknown) == (1, ())


def test_a_failed_read_holds_until_the_next_one_seconds_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, reads = Clock(), list[list[str]]()
    monitor = looks_at(tmp_path, clock)
    fails = {str(tmp_path): "Input/output error"}

    def read(directories: Iterator[str]) -> dict[str, str]:
        reads.append(list(directories))
        return fails

    monkeypatch.setattr(disk_monitor, "unreadable", read)
    for _ in range(20):
        monitor.look()
        assert monitor.known().unknown == (f"broker 1, log dir {tmp_path}: Input/output error",)
        clock.now += 0.25
    assert len(reads) == 1
    fails = {}
    monitor.look()
    assert len(reads) == 2
    assert monitor.known().unknown == ()
