"""``quotahost install``: puts the jar on a broker's classpath, and names the properties that load it.

The jar is atomically replaced, so that a broker that starts meanwhile finds a whole one. ``quotahost doctor`` checks
afterwards what is there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from quotahost.cli.broker_file import CLASS
from quotahost.cli.console import writing
from quotahost.cli.jars import Jar, carried_jar, jars_in
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX


@dataclass(frozen=True, slots=True)
class Installed:
    """The jar as it lies in ``libs`` now, and the ones that it replaced."""

    jar: Path
    replaced: tuple[Jar, ...]


def install_jar(kafka_home: Path) -> Installed:
    """Copy the package's jar into ``libs`` and remove older ones of quotahost's.

    A running broker keeps the files that it has open: it sees the change when it is restarted.

    Raises:
        QuotahostError: no Kafka there, no jar in this package, or ``libs`` can't be written.
    """
    libs = kafka_home / "libs"
    if not libs.is_dir():
        raise QuotahostError(f"{kafka_home} holds no folder libs; name the folder that Kafka was unpacked to")
    with carried_jar() as jar, writing(libs):
        target = libs / f"quotahost-{jar.quotahost}.jar"
        # The older jars go last: if the copy fails, the broker keeps the one that it has.
        before = jars_in(libs)
        _copy(jar.path, target)
        for old in before:
            if old.path != target:
                old.path.unlink()
    return Installed(target, tuple(before))


def _copy(source: Path, target: Path) -> None:
    """Copy to a folder of its own first: no wildcard of a classpath (``libs/*``) takes a half-written file from it."""
    with tempfile.TemporaryDirectory(prefix=".quotahost-", dir=target.parent) as folder:
        copy = Path(folder, target.name)
        shutil.copyfile(source, copy)
        # Whatever the umask: the broker may run as another user.
        copy.chmod(0o644)
        # On the disk before it is renamed: else a crash could leave an empty file under the jar's name.
        with copy.open("rb") as written:
            os.fsync(written.fileno())
        copy.replace(target)


def lines_to_add() -> list[str]:
    """The properties without which a broker doesn't load quotahost, as lines of its file."""
    needed = {"class": CLASS, "python.executable": sys.executable}
    return [javaproperties.join_key_value(PREFIX + name, value) for name, value in needed.items()]
