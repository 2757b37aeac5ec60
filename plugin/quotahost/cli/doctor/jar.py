"""Whether the right jar, and only that, is on the broker's classpath."""

from __future__ import annotations

from pathlib import Path

from quotahost.cli.console import Level, Section
from quotahost.cli.doctor.python import Interpreter
from quotahost.cli.jars import Jar, NoJar, carried_jar, jars_in


def check_jar(kafka_home: Path | None, found: Interpreter | None) -> Section:
    """The jar in ``libs``, against the versions installed for the interpreter."""
    section = Section("Jar")
    if kafka_home is None:
        section.add(Level.NOTE, "the broker's classpath is not checked", "give --kafka-home DIR")
        _check_carried(section, found)
        return section
    libs = kafka_home / "libs"
    jars = jars_in(libs)
    install = f"quotahost install --kafka-home {kafka_home}"
    if not jars:
        section.add(Level.WRONG, f"no jar of quotahost's in {libs}", install)
    elif len(jars) > 1:
        names = ", ".join(jar.path.name for jar in jars)
        section.add(
            Level.WRONG,
            f"more than one jar of quotahost's in {libs}: {names}",
            f"{install}, which leaves one",
        )
    else:
        _check_versions(section, jars[0], found, install)
    return section


def _check_carried(section: Section, found: Interpreter | None) -> None:
    try:
        with carried_jar() as jar:
            _check_versions(section, jar, found, "pip install --force-reinstall quotahost")
    except NoJar as error:
        section.add(Level.NOTE, str(error))


def _check_versions(section: Section, jar: Jar, found: Interpreter | None, remedy: str) -> None:
    section.add(Level.GOOD, f"{jar.path}, of quotahost {jar.quotahost} with jpype {jar.jpype}")
    if found is None or not found.quotahost:
        return
    for name, needed, installed in (
        ("quotahost", jar.quotahost, found.quotahost),
        ("jpype1", jar.jpype, found.jpype),
    ):
        if needed != installed:
            section.add(
                Level.WRONG, f"the jar needs {name} {needed}, installed is {installed or 'none'}", remedy
            )
