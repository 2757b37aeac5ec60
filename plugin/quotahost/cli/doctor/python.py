"""Whether the interpreter will do inside a broker."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quotahost.cli.console import Level, Section
from quotahost.errors import QuotahostError
from quotahost.host import probe
from quotahost.settings.declaration import PREFIX
from quotahost.text import printable

# TODO(merge) The interpreter that the broker would start, asked in the very way in which the shim asks it.


_OLDEST: Final = (3, 11)


_OURS: Final = f"{PREFIX}python.executable={sys.executable}"


def check_python(found: Interpreter) -> Section:
    """Version, build, shared library, and what is installed there."""
    section = Section("Interpreter")
    named = "" if found.asked == found.executable else f" (as {found.asked})"
    section.add(Level.GOOD, f"{found.executable}{named}")
    if not Path(found.asked).is_absolute():
        section.add(
            Level.WEAK,
            f"{found.asked!r} is looked up on the broker's PATH, which may be another than this shell's",
            f"{PREFIX}python.executable={found.executable}",
        )
    _check_version(section, found)
    if not section.is_wrong:
        _check_libpython(section, found)
        _check_packages(section, found)
    return section


def _check_version(section: Section, found: Interpreter) -> None:
    version = tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit())
    if version < _OLDEST:
        section.add(Level.WRONG, f"Python {found.version}; 3.11 or newer is needed", f"for example {_OURS}")
    elif found.is_free_threaded:
        what = f"Python {found.version} is a free-threaded build, which JPype does not support"
        section.add(Level.WRONG, what, "name an ordinary build of Python")
    else:
        section.add(Level.GOOD, f"Python {found.version}")


def _check_libpython(section: Section, found: Interpreter) -> None:
    config = ", ".join(found.config)
    if found.libpython:
        section.add(Level.GOOD, f"shared libpython: {found.libpython} ({config})")
        return
    minor = ".".join(found.version.split(".")[:2])
    section.add(
        Level.WRONG,
        f"no shared libpython found ({config})",
        f"Debian, Ubuntu: apt install libpython{minor}; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
        f"install --force {found.version}; or name a Python of uv's or conda's, which have one",
    )


def _check_packages(section: Section, found: Interpreter) -> None:
    """That both are there; whether they fit the jar is the jar's section."""
    install = f"{found.executable} -m pip install quotahost"
    if found.prefix != sys.prefix:
        install += f"; or, for the one that runs this doctor, {_OURS}"
    for name, version in (("quotahost", found.quotahost), ("jpype1", found.jpype)):
        if version:
            section.add(Level.GOOD, f"{name} {version}")
        else:
            section.add(Level.WRONG, f"{name} is not installed there", install)


_TIMEOUT: Final = 30.0  # seconds, as the shim's


_MORE: Final = """
print("prefix=" + sys.prefix)
for _name in ("LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED"):
    print("config=%s=%s" % (_name, sysconfig.get_config_var(_name)))
"""


class InterpreterError(QuotahostError):
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
