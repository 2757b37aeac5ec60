"""These plugins are as a user writes them; some of them fail as the files in the folder ROLES say."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from quotahost.api import Context
from quotahost.model import Client, ClusterVolumes, Limit, LimitType, Quota, QuotaType, Scope, Volume

RATE = 5_000_000.0
CAPACITY = 1000


class Moody:
    """A plugin that fails as the file ROLES/NAME says (NAME is that of its class); it works while the file is empty."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.folder = Path(os.environ["ROLES"])
        self.file = self.folder / type(self).__name__.lower()

    def mood(self) -> str:
        return self.file.read_text() if self.file.exists() else ""

    def fail(self) -> Any:
        """Raises, exits, hangs or harms its process; a value that it returns is invalid for each role."""
        mood = self.mood()
        if mood == "raise":
            raise RuntimeError("the plugin's own bug")
        if mood == "exit":
            sys.exit(3)
        if mood == "interrupt":
            raise KeyboardInterrupt
        if mood in HARMS:
            self.file.write_text("")  # only once, because the next Python gets the same question
            HARMS[mood]()
        while self.mood() == "hang":
            self.file.with_suffix(".hangs").touch()
            time.sleep(0.05)
        return {"nonsense": "nonsense", "zero": 0}.get(mood)


def fork() -> None:
    """Ends the process, while its copy goes on, as a worker of multiprocessing may."""
    if os.fork():
        os._exit(3)
    time.sleep(600)
    os._exit(0)


def end_worker() -> None:
    fork = get_context("fork")
    begun = fork.Event()
    worker = fork.Process(target=lambda: begun.set() or time.sleep(600))
    worker.start()
    begun.wait()
    worker.terminate()
    worker.join()


def print_much() -> None:
    print("printed by a plugin, with hunter2-secret", "\0" * 100, sys.stdin.read(), "x" * 100_000)
    os.write(1, b"written to descriptor 1\n")


HARMS: dict[str, Callable[[], object]] = {
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "fork": fork,
    "end-worker": end_worker,
    "print": print_much,
    # PyDLL keeps the interpreter's lock.
    "gil": lambda: ctypes.PyDLL(None).sleep(8),
    "gil-for-good": lambda: ctypes.PyDLL(None).sleep(3600),
}


class Supplier(Moody):
    """Gives all clients the same quota; fails only for clients whose client-id begins with "faulty"."""

    def quota(self, client: Client, quota_type: QuotaType) -> Any:
        if client.client_id.startswith("faulty"):
            if self.mood() == "long-group":
                return Quota(1.0, Scope.group("g" * 70_000_000))
            if (failed := self.fail()) is not None:
                return failed
        return Quota(RATE)

    def tick(self) -> None:
        if self.mood() == "slow-tick":
            time.sleep(5)
        if self.mood() == "end-host":
            self.file.write_text("")
            end_host()


def end_host() -> None:
    """Breaks the host's own loop, as a bug of the host would; a plugin's failure can't do this."""
    frame = sys._getframe()
    while frame.f_code.co_name != "_serve":
        assert frame.f_back
        frame = frame.f_back
    frame.f_locals["self"]._factor = None


class Source(Moody):
    """Reports one volume of another machine, as full as the file ROLES/consumed says, in thousandths."""

    def read(self) -> Any:
        if (failed := self.fail()) is not None:
            return failed
        consumed = int((self.folder / "consumed").read_text())
        return ClusterVolumes((Volume("elsewhere", "/data", CAPACITY, consumed),))


class Policy(Moody):
    """Returns the free share of the volume as the factor; the host asks it after each read."""

    depends_on_time = True

    def quota_factor(self, volume: Volume) -> Any:
        return self.fail() or volume.free / volume.capacity


class Task(Moody):
    """Counts its runs; after the first run its period is invalid while its file says "nonsense"."""

    runs = 0

    @property
    def period(self) -> Any:
        return "nonsense" if self.mood() == "nonsense" and self.runs else timedelta(milliseconds=50)

    def run(self) -> None:
        self.runs += 1
        self.context.metrics.count("Outsider", "", "Runs", 1)
        self.fail()


class Neighbour(Task):
    """A second task, which runs on whatever the first task does; it starts threads that never end."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        forever = threading.Event()
        threading.Thread(target=forever.wait).start()
        ThreadPoolExecutor(1).submit(forever.wait)
        context.start_thread("leaves", lambda: sys.exit(4))

    def run(self) -> None:
        self.context.metrics.count("Neighbour", "", "Runs", 1)


class Witness:
    """A supplier that gives no quota; it writes principal, tab, client-id of each question into the file WITNESS."""

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["WITNESS"])

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        with self._file.open("a") as file:
            file.write(f"{client.principal}\t{client.client_id}\n")
        return None


class Filling:
    """A factor source whose volumes a test fills. While the file FILLING begins with "hang", the host hangs.

    The file has a line for each volume: its name, the bytes consumed, and its topics, separated by blanks.
    """

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["FILLING"])

    def read(self) -> ClusterVolumes:
        while self._file.read_text().startswith("hang"):
            time.sleep(0.05)
        lines = [line.split() for line in self._file.read_text().splitlines()]
        soft, hard = Limit(LimitType.CONSUMED_BYTES, 100), Limit(LimitType.CONSUMED_BYTES, 200)
        return ClusterVolumes(
            tuple(
                Volume("3", name, CAPACITY, int(consumed), soft=soft, hard=hard, topics=frozenset(topics))
                for name, consumed, *topics in lines
            )
        )


# ---- suppliers that can't be built ----


class Roleless:
    def __init__(self, context: Context) -> None:
        pass


def ends_itself(context: Context) -> None:
    sys.exit(7)


def ends_the_process(context: Context) -> None:
    os._exit(9)


def takes_a_signal(context: Context) -> None:
    signal.signal(signal.SIGTERM, lambda *_: None)


def hangs_when_built(context: Context) -> None:
    time.sleep(3600)
