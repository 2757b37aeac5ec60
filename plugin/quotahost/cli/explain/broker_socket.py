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
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from quotahost.base.errors import Unusable
from quotahost.broker.host.dump import Ask
from quotahost.cli.console import one_line

#: Seconds for an answer, or the next piece of it: Java waits 8 s for the Python host where a question needs it, and a
#: JVM that collects garbage answers late.
TIMEOUT: Final = 20.0
_MOST: Final = 64 << 20  # bytes of one answer; that about 50,000 clients has some 30 MB
_NAME: Final = re.compile(r"broker-(-?\d{1,10})-(\d{1,10})\.sock")
_LISTENING: Final = Path("/proc/net/unix")  # Linux' list of all sockets in this network namespace, wherever they lie
_LONGEST: Final = 2000  # characters of what a broker has sent in the place of an answer
#: What an answer of another version raises where it is read.
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
    """Connect to one broker; within it, its answers are asked for and read.

    Raises Unusable if nobody listens there, or somebody else; if the broker doesn't answer, or says that it can't; if
    an answer has another form than of this version.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, connection.makefile("rb") as answers:
        connection.settimeout(TIMEOUT)
        with _answering(broker):
            connection.connect(str(broker.path))
            if (uid := _listener(connection)) is not None and not _is_believed(uid, broker.pid):
                raise PermissionError(f"user {uid} listens there")

        def ask(*words: str) -> Any:
            # What isn't Unicode, as half a surrogate pair, can be in no name that Kafka knows.
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
                f"the quotahost of {broker} isn't of this version ({one_line(str(problem), _LONGEST)})",
                "quotahost install --kafka-home DIR, and restart the broker",
            ) from None


@contextmanager
def _answering(broker: Broker) -> Iterator[None]:
    """Within it, whatever keeps the broker from answering is raised as Unusable."""
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
    raise Unusable(f"{broker} can't be asked: {one_line(problem, _LONGEST)}", remedy) from None


# ---- which broker ----------------------------------------------------------------------------------------------


def connect(which: str = "") -> AbstractContextManager[Ask]:
    """Connect to a broker by its process id, by ``broker:ID``, or to the only one. Raises Unusable if it can't."""
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
    """The brokers that this user may ask: those whose socket belongs to the user of their process."""
    brokers: dict[int, Broker] = {}
    for path in _candidates():
        match = _NAME.fullmatch(path.name)
        place = _reachable(path, int(match[2])) if match else None
        if match is not None and place is not None:
            brokers.setdefault(int(match[2]), Broker(int(match[2]), match[1], place))
    return sorted(brokers.values())


def _candidates() -> Iterator[Path]:
    """Paths that may be sockets of brokers; those of brokers that have ended are among them on other systems alone."""
    with suppress(OSError):
        lines = _LISTENING.read_text(errors="replace").splitlines()
        yield from {Path(line.split()[-1]) for line in lines if line.endswith(".sock") and " /" in line}
        return
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
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):  # macOS has no /proc
        command = ["/bin/ps", "-o", "uid=", "-p", str(pid)]
        return int(subprocess.run(command, capture_output=True, timeout=5, check=False).stdout)
    return None
