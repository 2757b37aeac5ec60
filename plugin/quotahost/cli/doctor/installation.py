"""The doctor checks an installation: the broker's Python and plugins, quotahost's jar, Kafka's internals, and Java.

1. :func:`ask` runs ``broker.host.probe`` in the broker's interpreter, as the shim does before it starts Python, and
   imports quotahost there. :func:`check_python` shows the answers: version 3.11 or newer, no free-threaded build, the
   packages quotahost and jpype1, and, if Python runs inside the broker's process, a shared libpython.
2. :func:`check_jar` compares quotahost's jar with these packages. The jar contains the shim and JPype's Java classes.
   The broker's start fails unless both have the installed versions. A Python in a process of its own
   (``python.process=child``) needs no classes of JPype, and may be of another release that has the same protocol.
3. :func:`check_version` checks Kafka's version. :func:`check_internals` runs ``org.quotahost.internals.Internals`` in a
   JVM with both jars, and shows what the broker's log would say about the internals of Kafka that quotahost uses.

A broker's plugins are installed for the broker's interpreter. If another interpreter runs this command, only the doctor
of the broker's interpreter can check them. The probe runs isolated (``-I``), as the broker's own Python does, so no
file in the working directory can replace a module.
"""

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from quotahost.base.errors import QuotahostError
from quotahost.base.text import printable
from quotahost.broker.discovery import survey
from quotahost.broker.host import probe
from quotahost.cli.console import Finding, Section, begin, good, note, weak, wrong
from quotahost.cli.install import REINSTALL, Jar, carried_jar, jars_in
from quotahost.settings.declaration import PREFIX

EXECUTABLE: Final = f"{PREFIX}python.executable"
PROCESS: Final = f"{PREFIX}python.process"
OURS: Final = f"{EXECUTABLE}={sys.executable}"  # the property that makes a broker use this environment
#: The oldest and the latest Kafka release line that quotahost was tested with, both of one major version. The jar lists
#: all lines between them (tools/jar_resources.py).
TRIED: Final = ((4, 0), (4, 4))

# ---- the interpreter -------------------------------------------------------------------------------------------

_TIMEOUT: Final = 30.0  # seconds, as in the shim


class Interpreter(BaseModel):
    """The probe's answers about a Python; "" stands for a thing that this Python doesn't have."""

    named: str  # the executable as the operator named it, a path or a name to look up on PATH
    process: str = "broker"  # or "child", if the broker starts Python as a process of its own (``python.process``)
    version: str
    executable: str = ""  # the path that Python reports for itself
    prefix: str = ""
    libpython: str = ""
    build: str = ""  # variables of Python's build, as ``NAME=VALUE``
    jpype1: str = ""  # the installed version
    quotahost: str = ""  # the installed version
    problem: tuple[str, ...] = ()  # the reasons why a broker can't start this Python, each with a remedy after a tab

    @property
    def is_here(self) -> bool:
        """Whether it belongs to this environment, by its prefix: executables of several may be links to one file."""
        return Path(self.prefix).resolve() == Path(sys.prefix).resolve()


def ask(executable: str, process: str = "broker") -> Interpreter:
    """Run the probe that the shim runs before it starts Python. Raises QuotahostError if no suitable Python answers."""
    # The probe is passed as text, as quotahost may not be installed there; "" accepts any version (see check_jar).
    done = _run([executable, "-I", "-c", inspect.getsource(probe), "", "", process])
    lines = [line.partition("=") for line in done.stdout.splitlines()]
    facts = {key: value for key, _, value in lines}
    if done.returncode or "version" not in facts:
        raise QuotahostError(f"{executable} is not a working Python 3.11 or newer: {_last_words(done, 'no message')}")
    problems = [value for key, _, value in lines if key == "problem"]
    # An installation that was cut short, or made without its dependencies, has quotahost's version and lacks files.
    path = [value for key, _, value in lines if key == "path"]
    modules = "quotahost.broker.host.loop, confluent_kafka" + ", _jpype" * (process == "broker")
    imports = [executable, "-I", "-c", f"import sys; sys.path[:] = {path}; import {modules}"]
    if not problems and (tried := _run(imports)).returncode:
        why = _last_words(tried, f"exit code {tried.returncode}")
        problems = [f"its quotahost can't be imported: {why}\t{facts['executable']} -m {REINSTALL}"]
    return Interpreter.model_validate(facts | {"problem": problems, "named": executable, "process": process})


def _run(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command without standard input, so that it can't wait for input. Raises QuotahostError unless it ends."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT, check=False,
            stdin=subprocess.DEVNULL, **more,
        )  # fmt: skip
    except OSError as error:
        raise QuotahostError(f"{command[0]} can't be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise QuotahostError(f"{command[0]} did not answer within {_TIMEOUT:.0f} s") from None


def _last_words(done: subprocess.CompletedProcess[str], otherwise: str) -> str:
    """The last line of the command's standard error that has words, without the frame around an error of a command."""
    lines = [line.strip(" │") for line in done.stderr.splitlines() if re.search(r"\w", line)]
    return printable(lines[-1] if lines else otherwise)


def check_python(interpreter: Interpreter) -> Iterator[Finding]:
    """Findings on this interpreter, which the broker's start would report, too."""
    named, executable = interpreter.named, interpreter.executable
    yield good(executable if named == executable else f"{executable} (as {named})")
    if not Path(named).is_absolute():
        text = f"{named!r} is looked up on the broker's PATH, which may differ from this shell's"
        yield weak(text, f"{EXECUTABLE}={executable}")
    for text, _, remedy in (problem.partition("\t") for problem in interpreter.problem):
        ours = "" if interpreter.is_here else f"; or, to use the Python that runs this doctor, {OURS}"
        yield wrong(text, remedy + ours)
    if not interpreter.problem:
        yield good(f"Python {interpreter.version}, quotahost {interpreter.quotahost}, jpype1 {interpreter.jpype1}")
        needs = f"shared libpython: {interpreter.libpython} ({interpreter.build})"
        yield good(f"{PROCESS}=child: no shared libpython is needed" if interpreter.process == "child" else needs)


def check_plugins() -> Section:
    """A row for each plugin of this Python. A broken plugin is weak here; ``settings`` finds those that are in use."""
    found = survey(begin)  # a plugin may end this process
    rows = [(entry.role, entry.name, entry.distribution, entry.version, entry.error or "ok") for entry in found]
    findings = [
        weak(f"{entry.role} {entry.name} of {entry.distribution} is broken: {entry.error}", "fix or uninstall it")
        for entry in found
        if entry.error
    ]
    return Section("Plugins", findings, ("role", "name", "distribution", "version", "state"), rows)


# ---- the jar ---------------------------------------------------------------------------------------------------


def check_jar(kafka_home: Path | None, interpreter: Interpreter | None) -> Iterator[Finding]:
    """Check the jar in Kafka's ``libs``, or, if no Kafka is given, the jar inside this package."""
    if kafka_home is None:
        yield note("the broker's classpath is not checked", "give --kafka-home DIR")
        try:
            yield from _versions(carried_jar(), interpreter, REINSTALL)
        except QuotahostError as error:
            yield note(str(error))
        return
    libs, install = kafka_home / "libs", f"quotahost install --kafka-home {shlex.quote(str(kafka_home))}"
    jars = jars_in(libs)
    if len(jars) == 1:
        yield from _versions(jars[0], interpreter, install)
    elif jars:
        # Java would load each class from the jar that comes first in the classpath.
        names = ", ".join(jar.path.name for jar in jars)
        yield wrong(f"more than one jar of quotahost in {libs}: {names}", f"{install}, which leaves one")
    else:
        yield wrong(f"no jar of quotahost in {libs}", install)


def _versions(jar: Jar, interpreter: Interpreter | None, remedy: str) -> Iterator[Finding]:
    yield good(f"{jar.path}, of quotahost {jar.quotahost} with jpype {jar.jpype}")
    if interpreter is None or not interpreter.quotahost:
        return  # check_python reports that quotahost isn't installed there
    if interpreter.process == "child":
        if jar.quotahost != interpreter.quotahost:
            yield note(f"Python has quotahost {interpreter.quotahost}: the broker refuses it if its protocol differs")
        return
    pairs = (("quotahost", jar.quotahost, interpreter.quotahost), ("jpype1", jar.jpype, interpreter.jpype1))
    for name, needed, installed in pairs:
        # The versions must be equal: JPype's Java classes only work with the native module of the same version.
        if needed != installed:
            yield wrong(f"the jar needs {name} {needed}, installed is {installed or 'none'}", remedy)


# ---- Kafka and Java --------------------------------------------------------------------------------------------

_JAR: Final = re.compile(r"kafka-clients-(\d+)\.(\d+)\.(\d+)[^/]*\.jar")
_INTERNALS: Final = "org.quotahost.internals.Internals"
_MADE_FOR_IT: Final = "a quotahost that was made for this Kafka"
#: Environment variables from which a JVM takes options, files with options, or its classpath.
_JVM_OPTIONS: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


def check_version(kafka_home: Path) -> Finding:
    """Whether quotahost was tested with this Kafka, whose version is in the names of its jars."""
    libs = kafka_home / "libs"
    match = next(filter(None, (_JAR.fullmatch(jar.name) for jar in sorted(libs.glob("kafka-clients-*.jar")))), None)
    if match is None:
        return note(f"Kafka's version is not known: no kafka-clients-VERSION.jar in {libs}")
    text = ".".join(match.groups())
    if not TRIED[0] <= (int(match[1]), int(match[2])) <= TRIED[1]:
        return weak(f"Kafka {text}: quotahost was tested with 4.0 to 4.4 only", "look for a newer quotahost")
    return good(f"Kafka {text}")


def check_internals(kafka_home: Path, classes: Sequence[str] = ()) -> Iterator[Finding]:
    """A finding for each internal that quotahost uses, and each ``PROPERTY=CLASS``, that this Kafka doesn't have."""
    libs, home = kafka_home.absolute() / "libs", os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java").absolute()) if home else "java"
    environment = {name: value for name, value in os.environ.items() if name not in _JVM_OPTIONS}
    try:
        ours = "" if jars_in(libs) else f":{carried_jar().path}"  # this package's jar, if Kafka has none
        command = [java, "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*{ours}", _INTERNALS, *classes]
        done = _run(command, cwd="/", env=environment)  # no file in the working directory has an effect
        *lines, end = done.stdout.splitlines() or [""]
        if end != "end":  # for example, there is no Kafka in the folder
            raise QuotahostError(_last_words(done, "java printed nothing"))
    except QuotahostError as error:
        yield note(f"the internals of Kafka that quotahost uses were not checked: {error}")
        return
    for line in lines:
        level, sentence, remedy = f"{line}\t{_MADE_FOR_IT}".split("\t")[:3]
        text = sentence.partition("; install")[0]  # the remedy has this part already
        yield wrong(text, remedy) if level == "wrong" else weak(text, remedy)
    if not lines:
        yield good("it has all internals that quotahost uses")
