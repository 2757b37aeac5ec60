"""``serve`` runs the host in the broker's process (JPype), and ``main`` runs it in a process of its own (pipes).

**In the broker's own process** the shim calls ``serve`` on its host thread (``serve.py`` in the jar), and JPype carries
the calls. No other module uses JPype.

**In a process of its own** (``python.process=child``) the shim starts ``main`` (``org.quotahost.host.Child``,
``child.py`` in the jar) and exchanges messages by two pipes (docs/reference/host-protocol.md), which ``child.py`` has
moved away from standard input and output. The process ends when the host or the pipe ends, and on Linux also when the
broker's process or the shim's host thread ends, whatever Python does then. The process ignores the signals that a
terminal or systemd sends to all processes of the broker, because the broker ends the host.
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
#: The most there is: if memory runs out, the kernel kills this process before a broker with 0, however large that is.
_OOM_SCORE: Final = "1000"


def run(transport: Transport, in_jvm: bool) -> None:
    shim = Shim(transport)
    # The log ends last, so that it still gets the lines of the host's end. Later output is lost.
    with redirect_stdout(printed()), redirect_stderr(printed()), Logs(shim) as logs:
        Host(shim, in_jvm=in_jvm, logs=logs).run()


def _take_signals(do: Any) -> None:
    for sent_to_all in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent_to_all, do)


# A process that a plugin forks inherits the signal handlers, but SIGTERM must end it: multiprocessing's terminate()
# sends SIGTERM. This runs once for each interpreter, in which several hosts may follow each other.
os.register_at_fork(after_in_child=partial(_take_signals, signal.SIG_DFL))


# ---- in the broker's own process -------------------------------------------------------------------------------

#: Each thread's ``_Attached``. It outlives every host: if a host's end deleted those of the threads that go on, the
#: thread that deletes them would detach itself, and the broker would crash if this thread was calling Java.
_here: Final = threading.local()


def serve() -> None:
    """Run the host in the broker's own process until the broker closes it. The shim calls this on its host thread."""
    import jpype  # here, because a host in a process of its own has no JVM

    run(_InProcess(jpype), in_jvm=True)


class _InProcess:
    """The transport by JPype, which calls one Java method.

    The method returns bytes and never throws. JPype creates a Python class for each Java class at its first use. If two
    threads do this at the same time, or if one does it while the JVM shuts down, the broker crashes.
    """

    def __init__(self, jpype: Any) -> None:
        # This runs on the host thread, before any other thread calls Java, and JPype creates its classes here.
        self._call = jpype.JClass("org.quotahost.host.PythonHost").call
        self._thread = jpype.JClass("java.lang.Thread")
        _here.attached = None  # the host thread is a Java thread, so nothing must detach it

    def ask(self, message: bytes) -> bytes:
        if not hasattr(_here, "attached"):
            _here.attached = _Attached(self._thread)
        return bytes(memoryview(self._call(message)))

    def tell(self, message: bytes) -> None:
        self.ask(message)


class _Attached:
    """Detaches a thread that JPype attached to the JVM. The thread's end deletes this object (``threading.local``)."""

    def __init__(self, thread: Any) -> None:
        self._thread = thread

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the JVM has ended, and no thread is attached any more
            self._thread.detach()


# ---- in a process of its own -----------------------------------------------------------------------------------


def main(read: int, write: int, parent: int) -> NoReturn:
    """Run the host until the broker closes it, and end the process; ``parent`` is the broker's process id."""
    _die_with(parent)
    # If native code crashes, faulthandler writes each thread's stack to standard error, and the shim logs it.
    faulthandler.enable()
    _take_signals(lambda *_: None)
    with suppress(OSError):  # /proc doesn't exist, or is read-only
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    pipe = Pipe(read, write)
    code = 0
    try:
        run(pipe, in_jvm=False)
    except BaseException:
        pipe.ask(encode(["refuse", traceback.format_exc()]))
        code = 1
    # Skip the interpreter's own end, which would wait for threads that a plugin has left behind.
    os._exit(code)


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes  # here, because a host in the broker's own process doesn't need it

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the broker ended before prctl() was called
        os._exit(1)


class Pipe:
    """The transport by two pipes. Any thread may call; the reading thread gives each answer to the calling thread."""

    def __init__(self, read: int, write: int) -> None:
        # A process that a plugin forks must not keep the pipes open.
        os.register_at_fork(after_in_child=lambda: os.closerange(min(read, write), max(read, write) + 1))
        self._in, self._out = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self._numbers = count(1)
        self._waiting: dict[int, SimpleQueue[bytes]] = {}
        self._sends = threading.RLock()  # a __del__ or signal handler of a plugin may interrupt _send() and call it
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
        except Exception:  # a plugin has closed the pipe, or there is no memory left
            traceback.print_exc(file=sys.__stderr__)  # not to the log, which needs the pipe
        finally:
            os._exit(0)  # the broker has ended, or has closed its end of the pipe
