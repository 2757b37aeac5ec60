"""The checkpoints of the queries: where each lies, and how one that is of no use is set aside.

A query that can't read its checkpoint would fail with the same error for ever. Everything in it but the fill rates is
in the topics, too, so :mod:`quotahost.pipeline.supervisor` sets it aside and lets the query begin anew.
"""

from __future__ import annotations

import time
from typing import Any, Final

from pyspark.sql import SparkSession

_ASIDE: Final = ".set-aside-"


def place(directory: str, query: str) -> str:
    """The checkpoint of a query."""
    return f"{directory.rstrip('/')}/{query}"


class Checkpoints:
    """Renames checkpoints, wherever Hadoop keeps them."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        """``directory`` is that of the option ``checkpoint``."""
        self._java: Any = spark
        self._directory = directory

    def set_aside(self, query: str) -> str:
        """Rename the checkpoint of a query and return its new place; one that was set aside before is deleted.

        Raises:
            Py4JJavaError: the file system doesn't answer or refuses.
        """
        make = self._java._jvm.org.apache.hadoop.fs.Path
        old = make(place(self._directory, query))
        new = make(f"{place(self._directory, query)}{_ASIDE}{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
        system = old.getFileSystem(self._java._jsc.hadoopConfiguration())
        # Only the newest is kept: a fault that comes again must not fill the disk.
        for entry in system.listStatus(old.getParent()):
            if entry.getPath().getName().startswith(f"{query}{_ASIDE}"):
                system.delete(entry.getPath(), True)
        system.rename(old, new)
        return str(new.toString())
