"""Finds the brokers of this machine by their admin sockets, and asks one of them.

A broker with quotahost listens on a Unix domain socket that only its own user can open
(``org.quotahost.host.AdminSocket``): by default ``quotahost-UID/broker-NODE-PID.sock`` in ``/tmp``. A question is a
line of words, percent-encoded, with spaces between them; the answer is a line of JSON. No request of a client waits for
it, and Java answers while the Python host hangs.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

#: Seconds: Java waits 8 s for the Python host where a question needs it, and a JVM that collects garbage answers late.
TIMEOUT: Final = 20.0
_NAME: Final = re.compile(r"broker-(-?\d+)-(\d+)\.sock")
_LISTENING: Final = Path("/proc/net/unix")  # Linux' list of all sockets in this network namespace, wherever they lie
_DIRECTORY: Final = "quotahost-"  # followed by the id of the user
_CHUNK: Final = 1 << 16  # bytes


class NotAnswered(Exception):
    """A socket can't be asked; the text says why."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of this machine: its process, its node id, and its socket."""

    pid: int
    node: str
    path: Path


def running(refused: list[str]) -> list[Broker]:
    """The brokers that this user may ask.

    ``refused`` gets a line for each other one.
    """
    found: dict[int, Broker] = {}
    for path in _candidates():
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[2]) in found:
            continue
        node, pid = match[1], int(match[2])
        place = _reachable(path, pid)
        if place is None:
            continue
        try:
            _check(place, pid)
        except NotAnswered as problem:
            refused.append(f"pid {pid} (broker {node}): {problem}")
        else:
            found[pid] = Broker(pid, node, place)
    return sorted(found.values(), key=lambda broker: broker.pid)


class Connection:
    """A connection to one broker."""

    def __init__(self, broker: Broker, timeout: float = TIMEOUT) -> None:
        """Connect; no answer may take longer than ``timeout`` seconds.

        Raises:
            NotAnswered: nobody listens there, or somebody else does.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._rest = b""
        try:
            self._socket.connect(str(broker.path))
            if (uid := _listener(self._socket)) is not None and not _is_believed(uid, broker.pid):
                raise NotAnswered(f"user {uid} listens there")
        except OSError as error:
            self._socket.close()
            raise NotAnswered(_reason(error)) from None
        except NotAnswered:
            self._socket.close()
            raise

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def ask(self, *words: str) -> Any:
        """What the broker answers to a question.

        Raises:
            NotAnswered: it doesn't answer, or says that it can't.
        """
        # What isn't Unicode, as half a surrogate pair, can be in no name that Kafka knows.
        line = " ".join(quote(word, safe="", errors="replace") for word in words)
        try:
            self._socket.sendall(f"{line}\n".encode())
            answer = json.loads(self._line())
        except TimeoutError:
            raise NotAnswered(f"no answer within {self._socket.gettimeout():.0f} s") from None
        except OSError as error:
            raise NotAnswered(_reason(error)) from None
        except ValueError as error:
            raise NotAnswered(f"its answer is no JSON ({error})") from None
        if isinstance(answer, dict) and "error" in answer:
            raise NotAnswered(str(answer["error"]))
        return answer

    def _line(self) -> bytes:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = self._socket.recv(_CHUNK)
            if not part:
                raise ConnectionResetError("the broker has closed the connection")
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line


# ---- where sockets may be ----


def _candidates() -> Iterator[Path]:
    """Paths that may be sockets of brokers. Those of brokers that have ended may be among them."""
    with suppress(OSError):
        lines = _LISTENING.read_text(errors="replace").splitlines()
        yield from {Path(line.split()[-1]) for line in lines if line.endswith(".sock") and " /" in line}
    own = os.geteuid()
    for place in dict.fromkeys((os.environ.get("TMPDIR", "/tmp"), "/tmp")):
        for directory in Path(place).glob(_DIRECTORY + ("*" if own == 0 else str(own))):
            with suppress(OSError):
                yield from sorted(directory.glob("broker-*.sock"))


def _reachable(path: Path, pid: int) -> Path | None:
    """The path by which we reach a socket; None if it is gone, or in another container."""
    # A service with PrivateTmp has a /tmp of its own.
    inside = Path(f"/proc/{pid}/root", *path.parts[1:])
    for place in (path, inside):
        try:
            found = os.lstat(place)
        except PermissionError:
            return place
        except OSError:
            continue
        if stat.S_ISSOCK(found.st_mode) and is_alive(pid):
            return place
    return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _check(path: Path, pid: int) -> None:
    """Raise NotAnswered if the socket isn't one of the broker's."""
    try:
        owner = os.lstat(path).st_uid
    except OSError as error:
        raise NotAnswered(_reason(error)) from None
    if not _is_believed(owner, pid):
        raise NotAnswered(f"{path} belongs to user {owner}")


def _is_believed(uid: int, pid: int) -> bool:
    """Whether a user may speak for the process: anybody can put a socket into /tmp, and root asks for all."""
    own = os.geteuid()
    return uid == 0 or uid == (_owner_of(pid) if own == 0 else own)


def _listener(connected: socket.socket) -> int | None:
    """The user who listens at the other end; None where the system doesn't tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _owner_of(pid: int) -> int | None:
    """The user as whom a process runs."""
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):  # macOS has no /proc
        command = ["/bin/ps", "-o", "uid=", "-p", str(pid)]
        return int(subprocess.run(command, capture_output=True, timeout=5, check=False).stdout)
    return None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
