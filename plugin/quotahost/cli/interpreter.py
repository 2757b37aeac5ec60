"""The interpreter that the broker would start, asked in the very way in which the shim asks it."""

from __future__ import annotations

import inspect
import subprocess
from dataclasses import dataclass
from typing import Final

from quotahost import probe
from quotahost.properties import printable

_TIMEOUT: Final = 30.0  # seconds, as the shim's
_MORE: Final = """
print("prefix=" + sys.prefix)
for _name in ("LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED"):
    print("config=%s=%s" % (_name, sysconfig.get_config_var(_name)))
"""


class InterpreterError(RuntimeError):
    """It can't be run or is no Python."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What a Python tells of itself; "" for what it does not have."""

    asked: str
    executable: str
    prefix: str
    version: str
    libpython: str
    is_free_threaded: bool
    jpype: str
    quotahost: str
    config: tuple[str, ...]


def ask(executable: str) -> Interpreter:
    """Run the shim's probe with this interpreter.

    Raises:
        InterpreterError: it can't be run, doesn't answer, or is too old to answer.
    """
    lines = [line.partition("=") for line in _run(executable).splitlines()]
    told = {key: value for key, _, value in lines}
    if not told.get("version"):
        raise InterpreterError(f"{executable} is no Python: it answered nothing that a Python would")
    config = tuple(value for key, _, value in lines if key == "config")
    return Interpreter(
        asked=executable,
        executable=told.get("executable", ""),
        prefix=told.get("prefix", ""),
        version=told.get("version", ""),
        libpython=told.get("libpython", ""),
        is_free_threaded=told.get("free-threaded") == "true",
        jpype=told.get("jpype", ""),
        quotahost=told.get("quotahost", ""),
        config=config,
    )


def _run(executable: str) -> str:
    command = [executable, "-c", inspect.getsource(probe) + _MORE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise InterpreterError(f"{executable} can't be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise InterpreterError(f"{executable} did not answer within {_TIMEOUT:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InterpreterError(f"{executable} is no working Python 3.11 or newer: {printable(last)}")
    return done.stdout
