"""A supplier that harms its own process in the way that a file names, which only a process of its own survives."""

import ctypes
import os
import sys
import time
from pathlib import Path

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType

RATE = 5_000_000.0


class Crashing:
    """Ends or stops its process, in the way that the file FAULT names, for client-ids that start with "bad"."""

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["FAULT"])
        if self._file.read_text() == "build":
            raise RuntimeError("it is broken")

    def quota(self, client: Client, quota_type: QuotaType) -> Quota:
        mode = self._file.read_text() if client.client_id.startswith("bad") else "fine"
        if mode != "fine":
            self._file.write_text("fine")  # once
        if mode == "segfault":
            ctypes.string_at(0)
        elif mode == "abort":
            os.abort()
        elif mode == "exit":
            os._exit(3)
        elif mode == "fork":  # its copy goes on, as a worker of multiprocessing's may
            if os.fork():
                os._exit(3)
            time.sleep(600)
            os._exit(0)
        elif mode == "print":
            print("printed by a plugin, with hunter2-secret", "\0" * 100, sys.stdin.read(), "x" * 100_000)
            os.write(1, b"written to descriptor 1\n")
        elif mode == "gil":
            ctypes.PyDLL(None).sleep(3600)  # PyDLL keeps the GIL
        return Quota(RATE)
