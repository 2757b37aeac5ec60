"""Putting the jar on a broker's classpath."""

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
    """Copy the package's jar into ``libs`` and take older ones of quotahost's away.

    A running broker keeps the files that it has open: it sees the change when it is restarted.

    Raises:
        QuotahostError: no Kafka there, no jar in this package, or ``libs`` can't be written.
    """
    libs = kafka_home / "libs"
    if not libs.is_dir():
        raise QuotahostError(f"{kafka_home} holds no folder libs; name the folder that Kafka was unpacked to")
    with carried_jar() as jar, writing(libs):
        target = libs / f"quotahost-{jar.quotahost}.jar"
        before = jars_in(libs)
        _copy(jar.path, target)
        for old in before:
            if old.path != target:
                old.path.unlink()
    return Installed(target, tuple(before))


def _copy(source: Path, target: Path) -> None:
    """Atomically, by a name that no classpath wildcard (*.jar) takes."""
    handle, name = tempfile.mkstemp(prefix=".quotahost-", suffix=".tmp", dir=target.parent)
    copy = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink, source.open("rb") as stream:
            shutil.copyfileobj(stream, sink)
            sink.flush()
            os.fsync(sink.fileno())
        copy.chmod(0o644)
        copy.replace(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def lines_to_add() -> list[str]:
    """What the broker's properties need, at least."""
    needed = {"class": CLASS, "python.executable": sys.executable}
    return [javaproperties.join_key_value(PREFIX + name, value) for name, value in needed.items()]
