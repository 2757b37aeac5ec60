"""What the drivers of the Python libraries share: what they are told, when they send, what they print.

``tests/clients/libraries.py`` says what the lines mean.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_VALUE_BYTES = 1000
_lock = threading.Lock()


def report(event: str, **more: object) -> None:
    """Prints one line."""
    line = json.dumps({"event": event, "ms": int(time.time() * 1000), **more})
    with _lock:
        print(line, flush=True)


class Driver:
    """Sends numbered records, and counts those that are neither acknowledged nor failed."""

    def __init__(self, version: str) -> None:
        """Takes the spec from the command line, and prints the library's version."""
        self.spec: dict[str, Any] = json.loads(sys.argv[1])
        report("started", version=version)
        self.tuned = self.spec["Settings"] == "tuned"
        user = self.spec["User"]
        #: How kafka-python and aiokafka connect.
        self.connection = {
            "bootstrap_servers": self.spec["Bootstrap"],
            "client_id": user,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": user,
        }
        self.ended = False
        self.outstanding = 0  # records that are neither acknowledged nor failed
        self._sent = 0
        self._next = time.time()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self.ended = True

    def due(self) -> bool:
        """Whether a record is to be sent now."""
        return time.time() >= self._next and self.outstanding < self.spec["Outstanding"]

    def next_record(self) -> tuple[int, bytes]:
        """The number and the value of the record that is sent now."""
        number = self._sent
        self._sent += 1
        with _lock:
            self.outstanding += 1
        self._next = max(self._next + 1 / self.spec["Rate"], time.time() - 0.05)
        return number, f"{number:010d}".ljust(_VALUE_BYTES, "x").encode()

    def delivered(self, number: int, error: object = None) -> None:
        """The record was acknowledged, or with an error given up."""
        if error is None:
            report("acked", id=number)
        else:
            report("failed", id=number, error=str(error) or type(error).__name__)
        with _lock:
            self.outstanding -= 1

    def run(self, send: Callable[[int, bytes], None], poll: Callable[[], object] = lambda: None) -> None:
        """Sends until standard input ends, then waits for up to 30 s for the ends of all records."""
        while not self.ended:
            poll()
            if not self.due():
                time.sleep(0.001)
                continue
            send(*self.next_record())
        end = time.monotonic() + 30
        while self.outstanding > 0 and time.monotonic() < end:
            poll()
            time.sleep(0.01)
        self.finish()

    def finish(self) -> None:
        """Prints the last line and ends the process, whatever the library still does."""
        report("done", sent=self._sent)
        os._exit(0)


def created(create: Callable[[], object]) -> None:
    """Calls the library's admin, and prints what it says of the new topic."""
    try:
        create()
    except Exception as error:
        report("refused", error=f"{type(error).__name__}: {error}")
    else:
        report("created")
    os._exit(0)
