"""This broker's file stores: which log directories share one, how large it is, how much of it is used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.api import DiskState
from quotahost.model import Volume

# TODO(merge) The id of the cluster that this broker's log directories belong to.


_MOUNTS: Final = Path("/proc/self/mountinfo")


_DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"  # Kafka's own default of log.dir


def log_dirs(broker: Mapping[str, str]) -> tuple[str, ...]:
    """The broker's log directories: ``log.dirs``, else ``log.dir``."""
    named = broker.get("log.dirs") or broker.get("log.dir") or _DEFAULT_LOG_DIR
    return tuple(name for name in (part.strip() for part in named.split(",")) if name)


def read_disks(broker: str, directories: Sequence[str], given_up: Iterable[str] = ()) -> DiskState:
    """Look at the file stores under the log directories.

    What Kafka can't use counts as consumed (the blocks that a file system keeps for root), so that free is what is
    left to Kafka. Two directories on one file store are one volume.

    Args:
        broker: its id.
        directories: its log directories.
        given_up: those that Kafka itself holds for offline.
    """
    stores: dict[int, str] = {}
    devices: dict[str, int] = {}
    offline = [f"{name}: taken offline by Kafka" for name in given_up]
    lost = set(given_up)
    for directory in directories:
        if directory in lost:
            continue
        try:
            device = Path(directory).stat().st_dev
            os.scandir(directory).close()  # a broken disk often still answers stat() from memory
            stores.setdefault(device, directory)
            devices[directory] = device
        except OSError as error:
            offline.append(f"{directory}: {error.strerror or error}")
    names = _names(stores)
    volumes = []
    for device, directory in stores.items():
        try:
            volumes.append(_volume(broker, names[device], directory))
        except OSError as error:
            offline.append(f"{directory}: {error.strerror or error}")
    told = {volume.name for volume in volumes}
    places = ((directory, names[at]) for directory, at in devices.items() if names[at] in told)
    return DiskState(tuple(volumes), tuple(offline), tuple(places))


def _volume(broker: str, name: str, directory: str) -> Volume:
    store = os.statvfs(directory)
    capacity = store.f_blocks * store.f_frsize
    return Volume(broker, name, capacity, max(0, capacity - store.f_bavail * store.f_frsize))


def _names(stores: Mapping[int, str]) -> dict[int, str]:
    """The device's name, such as /dev/sda1; where it says nothing, or not enough, where it is mounted."""
    mounts = _mounts()
    known = {device: mounts.get(device, ("", directory)) for device, directory in stores.items()}
    sources = [source for source, _ in known.values()]
    return {
        device: source if source.startswith("/") and sources.count(source) == 1 else where
        for device, (source, where) in known.items()
    }


def _mounts() -> dict[int, tuple[str, str]]:
    """Source and mount point by device, as Linux tells them (proc(5), mountinfo); empty elsewhere."""
    try:
        lines = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if len(fields) < 5 or len(rest) < 2:
            continue
        major, _, minor = fields[2].partition(":")
        found[os.makedev(int(major), int(minor))] = (_plain(rest[1]), _plain(fields[4]))
    return found


def _plain(text: str) -> str:
    """Spaces and the like are written in octal there."""
    return text.encode("latin-1", "replace").decode("unicode_escape") if "\\" in text else text


_FILE: Final = (
    "meta.properties"  # Kafka's PropertiesUtils and MetaProperties, in each formatted log directory
)


_KEY: Final = "cluster.id"


_MAX: Final = 64 * 1024  # bytes


def cluster_id(directories: Iterable[str]) -> str:
    """``cluster.id`` of ``meta.properties`` in the first directory that tells it; "" if none does.

    A directory that can't be read is passed over. One on a disk that hangs holds the caller: call it where that
    is allowed for.
    """
    return next((found for found in map(_told, directories) if found), "")


def _told(directory: str) -> str:
    try:
        with Path(directory, _FILE).open("rb") as file:
            text = file.read(_MAX).decode("latin-1")
        return javaproperties.loads(text).get(_KEY, "").strip()
    except (OSError, ValueError):  # offline; a NUL in its name; no properties
        return ""
