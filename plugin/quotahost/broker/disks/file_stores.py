"""Looks at file stores: which log directories share one, how large and full it is, inodes, whether its disk fails.

``DiskMonitor`` calls this on its thread, ``doctor`` once. Every function here may block on a disk that hangs. A volume
is a file store (Java's ``FileStore``, as in proposal 035): two log directories on one file system fill the same volume.

A look at the file system is answered from memory, also for a disk that is dead. So :func:`unreadable` reads a block
from the disk itself. It never writes: the directories are Kafka's. It can't see a disk that reads but no longer writes,
unless the kernel has made the file system read-only, nor a dead one whose controller answers from a cache of its own.
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
_META: Final = "meta.properties"  # in each formatted log directory (Kafka's MetaProperties)
_META_MAX: Final = 64 * 1024  # bytes of it to read; Kafka writes some hundred
#: A volume with a smaller part of its inodes left counts as full. A new segment takes several files at once, and where
#: the last inode goes to another's file, Kafka takes the directory offline.
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
    """Look at the file stores under the log directories.

    Bytes that Kafka can't use count as consumed (file systems keep blocks for root), so that the free bytes are those
    that are left to Kafka. A volume that is out of inodes (``_INODES_KEPT``) is full. One without a size, or that
    is read-only, is unknown, and its directory listed as offline. So are those that Kafka has ``marked_offline``; they
    are not looked at. ``broker`` is its id.
    """
    lost = dict.fromkeys(marked_offline)
    offline = [f"{name}: taken offline by Kafka" for name in lost]
    stores: dict[int, Volume] = {}  # by their device, each with the name of its first directory
    devices: dict[str, int] = {}
    mounts = _mounts()
    for directory in directories:
        if directory in lost:
            continue
        try:
            device = Path(directory).stat().st_dev
            os.scandir(directory).close()  # a broken disk often still answers stat() from memory
            stores[device] = stores.get(device) or _volume(broker, directory, mounts.get(device, _UNSEEN).options)
            devices[directory] = device
        except OSError as error:
            offline.append(f"{directory}: {error.strerror or error}")
    names = _names({device: volume.name for device, volume in stores.items()}, mounts)
    volumes = tuple(replace(volume, name=names[device]) for device, volume in stores.items())
    return DiskState(volumes, tuple(offline), tuple((place, names[device]) for place, device in devices.items()))


def _volume(broker: str, directory: str, options: str) -> Volume:
    # f_bavail leaves out the blocks that are reserved for root. POSIX counts blocks in units of f_frsize, not f_bsize.
    store = os.statvfs(directory)
    capacity = store.f_blocks * store.f_frsize
    if capacity == 0:  # as full it would stop producers at once and for ever
        raise OSError(errno.ENODATA, "its file system reports no size")
    # Linux makes a file system so after an error of its disk; ext4 only tells it by its options, from Linux 6.15 on.
    if store.f_flag & os.ST_RDONLY or "emergency_ro" in options.split(","):
        raise OSError(errno.EROFS, "its file system is read-only")
    # Some file systems, btrfs among others, have no fixed number of inodes, and report 0 of 0.
    out_of_inodes = store.f_files > 0 and store.f_favail <= store.f_files // _INODES_KEPT
    free = 0 if out_of_inodes else store.f_bavail * store.f_frsize
    return Volume(broker, directory, capacity, max(0, capacity - free))


def unreadable(directories: Iterable[str]) -> dict[str, str]:
    """The log directories whose disk fails when it is really read, and why.

    It reads the beginning of the ``meta.properties`` that Kafka keeps in each; a directory without one can't be judged.
    """
    failed = {}
    for directory in directories:
        try:
            with suppress(FileNotFoundError), Path(directory, _META).open("rb", buffering=0) as file:
                # What is dropped from memory comes from the disk.
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.read(_META_MAX)
        except OSError as error:
            failed[directory] = error.strerror or str(error)
    return failed


def formatted(directories: Iterable[str]) -> set[str]:
    """The log directories with what Kafka puts in each: where a volume is unmounted, its place is there without it."""
    return {name for name in directories if os.path.exists(os.path.join(name, _META))}  # noqa: PTH110, PTH118


def _names(stores: Mapping[int, str], mounts: Mapping[int, _Mount]) -> dict[int, str]:
    """The device's name, such as /dev/sda1; the mount point where that is no path, or two stores have the same."""
    known = {device: mounts.get(device, _UNSEEN._replace(point=directory)) for device, directory in stores.items()}
    times = Counter(mount.source for mount in known.values())
    # A tmpfs has no device, and file systems of one ZFS pool name the same one.
    return {
        device: mount.source if mount.source.startswith("/") and times[mount.source] == 1 else mount.point
        for device, mount in known.items()
    }


def _mounts() -> dict[int, _Mount]:
    """What is mounted, by device, from Linux' mountinfo (proc(5)); empty on other systems."""
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
    """Mountinfo writes blanks and backslashes as octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), text)


def cluster_id(directories: Iterable[str]) -> str:
    """``cluster.id`` of the first log directory that can be read and has one (``meta.properties``); "" if none has."""
    for directory in directories:
        # It may be offline, or have no properties in the file.
        with suppress(OSError, ValueError), Path(directory, _META).open("rb") as file:
            text = file.read(_META_MAX).decode("latin-1")
            if found := javaproperties.loads(text).get("cluster.id", "").strip():
                return found
    return ""
