"""Where the pipeline keeps its files: refused where executors couldn't reach them, used by one pipeline at a time.

:mod:`quotahost.pipeline.main` looks at the directories of ``--checkpoint`` and ``--history`` before any is written to.
Each query has its checkpoint in the former. A query that can't read its checkpoint would fail with the same error for
ever; everything in it but the fill rates is in the topics, too, so :mod:`quotahost.pipeline.supervisor` sets it aside.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from quotahost.errors import QuotahostError
from quotahost.pipeline.spark.session import hadoop, jvm, submitted

# Readers of Parquet and Spark's checkpoints leave out names that begin so.
_LOCK: Final = "_quotahost.lock"
_ASIDE: Final = ".set-aside-"


class PlaceError(QuotahostError):
    """A directory doesn't suit the master; the message names option, directory, master and what would be right."""

    exit_code = 2


def check(spark: SparkSession, directories: Mapping[str, str]) -> None:
    """Refuse a directory without a scheme that lies on this machine alone, where the executors run elsewhere.

    Each executor would write its part to a disk of its own: after one is lost or replaced, the state can't be read.

    Args:
        spark: the session, of which the master is taken; under spark-submit that need not be the option's.
        directories: by the option's name.

    Raises:
        PlaceError: there is such a directory.
    """
    default = str(hadoop(spark).get("fs.defaultFS"))
    for name, directory in directories.items():
        if problem := refusal(name, directory, str(spark.sparkContext.master), default):
            raise PlaceError(problem)


def refusal(name: str, directory: str, master: str, default: str) -> str:
    """Why a directory doesn't suit the master, "" if it does; ``default`` is Hadoop's default file system."""
    remote = not master.startswith("local")
    if not remote or urlsplit(directory).scheme or urlsplit(default).scheme not in ("", "file"):
        return ""
    return (
        f"--{name} {directory} lies on this machine alone, but the executors of {master} run elsewhere and must "
        f"reach it: give a URL such as hdfs://host/dir or s3a://bucket/dir, or file://{directory} if it is mounted "
        "on all machines under that path"
    )


class Lock:
    """Keeps a directory on this machine, or one mounted here, for one pipeline; Linux lets go when its process ends.

    Elsewhere (HDFS, object stores) nothing is locked: their files know no locks.
    """

    def __init__(self, directory: str) -> None:
        """Locks nothing yet."""
        parts = urlsplit(directory)
        # Under spark-submit a path without a scheme lies in Hadoop's default file system, often not on this machine.
        local = parts.scheme == "file" or not (parts.scheme or submitted())
        self._path = Path(unquote(parts.path) if parts.scheme else directory) / _LOCK if local else None
        self._file: int | None = None

    def take(self) -> bool:
        """Lock it, unless another process has; whether it is locked by this one now.

        Raises:
            OSError: the directory can't be written to.
        """
        if self._path is None or self._file is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Let another process lock it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


# ---- checkpoints -----------------------------------------------------------------------------------


def place(directory: str, query: str) -> str:
    """The checkpoint of a query."""
    return f"{directory.rstrip('/')}/{query}"


class Checkpoints:
    """Renames checkpoints, wherever Hadoop keeps them."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        """``directory`` is that of the option ``checkpoint``."""
        self._spark, self._directory = spark, directory

    def set_aside(self, query: str) -> str:
        """Rename the checkpoint of a query and return its new place; one that was set aside before is deleted.

        Raises:
            Py4JJavaError: the file system doesn't answer or refuses.
        """
        make = jvm(self._spark).org.apache.hadoop.fs.Path
        old = make(place(self._directory, query))
        new = make(f"{place(self._directory, query)}{_ASIDE}{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
        system = old.getFileSystem(hadoop(self._spark))
        # Only the newest is kept: a fault that comes again must not fill the disk.
        for entry in system.listStatus(old.getParent()):
            if entry.getPath().getName().startswith(f"{query}{_ASIDE}"):
                system.delete(entry.getPath(), True)
        system.rename(old, new)
        return str(new.toString())
