"""Checks a Kafka in its folder: quotahost's jar in its ``libs``, its version, and what quotahost uses of its insides.

The jar carries Java's half and JPype's Java classes. Both must be of the versions that are installed for the
interpreter, or the broker's start fails. A Python in a process of its own (``python.process=child``) needs no Java
classes, and may be of another release that has the same protocol, which its first call tells.
``org.quotahost.internals.Internals``, in a JVM with Kafka's jars and quotahost's,
says what the broker's log would say at its start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.cli.doctor.interpreter import Interpreter
from quotahost.cli.install import Jar, NoJar, carried_jar, jars_in

Version = tuple[int, int, int]
#: The oldest and the newest release line that quotahost was tried with; the jar has it, too (tools/jar_resources.py).
TRIED: Final = ((4, 0), (4, 4))
_JAR: Final = re.compile(r"kafka-clients-(\d+)\.(\d+)\.(\d+)[^/]*\.jar")
# By release line the first version without KAFKA-20746; it is also in all of 4.0 and 4.1.
_MENDED: Final = {(4, 2): (4, 2, 2), (4, 3): (4, 3, 2)}
_TIMEOUT: Final = 60.0  # seconds
_NATIVE_ACCESS: Final = 24  # the first Java that warns of native code (JEP 472)
_JAVA: Final = re.compile(r'version "(\d+)')
_MADE_FOR_IT: Final = "a quotahost that was made for this Kafka"
#: Options that a JVM takes from its environment, files with more of them among these.
_JVM_OPTIONS: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


# ---- the jar ---------------------------------------------------------------------------------------------------


def check_jar(kafka_home: Path | None, interpreter: Interpreter | None, in_child: bool = False) -> Iterator[Finding]:
    """The jar in Kafka's ``libs``, or without a Kafka the one that this package carries.

    Args:
        kafka_home: the folder that Kafka was unpacked to.
        interpreter: the broker's, None if it doesn't answer; then no versions are compared.
        in_child: whether it gets a process of its own.
    """
    if kafka_home is None:
        yield note("the broker's classpath is not checked", "give --kafka-home DIR")
        try:
            with carried_jar() as jar:
                yield from _versions(jar, interpreter, "pip install --force-reinstall quotahost", in_child)
        except NoJar as error:
            yield note(str(error))
        return
    libs, install = kafka_home / "libs", f"quotahost install --kafka-home {kafka_home}"
    jars = jars_in(libs)
    if not jars:
        yield wrong(f"no jar of quotahost's in {libs}", install)
    elif len(jars) > 1:
        # Java would take each class from whichever of them the classpath lists first.
        names = ", ".join(jar.path.name for jar in jars)
        yield wrong(f"more than one jar of quotahost's in {libs}: {names}", f"{install}, which leaves one")
    else:
        yield from _versions(jars[0], interpreter, install, in_child)


def _versions(jar: Jar, interpreter: Interpreter | None, remedy: str, in_child: bool) -> Iterator[Finding]:
    yield good(f"{jar.path}, of quotahost {jar.quotahost} with jpype {jar.jpype}")
    if interpreter is None or not interpreter.quotahost:
        return  # that quotahost isn't installed there is a finding of the interpreter
    if in_child:
        if jar.quotahost != interpreter.quotahost:
            yield note(f"Python has quotahost {interpreter.quotahost}: it has to have the same protocol, or is refused")
        return
    pairs = (("quotahost", jar.quotahost, interpreter.quotahost), ("jpype1", jar.jpype, interpreter.jpype))
    for name, needed, installed in pairs:
        # Exactly: JPype's Java classes work with the native module of their own version only.
        if needed != installed:
            yield wrong(f"the jar needs {name} {needed}, installed is {installed or 'none'}", remedy)


# ---- the version -----------------------------------------------------------------------------------------------


def check_kafka(kafka_home: Path) -> Iterator[Finding]:
    """Whether quotahost was tried with the Kafka of this folder, and a fault that is Kafka's own."""
    version = kafka_version(kafka_home / "libs")
    if version is None:
        yield note(f"Kafka's version is not known: no kafka-clients-VERSION.jar in {kafka_home / 'libs'}")
        return
    text = ".".join(map(str, version))
    if not TRIED[0] <= version[:2] <= TRIED[1]:
        yield weak(f"Kafka {text}: quotahost was tried with 4.0 to 4.4 only", "look for a newer quotahost")
    elif has_null_pointer(version):
        yield weak(
            f"Kafka {text} logs a NullPointerException for each change of metadata while a broker that has replicas is "
            "down, with any quota callback (KAFKA-20746)",
            "Kafka 4.2.2, 4.3.2 or newer",
        )
    else:
        yield good(f"Kafka {text}")


def kafka_version(libs: Path) -> Version | None:
    """Kafka's version by the names of its jars; None if none of them is there."""
    for jar in sorted(libs.glob("kafka-clients-*.jar")):
        if parts := _JAR.fullmatch(jar.name):
            return int(parts[1]), int(parts[2]), int(parts[3])
    return None


def has_null_pointer(version: Version) -> bool:
    """Whether this version has KAFKA-20746, in MetadataCache.toCluster (in 4.0 it was KRaftMetadataCache's)."""
    line = version[:2]
    return line >= (4, 0) and (line < (4, 2) or version < _MENDED.get(line, (0, 0, 0)))


# ---- what quotahost uses of it, and the java that looks --------------------------------------------------------


def check_internals(kafka_home: Path) -> Iterator[Finding]:
    """A finding for each thing that the Kafka in this folder has not."""
    libs = kafka_home.absolute() / "libs"
    try:
        if jars_in(libs):  # the broker's own
            lines = _run([str(libs / "*")])
        else:
            with carried_jar() as jar:
                lines = _run([str(libs / "*"), str(jar.path)])
    except (NoJar, OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield note(f"Nobody has looked for what quotahost uses of Kafka: {str(error).splitlines()[0]}")
        return
    for line in lines:
        level, _, sentence = line.partition("\t")
        text = sentence.partition("; look for")[0]  # the remedy says it
        yield wrong(text, _MADE_FOR_IT) if level == "wrong" else weak(text, _MADE_FOR_IT)
    if not lines:
        yield good("it has all that quotahost uses of it")


def check_java() -> Iterator[Finding]:
    """Whether this Java warns of the native code by which Python comes into the broker's process."""
    try:
        done = run_java("-version")
    except (OSError, subprocess.TimeoutExpired):
        return  # check_internals says so
    version = _JAVA.search(done.stderr.decode(errors="replace"))
    if version and int(version[1]) >= _NATIVE_ACCESS:
        yield note(
            f"Java {version[1]} warns at the broker's start that native code is loaded; a later Java will refuse it",
            "KAFKA_OPTS=--enable-native-access=ALL-UNNAMED in the broker's environment",
        )


def java() -> str:
    """The ``java`` of JAVA_HOME, else of PATH.

    Raises:
        FileNotFoundError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    here = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    here = here or shutil.which("java")
    if here is None:
        raise FileNotFoundError("there is no java; set JAVA_HOME")
    return str(Path(here).absolute())


def run_java(*arguments: str, timeout: float = _TIMEOUT) -> subprocess.CompletedProcess[bytes]:
    """Run java far from the working directory, and without the options that its environment has for it.

    Raises:
        OSError: there is no java.
        TimeoutExpired: it doesn't end in time (seconds).
    """
    environment = {name: value for name, value in os.environ.items() if name not in _JVM_OPTIONS}
    command = [java(), *arguments]
    return subprocess.run(
        command, capture_output=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL, cwd="/", env=environment
    )


def _run(class_path: list[str]) -> list[str]:
    """The tool's lines, without the last.

    Raises:
        ValueError: the tool failed; the folder may have no Kafka in it.
        TimeoutExpired, OSError: the JVM can't be run.
    """
    options = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(class_path))
    done = run_java(*options, "org.quotahost.internals.Internals")
    *lines, end = done.stdout.decode(errors="replace").splitlines() or [""]
    if end != "end":
        raise ValueError((done.stderr.decode(errors="replace").strip().splitlines() or ["java printed nothing"])[-1])
    return lines
