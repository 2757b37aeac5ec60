"""These functions find the file stores of log directories: their sizes, free inodes, and disks that fail.

``DiskMonitor`` calls them on its thread, and ``doctor`` calls them once. Each may block on a disk that hangs. A volume
is a file store (Java's ``FileStore``, as in proposal 035): two log directories on one file system fill the same volume.

The kernel answers questions about a file system from memory, even if the disk is dead. So :func:`unreadable` reads a
block from the disk itself. It never writes, because the directories belong to Kafka. It can't detect a disk that reads
but no longer writes, unless the kernel has made the file system read-only. It can't detect a dead disk whose controller
answers from its own cache.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import javaproperties

from quotahost.api import DiskState
from quotahost.model import Volume

_MOUNTS: Final = Path("/proc/self/mountinfo")
_DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"  # Kafka's own default of log.dir
_META: Final = "meta.properties"  # Kafka writes this file into each log directory that it formats (MetaProperties)
_META_MAX: Final = 64 * 1024  # bytes to read of that file; Kafka writes some hundred
#: A volume counts as full if at most 1/1000 of its inodes are free. A new segment needs several files at once. If
#: another program takes the last inode, Kafka takes the directory offline.
_INODES_KEPT: Final = 1000


def log_dirs(broker: Mapping[str, str]) -> tuple[str, ...]:
    named = broker.get("log.dirs") or broker.get("log.dir") or _DEFAULT_LOG_DIR
    return tuple(name for name in (part.strip() for part in named.split(",")) if name)


class _Mount(NamedTuple):
    source: str
    point: str
    options: str  # of the file system


_UNSEEN: Final = _Mount("", "", "")


def read_disks(broker: str, directories: Sequence[str], marked_offline: Iterable[str] = ()) -> DiskState:
    """Look at the file stores under the log directories of the broker with the id ``broker``.

    Bytes that Kafka can't use count as consumed (file systems reserve blocks for root), so the free bytes are those
    that Kafka can still write. A volume that is out of inodes (``_INODES_KEPT``) is full. If a file system has no size
    or is read-only, its volume is unknown and its directory is listed as offline. The directories that Kafka has
    ``marked_offline`` are listed as offline, too, without a look at them.
    """
    lost = dict.fromkeys(marked_offline)
    offline = [f"{name}: taken offline by Kafka" for name in lost]
    stores: dict[int, Volume] = {}  # by device; for now, each volume has the name of its first directory
    devices: dict[str, int] = {}
    mounts = _mounts()
    for directory in directories:
        if directory in lost:
            continue
        try:
            device = Path(directory).stat().st_dev
            os.scandir(directory).close()  # the kernel often answers stat() from memory although the disk is broken
            stores[device] = stores.get(device) or _volume(broker, directory, mounts.get(device, _UNSEEN).options)
            devices[directory] = device
        except OSError as error:
            offline.append(f"{directory}: {error.strerror or error}")
    names = _names({device: volume.name for device, volume in stores.items()}, mounts)
    volumes = tuple(replace(volume, name=names[device]) for device, volume in stores.items())
    return DiskState(volumes, tuple(offline), tuple((place, names[device]) for place, device in devices.items()))


def _volume(broker: str, directory: str, options: str) -> Volume:
    # f_bavail excludes the blocks that are reserved for root. POSIX counts blocks in units of f_frsize, not f_bsize.
    store = os.statvfs(directory)
    capacity = store.f_blocks * store.f_frsize
    if capacity == 0:  # such a volume would count as full and stop all producers for ever
        raise OSError(errno.ENODATA, "its file system reports no size")
    # Linux makes a file system read-only after a disk error. From Linux 6.15 on, ext4 shows this only in its options.
    if store.f_flag & os.ST_RDONLY or "emergency_ro" in options.split(","):
        raise OSError(errno.EROFS, "its file system is read-only")
    # Some file systems, such as btrfs, have no fixed number of inodes and report 0 of 0.
    out_of_inodes = store.f_files > 0 and store.f_favail <= store.f_files // _INODES_KEPT
    free = 0 if out_of_inodes else store.f_bavail * store.f_frsize
    return Volume(broker, directory, capacity, max(0, capacity - free))


def unreadable(directories: Iterable[str]) -> dict[str, str]:
    """Return the log directories whose disk fails a real read, each with the reason.

    The function reads the beginning of each ``meta.properties``. A directory without this file can't be judged.
    """
    failed = {}
    for directory in directories:
        try:
            with suppress(FileNotFoundError), Path(directory, _META).open("rb", buffering=0) as file:
                # The kernel drops the file from its page cache, so the read goes to the disk.
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.read(_META_MAX)
        except OSError as error:
            failed[directory] = error.strerror or str(error)
    return failed


def formatted(directories: Iterable[str]) -> set[str]:
    """The log directories with a ``meta.properties``. If a volume is unmounted, its directory exists without it."""
    return {name for name in directories if os.path.exists(os.path.join(name, _META))}  # noqa: PTH110, PTH118


def _names(stores: Mapping[int, str], mounts: Mapping[int, _Mount]) -> dict[int, str]:
    """Name each store after its device, such as /dev/sda1, or its mount point if that is no path or not unique."""
    found = {device: mounts.get(device, _UNSEEN._replace(point=directory)) for device, directory in stores.items()}
    times = Counter(mount.source for mount in found.values())
    # A tmpfs has no device, and all file systems of one ZFS pool name the same device.
    return {
        device: mount.source if mount.source.startswith("/") and times[mount.source] == 1 else mount.point
        for device, mount in found.items()
    }


def _mounts() -> dict[int, _Mount]:
    """The mounts by device, from Linux' mountinfo (proc(5)); empty on other systems."""
    try:
        lines = _MOUNTS.read_text(errors="replace").removesuffix("\n").split("\n")
    except OSError:
        return {}
    mounts = {}
    for line in lines:
        # MOUNT PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAG ...] - TYPE SOURCE OPTIONS, with any number of tags.
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        major, _, minor = fields[2].partition(":")
        mounts[os.makedev(int(major), int(minor))] = _Mount(_unescaped(rest[1]), _unescaped(fields[4]), rest[2])
    return mounts


def _unescaped(text: str) -> str:
    """Decode the octal escapes that mountinfo writes for blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), text)


def cluster_id(directories: Iterable[str]) -> str:
    """Return ``cluster.id`` from the first readable ``meta.properties`` that has it, or "" if there is none."""
    for directory in directories:
        # The directory may be offline, or the file may hold no properties.
        with suppress(OSError, ValueError), Path(directory, _META).open("rb") as file:
            text = file.read(_META_MAX).decode("latin-1")
            if found := javaproperties.loads(text).get("cluster.id", "").strip():
                return found
    return ""
