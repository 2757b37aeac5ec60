"""A supplier that fails in the way that a file names, and plugins that can't even be built."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from quotahost.api import Context
from quotahost.model import Client, Factor, Quota, QuotaType, Scope

ANSWERS: dict[str, Any] = {"nan": float("nan"), "negative": -1.0, "zero": 0, "text": "fast", "fine": Quota(5_000_000.0)}


class Faulty:
    """Fails in the way that the file FAULT names, for clients whose client-id starts with "faulty"."""

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["FAULT"])

    def _mode(self) -> str:
        return self._file.read_text().strip()

    def quota(self, client: Client, quota_type: QuotaType) -> Any:
        mode = self._mode() if client.client_id.startswith("faulty") else "fine"
        if mode == "raise":
            raise RuntimeError("the supplier's own bug")
        if mode == "exit":
            sys.exit(3)
        if mode == "interrupt":
            raise KeyboardInterrupt
        if mode == "bad-quota":
            return Quota(float("nan"))
        if mode == "long-group":
            return Quota(1.0, Scope.group("g" * 70_000_000))
        while self._mode() == "sleep":
            time.sleep(0.05)
        return ANSWERS.get(mode, ANSWERS["fine"])

    def tick(self) -> None:
        if self._mode() == "slow-tick":
            time.sleep(5)
        if self._mode() == "end-host":
            self._file.write_text("fine")
            end_host()


def end_host() -> None:
    """Breaks the host's own loop, as a bug of the host would; no failure of a plugin can."""
    frame = sys._getframe()
    while frame.f_code.co_name != "_serve":
        assert frame.f_back
        frame = frame.f_back
    frame.f_locals["self"]._factor = None


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


class FromFile:
    """A factor source that reports what the file FACTOR contains: a change without any of Kafka's own log lines."""

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["FACTOR"])

    def read(self) -> Factor:
        value = float(self._file.read_text() or "1")
        return Factor(value, "the file" if value < 1 else "")
