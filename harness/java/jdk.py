"""Finds the JDK's programs, joins class paths, and compiles the harness's own Java classes.

Brokers, the helper JVM and the throttling oracle are started with these programs and class paths.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from harness.java.jars import BUILD, DEFAULT_VERSION, broker_jars, made_once

_SOURCES: Final = Path(__file__).with_name("src")


class JavaError(Exception):
    """No JDK was found, or the harness's Java sources don't compile."""


def program(name: str) -> str:
    """Returns the path of ``java`` or ``javac``: from JAVA_HOME if set, otherwise from PATH.

    Raises:
        JavaError: neither has it.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise JavaError(f"{name} is needed: install a JDK, 17 or newer, or set JAVA_HOME")
    return found


def tool(name: str) -> list[str]:
    """Returns the first words of ``keytool`` or ``javap``, which take half the work without the second compiler."""
    return [program(name), "-J-XX:TieredStopAtLevel=1"]


def class_path(entries: Iterable[Path]) -> str:
    """Joins jars, directories of classes and directories of jars into one ``-cp`` argument."""
    return os.pathsep.join(f"{e}/*" if any(e.glob("*.jar")) else str(e) for e in entries)


def harness_classes(version: str = DEFAULT_VERSION) -> Path:
    """Returns the directory of the compiled ``harness/java/src``, cached by content and Kafka's version.

    Raises:
        JavaError: there is no javac, or it found errors.
    """
    sources = sorted(_SOURCES.glob("*.java"))
    digest = hashlib.sha256(version.encode())
    for source in sources:
        digest.update(source.read_bytes())
    compiled = partial(_compile, sources, version)
    return made_once(BUILD / "harness" / "classes" / digest.hexdigest()[:16], compiled)


def _compile(sources: list[Path], version: str, target: Path) -> None:
    command = [*tool("javac"), "--release", "17", "-Xlint:all,-classfile,-processing"]
    command += ["-encoding", "UTF-8", "-cp", class_path([broker_jars(version)])]
    command += ["-d", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JavaError(f"harness/java does not compile:\n{done.stdout}{done.stderr}")
