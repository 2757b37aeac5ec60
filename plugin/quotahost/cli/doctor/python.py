"""Checks that the interpreter which the broker would start can run inside the broker's process, or as a child of it.

The interpreter is asked by ``broker.host.probe``, the script that the shim itself runs before it starts Python.
What it needs: version 3.11 or newer, no free-threaded build, and the packages quotahost and jpype1; inside the broker's
process also a shared libpython. Whether their versions fit the jar is a check of ``jar``.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from quotahost.broker.host import probe
from quotahost.cli.console import Finding, good, weak, wrong
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX
from quotahost.text import printable

EXECUTABLE: Final = f"{PREFIX}python.executable"
PROCESS: Final = f"{PREFIX}python.process"
OURS: Final = f"{EXECUTABLE}={sys.executable}"  # the property by which a broker uses this environment
_OLDEST: Final = (3, 11)
_TIMEOUT: Final = 30.0  # seconds, as the shim's
# Python finds libpython by these; an operator sees from them how the interpreter was built.
_MORE: Final = """
print("prefix=" + sys.prefix)
for _name in ("LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED"):
    print("config=%s=%s" % (_name, sysconfig.get_config_var(_name)))
"""


class InterpreterError(QuotahostError):
    """The interpreter can't be run, or it is no Python."""


class Interpreter(BaseModel):
    """A Python's answers to the probe; "" for what it doesn't have.

    Attributes:
        named: the executable as the operator named it, a path or a name to look up on PATH.
        executable: the path that it gives for itself.
        prefix: its environment, as in ``sys.prefix``.
        libpython: the path of its shared library.
        jpype: the installed version of jpype1; ``quotahost`` that of quotahost.
        config: variables of its build, as ``NAME=VALUE``.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    named: str
    version: str
    executable: str = ""
    prefix: str = ""
    libpython: str = ""
    is_free_threaded: bool = Field(False, alias="free-threaded")
    jpype: str = ""
    quotahost: str = ""
    config: tuple[str, ...]
    path: tuple[str, ...] = ()


def ask(executable: str) -> Interpreter:
    """Run the shim's probe with this interpreter.

    Raises:
        InterpreterError: it can't be run, doesn't answer, or is too old to answer.
    """
    lines = [line.partition("=") for line in _run(executable).splitlines()]
    facts = {key: value for key, _, value in lines}
    if not facts.get("version"):
        raise InterpreterError(f"{executable} is no Python: it answered nothing that a Python would")
    # Many lines have one of these keys, of which the dict above keeps the last value only.
    lists = {name: [value for key, _, value in lines if key == name] for name in ("config", "path")}
    return Interpreter.model_validate(facts | lists | {"named": executable})


def _run(executable: str) -> str:
    # As text, since quotahost may not be installed for that interpreter.
    command = [executable, "-I", "-c", inspect.getsource(probe) + _MORE]
    try:
        # No standard input: a program that is no Python might wait for some.
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


def check_python(found: Interpreter, *, in_child: bool = False) -> Iterator[Finding]:
    """What the broker's start would find; packages and libpython only of a version that would do.

    ``in_child``: the interpreter gets a process of its own (``python.process=child``).
    """
    named = "" if found.named == found.executable else f" (as {found.named})"
    yield good(f"{found.executable}{named}")
    if not Path(found.named).is_absolute():
        yield weak(
            f"{found.named!r} is looked up on the broker's PATH, which may be another than this shell's",
            f"{EXECUTABLE}={found.executable}",
        )
    if tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit()) < _OLDEST:
        yield wrong(f"Python {found.version}; 3.11 or newer is needed", f"for example {OURS}")
    elif found.is_free_threaded:
        text = f"Python {found.version} is a free-threaded build, which quotahost does not support"
        yield wrong(text, "name an ordinary build of Python")
    else:
        yield good(f"Python {found.version}")
        yield good("python.process=child: no shared libpython is needed") if in_child else _libpython(found)
        yield from _packages(found)


def _libpython(found: Interpreter) -> Finding:
    config = ", ".join(found.config)
    # The shim opens libpython by dlopen, so a Python that is linked statically can't run in a JVM.
    if found.libpython:
        return good(f"shared libpython: {found.libpython} ({config})")
    minor = ".".join(found.version.split(".")[:2])
    return wrong(
        f"no shared libpython found ({config})",
        f"Debian, Ubuntu: apt install libpython{minor}; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
        f"install --force {found.version}; or name a Python of uv's or conda's, which have one; or set {PROCESS}=child",
    )


def _packages(found: Interpreter) -> Iterator[Finding]:
    install = f"{found.executable} -m pip install quotahost"
    if found.prefix != sys.prefix:
        install += f"; or, for the one that runs this doctor, {OURS}"
    for name, version in (("quotahost", found.quotahost), ("jpype1", found.jpype)):
        yield good(f"{name} {version}") if version else wrong(f"{name} is not installed there", install)
