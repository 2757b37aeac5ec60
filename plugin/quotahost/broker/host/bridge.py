"""How a host runs in the broker's process (JPype) or in one of its own (pipes), and when that one ends.

**In the broker's own process** the shim starts ``serve`` on its host thread (``serve.py`` in the jar), and JPype
carries the calls. No other module knows JPype.

**In a process of its own** (``python.process=child``) the shim starts ``main`` (``org.quotahost.host.Child``,
``child.py`` in the jar) and speaks with it by pipes, which ``child.py`` has moved away from standard input and output
(their frames: docs/reference/host-protocol.md). The process ends when the host does, when the pipe ends, and on Linux
when the broker's process or the shim's host thread ends, whatever Python does then. Signals that a terminal or systemd
sends to all of the broker's processes are left to the broker, which ends the host.
"""

import faulthandler
import os
import signal
import struct
import sys
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn

from quotahost.broker.host.logs import Logs, printed
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import encode
from quotahost.broker.host.protocol import Shim, Transport

_HEADER: Final = struct.Struct(">Iq")
_PR_SET_PDEATHSIG: Final = 1
#: Where memory runs out, the kernel ends this process first: the broker goes on without it.
_OOM_SCORE: Final = "500"


def run(transport: Transport, in_jvm: bool) -> None:
    shim = Shim(transport)
    # The log ends last, so that what the host's end logs still arrives; what is printed later goes nowhere.
    with redirect_stdout(printed()), redirect_stderr(printed()), Logs(shim) as logs:
        Host(shim, in_jvm=in_jvm, logs=logs).run()


def _take_signals(do: Any) -> None:
    for sent_to_all in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent_to_all, do)


# A process that a plugin forks ends by SIGTERM, as multiprocessing's terminate() expects; its parent doesn't. Once for
# each interpreter, in which one host may follow another.
os.register_at_fork(after_in_child=partial(_take_signals, signal.SIG_DFL))


# ---- in the broker's own process -------------------------------------------------------------------------------


def serve() -> None:
    """Run the host in the broker's own process until the broker closes it. The shim calls this on its host thread."""
    import jpype  # here, since a host in a process of its own has no JVM to join

    run(_InProcess(jpype), in_jvm=True)


class _InProcess:
    """The transport by JPype: one method of Java's.

    It answers with bytes and throws nothing: JPype makes a Python class of each Java class that it meets, and two
    threads that make one at the same time, or one that does so while the JVM shuts down, crash the broker.
    """

    def __init__(self, jpype: Any) -> None:
        # On the host thread, as the only one: the classes are made here.
        self._call = jpype.JClass("org.quotahost.host.PythonHost").call
        self._thread = jpype.JClass("java.lang.Thread")
        self._here = threading.local()
        self._here.attached = None  # the host thread is Java's own

    def ask(self, message: bytes) -> bytes:
        if not hasattr(self._here, "attached"):
            self._here.attached = _Attached(self._thread)
        return bytes(memoryview(self._call(message)))

    def tell(self, message: bytes) -> None:
        self.ask(message)


class _Attached:
    """A thread of Python's that JPype has attached to the JVM; it leaves with the values of the thread, at its end."""

    def __init__(self, thread: Any) -> None:
        self._thread = thread

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the JVM has ended, and nothing is attached any more
            self._thread.detach()


# ---- in a process of its own -----------------------------------------------------------------------------------


def main(read: int, write: int, parent: int) -> NoReturn:
    """Run the host until the broker closes it, and end the process; ``parent`` is the broker's process id."""
    _die_with(parent)
    # A stack of each thread, should native code crash: the shim logs what comes by standard error.
    faulthandler.enable()
    _take_signals(lambda *_: None)
    with suppress(OSError):  # there is no /proc, or it is read-only
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    pipe = Pipe(read, write)
    code = 0
    try:
        run(pipe, in_jvm=False)
    except BaseException:
        pipe.ask(encode(["refuse", traceback.format_exc()]))
        code = 1
    # Without the end of the interpreter, which waits for threads that a plugin has left behind.
    os._exit(code)


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes  # here, since a host in the broker's own process has no use for it

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


class Pipe:
    """The transport by a pair of pipes: any thread calls, and one hands each answer to the one that waits for it."""

    def __init__(self, read: int, write: int) -> None:
        # A process that a plugin forks must not hold the shim's end of them open.
        os.register_at_fork(after_in_child=lambda: os.closerange(min(read, write), max(read, write) + 1))
        self._in, self._out = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self._numbers = count(1)
        self._waiting: dict[int, SimpleQueue[bytes]] = {}
        self._sends = threading.RLock()  # a plugin's __del__ or signal handler may come in between, and show a number
        threading.Thread(target=self._read, name="quotahost-answers", daemon=True).start()

    def ask(self, message: bytes) -> bytes:
        number, answer = next(self._numbers), SimpleQueue[bytes]()
        self._waiting[number] = answer
        self._send(number, message)
        return answer.get()

    def tell(self, message: bytes) -> None:
        self._send(0, message)

    def _send(self, number: int, message: bytes) -> None:
        with self._sends:
            self._out.write(_HEADER.pack(len(message), number) + message)
            self._out.flush()

    def _read(self) -> NoReturn:
        try:
            while header := self._in.read(_HEADER.size):
                length, number = _HEADER.unpack(header)
                self._waiting.pop(number).put(self._in.read(length))
        except Exception:  # a plugin has closed the pipe, or taken all memory
            traceback.print_exc(file=sys.__stderr__)  # the log goes by the pipe
        finally:
            os._exit(0)  # the broker has ended, or closed its end
