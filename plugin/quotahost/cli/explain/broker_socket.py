"""Finds this machine's brokers by their admin sockets, believes the process's own user alone, and asks one of them.

A question to ``org.quotahost.host.AdminSocket`` is a line of words, percent-encoded, with spaces between them; the
answer is a line of JSON. No request of a client waits for it, and Java answers while the Python host hangs.

Anybody can put a socket into ``/tmp``, so a socket is asked only if it, and whoever listens there, belongs to the user
of the process that its name has; for root that may be any user. What such a user's process answers may be a lie, and is
data alone: bounded in bytes, read as JSON, and shown through ``console``.
"""

import json
import os
import re
import socket
import stat
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

from quotahost.base.errors import Unusable
from quotahost.cli.console import one_line

#: Seconds for an answer, or the next piece of it: Java waits 8 s for the Python host where a question needs it, and a
#: JVM that collects garbage answers late.
TIMEOUT: Final = 20.0
_MOST: Final = 64 << 20  # bytes of one answer; that about 50,000 clients has some 30 MB
_NAME: Final = re.compile(r"broker-(-?\d{1,10})-(\d{1,10})\.sock")
_LISTENING: Final = Path("/proc/net/unix")  # Linux' list of all sockets in this network namespace, wherever they lie
_LONGEST: Final = 2000  # characters of a line of an error; a broker may have sent what is in it
#: What an answer of another version raises where it is read.
UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RecursionError)


class Unanswered(Unusable):
    """No broker answered."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(one_line(problem, _LONGEST), one_line(remedy, _LONGEST))


class Broker(NamedTuple):
    """A broker of this machine: its process, its node id, and its socket."""

    pid: int
    node: str
    path: Path

    def __str__(self) -> str:
        return f"pid {self.pid} (broker {self.node})"


class BrokerSocket:
    """A connection to one broker. Use it in a ``with`` block, in which its answers are read."""

    def __init__(self, broker: Broker) -> None:
        """Connect. Raises Unanswered if nobody listens there, or somebody else."""
        self._broker = broker
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(TIMEOUT)
        try:
            with self._answering():
                self._socket.connect(str(broker.path))
                if (uid := _listener(self._socket)) is not None and not _is_believed(uid, broker.pid):
                    raise PermissionError(f"user {uid} listens there")
                self._answers = self._socket.makefile("rb")
        except Unanswered:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, problem: BaseException | None, _traceback: object) -> None:
        """Close it. Raises Unanswered if an answer, which the block has read, has another form than of this version."""
        self._answers.close()
        self._socket.close()
        if isinstance(problem, UNREADABLE):
            raise Unanswered(
                f"the quotahost of {self._broker} isn't of this version ({problem})",
                "quotahost install --kafka-home DIR, and restart the broker",
            ) from None

    def ask(self, *words: str) -> Any:
        """What the broker answers to a question. Raises Unanswered if it doesn't, or says that it can't."""
        # What isn't Unicode, as half a surrogate pair, can be in no name that Kafka knows.
        line = " ".join(quote(word, safe="", errors="replace") for word in words)
        with self._answering():
            self._socket.sendall(f"{line}\n".encode())
            told = self._answers.readline(_MOST)
            if not told.endswith(b"\n"):
                raise ConnectionResetError("its answer has no end")
            answer = json.loads(told)
            if isinstance(answer, dict) and "error" in answer:
                raise OSError(str(answer["error"]))
            return answer

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Within it, whatever keeps the broker from answering is raised as Unanswered."""
        try:
            yield
            return
        except TimeoutError:
            problem = f"no answer within {TIMEOUT:.0f} s"
        except OSError as error:
            problem = error.strerror or str(error)
        except (ValueError, RecursionError) as error:
            problem = f"its answer is no JSON ({error})"
        remedy = "see whether it still runs, and what its log says"
        raise Unanswered(f"{self._broker} can't be asked: {problem}", remedy) from None


# ---- which broker ----------------------------------------------------------------------------------------------


def connect(which: str = "") -> BrokerSocket:
    """Connect to a broker by its process id, by ``broker:ID``, or to the only one. Raises Unanswered if it can't."""
    brokers = [broker for broker in running() if which in ("", str(broker.pid), f"broker:{broker.node}")]
    if len(brokers) == 1:
        return BrokerSocket(brokers[0])
    if brokers:
        several = ", ".join(map(str, brokers))
        raise Unanswered(f"several brokers with quotahost run here: {several}", "choose: --pid PID or --broker-id N")
    raise Unanswered(
        "no such broker with quotahost was found that this user may ask on this machine",
        "run this on the broker's machine, as the broker's user, in its container if it has one; look for "
        "quotahost.admin in the broker's log",
    )


def running() -> list[Broker]:
    """The brokers that this user may ask: those whose socket belongs to the user of their process."""
    brokers: dict[int, Broker] = {}
    for path in _candidates():
        match = _NAME.fullmatch(path.name)
        place = _reachable(path, int(match[2])) if match else None
        if match is not None and place is not None:
            brokers.setdefault(int(match[2]), Broker(int(match[2]), match[1], place))
    return sorted(brokers.values())


def _candidates() -> Iterator[Path]:
    """Paths that may be sockets of brokers. Those of brokers that have ended may be among them."""
    with suppress(OSError):
        lines = _LISTENING.read_text(errors="replace").splitlines()
        yield from {Path(line.split()[-1]) for line in lines if line.endswith(".sock") and " /" in line}
    user = os.geteuid()
    for place in dict.fromkeys((os.environ.get("TMPDIR", "/tmp"), "/tmp")):
        with suppress(OSError):
            yield from sorted(Path(place).glob(f"quotahost-{'*' if user == 0 else user}/broker-*.sock"))


def _reachable(path: Path, pid: int) -> Path | None:
    """The path by which we reach a socket; None if it is gone, in another container, or not the process's user's."""
    # A service with PrivateTmp has a /tmp of its own.
    for place in (path, Path(f"/proc/{pid}/root", *path.parts[1:])):
        with suppress(OSError):
            status = os.lstat(place)
            if stat.S_ISSOCK(status.st_mode) and _owner_of(pid) is not None and _is_believed(status.st_uid, pid):
                return place
    return None


def _is_believed(uid: int, pid: int) -> bool:
    """Whether a user may speak for the process. Root asks for all, and believes each process's own user alone."""
    user = os.geteuid()
    return uid == _owner_of(pid) if user == 0 else uid in (0, user)


def _listener(connected: socket.socket) -> int | None:
    """The user who listens at the other end; None where the system doesn't tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _owner_of(pid: int) -> int | None:
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):
        if _LISTENING.exists():
            return Path(f"/proc/{pid}").stat().st_uid
        # macOS has no /proc. On Linux a program for each socket that an ended broker left would take seconds.
        command = ["/bin/ps", "-o", "uid=", "-p", str(pid)]
        return int(subprocess.run(command, capture_output=True, timeout=5, check=False).stdout)
    return None
