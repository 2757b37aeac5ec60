"""What a look sees on real file systems: inodes that run out, no size, read-only, and a disk that is dead.

Most of them have to be mounted; where this machine doesn't allow that, a test is skipped and says so.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quotahost.broker.disks import monitor as disk_monitor
from quotahost.broker.disks.file_stores import out_of_inodes, read_disks, unreadable
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.model import Limit, LimitType
from quotahost.model.volumes import byte_limits
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, settings
from tests.skips import COULD_NOT_RUN

Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a file system and returns where; ``mount(*arguments)`` of the command of that name."""
    mounted: list[Path] = []

    def make(*arguments: str) -> Path:
        place = tmp_path / f"mounted-{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{COULD_NOT_RUN}this machine mounts no file system: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=False)


def looks_at(directory: Path, clock: Clock | None = None) -> DiskMonitor:
    broker = FakeBroker({"log.dirs": str(directory)})
    return DiskMonitor(broker, broker, 1, settings, clock or Clock())


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
    found = byte_limits(volume, None, Limit(LimitType.MIN_FREE_BYTES, 1))
    assert found is not None
    assert found.ramp(volume.consumed) == 0.0
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "is out of inodes" in warned[0]
    (place / "0").unlink()
    monitor.look()
    assert monitor.known().volumes[0].free > 900_000


def test_a_file_system_without_a_fixed_number_of_inodes_is_not_full(mount: Mount) -> None:
    place = mount("-t", "tmpfs", "-o", "size=1m,nr_inodes=0", "tmpfs")
    assert os.statvfs(place).f_files == 0
    assert not out_of_inodes(str(place))
    assert read_disks("1", [str(place)]).volumes[0].free > 900_000


def test_a_file_system_without_a_size_is_unknown_and_not_full() -> None:
    """Full it would stay for ever, whatever is deleted."""
    if os.statvfs("/proc").f_blocks:
        pytest.skip(f"{COULD_NOT_RUN}/proc has a size here")
    found = read_disks("1", ["/proc"])
    assert found.volumes == ()
    assert found.offline == ("/proc: its file system reports no size",)


def test_a_file_system_that_was_made_read_only_is_offline(mount: Mount) -> None:
    place = mount("-t", "tmpfs", "-o", "size=1m,ro", "tmpfs")
    found = read_disks("1", [str(place)])
    assert found.volumes == ()
    assert found.offline == (f"{place}: its file system is read-only",)


def formatted(directory: Path) -> Path:
    (directory / "meta.properties").write_text("cluster.id=c-1\n")
    return directory


def test_a_dead_disk_that_still_answers_from_memory_is_offline(tmp_path: Path, mount: Mount) -> None:
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(16 * 1024 * 1024)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{COULD_NOT_RUN}this machine makes no ext4: {error}")
    place = formatted(mount("-o", "loop", str(image)))
    os.sync()
    clock = Clock()
    monitor = looks_at(place, clock)
    monitor.look()
    assert monitor.known().unknown == ()
    os.truncate(image, 0)  # from now on each read of the disk fails
    assert (place / "meta.properties").read_text() == "cluster.id=c-1\n", "it is answered from memory"
    assert read_disks("1", [str(place)]).offline == (), "so are questions about the file system"
    clock.now += 5
    monitor.look()
    assert monitor.known().unknown == (f"broker 1, log dir {place}: Input/output error",)
    assert monitor.known().volumes == ()


def test_reading_changes_nothing_and_takes_any_directory(tmp_path: Path) -> None:
    for name in ("a", "new"):
        (tmp_path / name).mkdir()
    meta = formatted(tmp_path / "a") / "meta.properties"

    def state() -> tuple[int, ...]:
        found = meta.stat()
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size

    before = state()
    found = unreadable([str(tmp_path / name) for name in ("a", "new", "none", "with\0nul")])
    assert found == {str(tmp_path / "with\0nul"): "embedded null byte"}
    assert state() == before
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["meta.properties"]


def test_without_direct_reads_the_page_is_dropped_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    real = os.open

    def open_(path: str, flags: int) -> int:
        tried.append(flags & os.O_DIRECT)
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument", path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", open_)
    assert unreadable([str(formatted(tmp_path))]) == {}
    assert tried == [os.O_DIRECT, 0]


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
