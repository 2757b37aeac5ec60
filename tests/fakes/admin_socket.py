"""A fake of a broker's admin socket, which returns the answers that a test has set."""

import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.fakes import dump


class FakeAdminSocket:
    """Listens like ``org.quotahost.host.AdminSocket``, in the given directory.

    Attributes:
        answers: the answers by the question's first word; a question without an answer is answered with an error.
        questions: the words of every question.
        path: the socket's file.
    """

    def __init__(self, directory: Path, node: str = "1", pid: int | None = None) -> None:
        self.answers: dict[str, Any] = {
            "state": dump.state(), "client": dump.client(), "uses": dump.uses(dump.row()), "usage": dump.usage(),
            "gauges": [], "marks": [],
        }  # fmt: skip
        self.questions: list[list[str]] = []
        self.path = directory / f"broker-{node}-{pid or os.getpid()}.sock"
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(self.path))
        self._server.listen()
        self._open: list[socket.socket] = []
        self._listening = threading.Thread(target=self._accept, daemon=True)
        self._listening.start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._listening.join(10)  # the system lists the socket until this thread has ended
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connected, _ = self._server.accept()
                self._open.append(connected)
                threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        with suppress(OSError), connected, connected.makefile("rb") as lines:
            for line in lines:
                words = [unquote(word) for word in line.decode().rstrip("\n").split(" ")]
                self.questions.append(words)
                answer = self.answers.get(words[0], {"error": "the Python host did not answer"})
                text = answer if isinstance(answer, str) else json.dumps(answer)
                connected.sendall(text.encode() + b"\n")


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose path leaves room for a socket's name: path and name together may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="qh-", dir="/tmp") as name:
        yield Path(name)
