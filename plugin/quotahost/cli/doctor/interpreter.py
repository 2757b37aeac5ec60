"""Checks that the interpreter which the broker would start can run inside the broker's process, or as a child of it.

The interpreter is asked by ``broker.host.probe``, the script that the shim itself runs before it starts Python.
What it needs: version 3.11 or newer, no free-threaded build, and the packages quotahost and jpype1; inside the broker's
process also a shared libpython. Whether their versions fit the jar is a check of ``kafka_home``.

The plugins of a broker are installed in the environment of the broker's interpreter, which may be another than the
one that runs this command. Then the doctor of that environment looks instead (:meth:`Interpreter.run_doctor`). Both
runs are isolated (``-I``), as the broker's own Python is: no file in the working directory can stand in for a module.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from quotahost.broker.host import probe
from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX
from quotahost.text import printable

EXECUTABLE: Final = f"{PREFIX}python.executable"
PROCESS: Final = f"{PREFIX}python.process"
OURS: Final = f"{EXECUTABLE}={sys.executable}"  # the property by which a broker uses this environment
_OLDEST: Final = (3, 11)
_TIMEOUT: Final = 30.0  # seconds, as the shim's
_DOCTOR_TIMEOUT: Final = 600.0  # seconds for all checks; a cluster that doesn't answer takes about two minutes
#: Runs ``quotahost`` with the module path that the probe found: that of the broker's Python. -I has none of it.
_DOCTOR: Final = "import sys; sys.path[:] = {path!r}; from quotahost.cli.start import main; main()"
#: What has an effect on every Python but the broker's: its shim starts it isolated. In the broker's process the handler
#: of SIGSEGV that these install would take the place of HotSpot's, and the broker would crash.
_FAULT_HANDLERS: Final = ("PYTHONFAULTHANDLER", "PYTHONDEVMODE")
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

    def run_doctor(self, options: Sequence[str]) -> int:
        """Have the doctor of this interpreter's environment look; its exit code.

        Raises:
            InterpreterError: it takes too long.
        """
        sys.stdout.flush()  # its output follows ours
        code = _DOCTOR.format(path=list(self.path))
        command = [self.executable, "-I", "-c", code, "doctor", "--here", *options]
        try:
            return subprocess.run(command, check=False, timeout=_DOCTOR_TIMEOUT, stdin=subprocess.DEVNULL).returncode
        except subprocess.TimeoutExpired:
            raise InterpreterError(
                f"the doctor of {self.executable} did not end within {_DOCTOR_TIMEOUT:.0f} s"
            ) from None


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


def check_python(interpreter: Interpreter, in_child: bool = False) -> Iterator[Finding]:
    """What the broker's start would find; packages and libpython only of a version that would do.

    ``in_child``: the interpreter gets a process of its own (``python.process=child``).
    """
    for name in filter(os.environ.get, _FAULT_HANDLERS):
        yield note(
            f"{name} is set here. The broker's Python is started isolated and ignores it: Python's faulthandler would "
            "take the JVM's handler of SIGSEGV away, and the broker would crash",
            f"take {name} out of the broker's environment; quotahost refuses to start with faulthandler enabled",
        )
    named = "" if interpreter.named == interpreter.executable else f" (as {interpreter.named})"
    yield good(f"{interpreter.executable}{named}")
    if not Path(interpreter.named).is_absolute():
        yield weak(
            f"{interpreter.named!r} is looked up on the broker's PATH, which may be another than this shell's",
            f"{EXECUTABLE}={interpreter.executable}",
        )
    if tuple(int(part) for part in interpreter.version.split(".")[:2] if part.isdigit()) < _OLDEST:
        yield wrong(f"Python {interpreter.version}; 3.11 or newer is needed", f"for example {OURS}")
    elif interpreter.is_free_threaded:
        text = f"Python {interpreter.version} is a free-threaded build, which quotahost does not support"
        yield wrong(text, "name an ordinary build of Python")
    else:
        yield good(f"Python {interpreter.version}")
        yield good(f"{PROCESS}=child: no shared libpython is needed") if in_child else _libpython(interpreter)
        yield from _packages(interpreter)


def _libpython(interpreter: Interpreter) -> Finding:
    config = ", ".join(interpreter.config)
    # The shim opens libpython by dlopen, so a Python that is linked statically can't run in a JVM.
    if interpreter.libpython:
        return good(f"shared libpython: {interpreter.libpython} ({config})")
    minor = ".".join(interpreter.version.split(".")[:2])
    return wrong(
        f"no shared libpython found ({config})",
        f"Debian, Ubuntu: apt install libpython{minor}; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
        f"install --force {interpreter.version}; or name a Python of uv's or conda's, which have one; "
        f"or set {PROCESS}=child",
    )


def _packages(interpreter: Interpreter) -> Iterator[Finding]:
    install = f"{interpreter.executable} -m pip install quotahost"
    if interpreter.prefix != sys.prefix:
        install += f"; or, for the one that runs this doctor, {OURS}"
    for name, version in (("quotahost", interpreter.quotahost), ("jpype1", interpreter.jpype)):
        yield good(f"{name} {version}") if version else wrong(f"{name} is not installed there", install)
