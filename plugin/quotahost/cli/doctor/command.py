"""``quotahost doctor``: everything that can be known before the broker is started."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from quotahost.cli.broker_file import BrokerFile, read_broker_file
from quotahost.cli.console import Level, Section
from quotahost.cli.doctor.jar import check_jar
from quotahost.cli.doctor.plugins import check_plugins
from quotahost.cli.doctor.python import Interpreter, InterpreterError, ask, check_python
from quotahost.cli.doctor.settings import check_settings
from quotahost.cli.doctor.weaknesses import check_weak
from quotahost.settings.declaration import PREFIX

_EXECUTABLE = f"{PREFIX}python.executable"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was asked to look at."""

    properties: Path | None
    kafka_home: Path | None
    python: str | None


def examine(asked: Asked) -> list[Section]:
    """All sections, in the order in which a start of the broker would need them."""
    broker, trouble = _broker(asked.properties)
    if trouble:
        return [trouble]
    found, interpreter = _interpreter(asked, broker)
    is_here = found is not None and found.prefix == sys.prefix
    sections = [interpreter, check_jar(asked.kafka_home, found)]
    sections.append(check_plugins() if is_here else _elsewhere())
    if broker is None:
        settings = Section("Settings")
        settings.add(Level.NOTE, "not checked", "name the broker's server.properties")
        return [*sections, settings]
    section, understood = check_settings(broker, with_plugins=is_here)
    return [*sections, section, *([check_weak(understood, broker)] if understood else [])]


def elsewhere(asked: Asked) -> str | None:
    """The interpreter to ask if it has a quotahost of its own in another environment than this one."""
    try:
        found = ask(_named(asked, _broker(asked.properties)[0]))
    except InterpreterError:
        return None
    return found.executable if found.quotahost and found.prefix != sys.prefix else None


def delegate(executable: str, asked: Asked) -> int:
    """Let the quotahost of the other environment examine: only there are the broker's plugins.

    Returns:
        Its exit code.
    """
    command = [executable, "-m", "quotahost.cli", "doctor", "--here"]
    command += ["--python", asked.python] if asked.python else []
    command += ["--kafka-home", str(asked.kafka_home)] if asked.kafka_home else []
    command += [str(asked.properties)] if asked.properties else []
    sys.stdout.flush()
    return subprocess.run(command, check=False).returncode


def _broker(path: Path | None) -> tuple[BrokerFile | None, Section | None]:
    if path is None:
        return None, None
    try:
        return read_broker_file(path), None
    except (OSError, ValueError) as error:
        section = Section("Settings")
        section.add(Level.WRONG, f"{path} can't be read: {error}", "name the broker's server.properties")
        return None, section


def _named(asked: Asked, broker: BrokerFile | None) -> str:
    if asked.python:
        return asked.python
    return broker.get(_EXECUTABLE) or "python3" if broker else sys.executable


def _interpreter(asked: Asked, broker: BrokerFile | None) -> tuple[Interpreter | None, Section]:
    try:
        found = ask(_named(asked, broker))
    except InterpreterError as error:
        section = Section("Interpreter")
        section.add(Level.WRONG, str(error), f"{_EXECUTABLE}={sys.executable}, which has this quotahost")
        return None, section
    section = check_python(found)
    configured = _named(Asked(asked.properties, None, None), broker)
    if broker and asked.python and asked.python != configured:
        what = f"the broker will start {configured}, not {asked.python}, which was examined here"
        section.add(Level.WEAK, what, f"{_EXECUTABLE}={asked.python}")
    return found, section


def _elsewhere() -> Section:
    section = Section("Plugins")
    section.add(Level.NOTE, "not checked: the interpreter above has no quotahost to ask")
    return section
