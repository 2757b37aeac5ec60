"""``explain``, ``top`` and ``doctor`` find this machine's brokers by their admin sockets, and ask them.

A question to ``org.quotahost.host.AdminSocket`` is a line of percent-encoded words with spaces between them; the answer
is a line of JSON. No client's request waits for it, and Java answers even while the Python host hangs.

Any user can put a socket into ``/tmp``. So a socket and the process that listens on it must belong to the caller or to
root; if the caller is root, to the user of the process whose id is in the socket's name. That user may still send false
answers, so an answer is only data: it is bounded in bytes, parsed as JSON, and printed through ``console``.
"""

import json
import os
import re
import socket
import stat
import struct
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from quotahost.base.errors import Unusable
from quotahost.broker.host.dump import Ask
from quotahost.cli.console import one_line

#: Seconds for an answer, or the next piece of it. Java waits 8 s for the Python host if a question needs the host, and
#: a garbage collection delays Java's answer.
TIMEOUT: Final = 20.0
_MOST: Final = 64 << 20  # bytes of one answer; the answer about 50,000 clients has some 30 MB
_NAME: Final = re.compile(r"broker-(-?\d{1,10})-(\d{1,10})\.sock")
_LISTENING: Final = Path("/proc/net/unix")  # on Linux, all Unix sockets of this network namespace, in any directory
_LONGEST: Final = 2000  # characters of an error that a broker has sent instead of an answer
#: The exceptions that an answer of another version raises when it is read.
UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RecursionError)


class Broker(NamedTuple):
    """A broker of this machine: its process, its node id, and its socket."""

    pid: int
    node: str
    path: Path

    def __str__(self) -> str:
        return f"pid {self.pid} (broker {self.node})"


@contextmanager
def connected(broker: Broker) -> Iterator[Ask]:
    """Connect to one broker; the ``with`` block asks questions and reads the answers.

    Raises Unusable if no process listens, or another user's process; if the broker doesn't answer, or answers with an
    error; and if the block can't read an answer because it is of another version.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, connection.makefile("rb") as answers:
        connection.settimeout(TIMEOUT)
        with _answering(broker):
            connection.connect(str(broker.path))
            if (uid := _listener(connection)) is not None and not _is_believed(uid, broker.pid):
                raise PermissionError(f"user {uid} listens on its socket")

        def ask(*words: str) -> Any:
            # Invalid Unicode, such as half a surrogate pair, is replaced: no name in Kafka contains it.
            line = " ".join(quote(word, safe="", errors="replace") for word in words)
            with _answering(broker):
                connection.sendall(f"{line}\n".encode())
                told = answers.readline(_MOST)
                if not told.endswith(b"\n"):
                    raise ConnectionResetError("its answer has no end")
                answer = json.loads(told)
                if isinstance(answer, dict) and "error" in answer:
                    raise OSError(str(answer["error"]))
                return answer

        try:
            yield ask
        except UNREADABLE as problem:
            raise Unusable(
                f"{broker} runs another version of quotahost ({one_line(str(problem), _LONGEST)})",
                "quotahost install --kafka-home DIR, and restart the broker",
            ) from None


@contextmanager
def _answering(broker: Broker) -> Iterator[None]:
    """Raise Unusable for every error that keeps the broker from answering within the ``with`` block."""
    try:
        yield
        return
    except TimeoutError:
        problem = f"no answer within {TIMEOUT:.0f} s"
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        problem = f"its answer is not JSON ({error})"
    remedy = "see whether it still runs, and what its log says"
    raise Unusable(f"asking {broker} failed: {one_line(problem, _LONGEST)}", remedy) from None


# ---- which broker ----------------------------------------------------------------------------------------------


def connect(which: str = "") -> AbstractContextManager[Ask]:
    """Connect to a broker by its process id, by ``broker:ID``, or to the only one. Raises Unusable unless one fits."""
    brokers = [broker for broker in running() if which in ("", str(broker.pid), f"broker:{broker.node}")]
    if len(brokers) == 1:
        return connected(brokers[0])
    if brokers:
        several = ", ".join(map(str, brokers))
        raise Unusable(f"several brokers with quotahost run here: {several}", "choose: --pid PID or --broker-id N")
    raise Unusable(
        "no such broker with quotahost was found that this user may ask on this machine",
        "run this on the broker's machine, as the broker's user, in its container if it has one; look for "
        "quotahost.admin in the broker's log",
    )


def running() -> list[Broker]:
    """The brokers that this user may ask, because their socket belongs to the right user (:func:`_is_believed`)."""
    brokers: dict[int, Broker] = {}
    for path in _candidates():
        match = _NAME.fullmatch(path.name)
        place = _reachable(path, int(match[2])) if match else None
        if match is not None and place is not None:
            brokers.setdefault(int(match[2]), Broker(int(match[2]), match[1], place))
    return sorted(brokers.values())


def _candidates() -> Iterator[Path]:
    """Paths that may be sockets of brokers. On other systems than Linux, some may be of brokers that have ended."""
    with suppress(OSError):
        lines = _LISTENING.read_text(errors="replace").splitlines()
        yield from {Path(line.split()[-1]) for line in lines if line.endswith(".sock") and " /" in line}
        return
    user = os.geteuid()
    for place in dict.fromkeys((os.environ.get("TMPDIR", "/tmp"), "/tmp")):
        with suppress(OSError):
            yield from sorted(Path(place).glob(f"quotahost-{'*' if user == 0 else user}/broker-*.sock"))


def _reachable(path: Path, pid: int) -> Path | None:
    """The path by which we reach a socket; None if it is gone, in another container, or of a wrong user."""
    # A systemd service with PrivateTmp has its own /tmp, which /proc/PID/root contains.
    for place in (path, Path(f"/proc/{pid}/root", *path.parts[1:])):
        with suppress(OSError):
            status = os.lstat(place)
            if stat.S_ISSOCK(status.st_mode) and _owner_of(pid) is not None and _is_believed(status.st_uid, pid):
                return place
    return None


def _is_believed(uid: int, pid: int) -> bool:
    """Whether a user may answer for a process: if the caller is root, the process's user; else the caller and root."""
    user = os.geteuid()
    return uid == _owner_of(pid) if user == 0 else uid in (0, user)


def _listener(connected: socket.socket) -> int | None:
    """The user whose process listens at the other end; None if the operating system doesn't tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _owner_of(pid: int) -> int | None:
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):  # macOS has no /proc
        command = ["/bin/ps", "-o", "uid=", "-p", str(pid)]
        return int(subprocess.run(command, capture_output=True, timeout=5, check=False).stdout)
    return None
