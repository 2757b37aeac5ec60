"""A factor source, a policy and a task as a user writes them, that work or fail as files of the folder ROLES say."""

import ctypes
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from quotahost.api import Context
from quotahost.model import ClusterVolumes, Volume

GIL_SECONDS = 6
CAPACITY = 1000


class Moody:
    """Fails in the way that the file ROLES/NAME names, NAME being that of the plugin's class; works if it is absent."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.folder = Path(os.environ["ROLES"])
        self.file = self.folder / type(self).__name__.lower()

    def mood(self) -> str:
        return self.file.read_text() if self.file.exists() else ""

    def fail(self) -> Any:
        """Raises, exits, hangs or holds the interpreter's lock; what it returns is no answer of any role."""
        mood = self.mood()
        if mood == "raise":
            raise RuntimeError("the plugin's own bug")
        if mood == "exit":
            sys.exit(3)
        if mood == "interrupt":
            raise KeyboardInterrupt
        if mood == "gil":
            self.file.unlink()
            ctypes.PyDLL(None).sleep(GIL_SECONDS)  # PyDLL keeps the interpreter's lock
        while self.mood() == "hang":
            self.file.with_suffix(".hangs").touch()
            time.sleep(0.05)
        return "nonsense" if mood == "nonsense" else None


class Source(Moody):
    """Says that one volume of another machine is as full as the file ROLES/consumed says, in thousandths."""

    volumes: ClusterVolumes | None = None

    def read(self) -> Any:
        if (failed := self.fail()) is not None:
            return failed
        volume = Volume("elsewhere", "/data", CAPACITY, int((self.folder / "consumed").read_text()))
        if self.volumes is None or self.volumes.volumes != (volume,):
            self.volumes = ClusterVolumes((volume,))
        return self.volumes


class Policy(Moody):
    """Leaves the share that is free; it is asked after each read."""

    depends_on_time = True

    def quota_factor(self, volume: Volume) -> Any:
        return self.fail() or volume.free / volume.capacity


class Task(Moody):
    """Counts its runs; its period is wrong while it may not say it."""

    runs = 0

    @property
    def period(self) -> Any:
        return "nonsense" if self.mood() == "nonsense" and self.runs else timedelta(milliseconds=50)

    def run(self) -> None:
        self.runs += 1
        self.context.metrics.count("Outsider", "", "Runs", 1)
        self.fail()


class Neighbour(Task):
    """A second task, which goes on whatever the first one does; it leaves threads behind that never end."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        forever = threading.Event()
        threading.Thread(target=forever.wait).start()
        ThreadPoolExecutor(1).submit(forever.wait)
        context.start_thread("leaves", lambda: sys.exit(4))

    def run(self) -> None:
        self.context.metrics.count("Neighbour", "", "Runs", 1)
