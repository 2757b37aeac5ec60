"""Checks that the right jar of quotahost, and no other, is on the broker's classpath.

The jar carries Java's half and JPype's Java classes. Both must be of the versions that are installed for the
interpreter, or the broker's start fails. A Python in a process of its own (``python.process=child``) needs no Java
classes, and may be of another release that has the same protocol, which its first call tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quotahost.cli.console import Finding, good, note, wrong
from quotahost.cli.doctor.python import Interpreter
from quotahost.cli.jars import Jar, NoJar, carried_jar, jars_in


def check_jar(kafka_home: Path | None, found: Interpreter | None, *, in_child: bool = False) -> Iterator[Finding]:
    """The jar in Kafka's ``libs``, or without a Kafka the one that this package carries.

    Args:
        kafka_home: the folder that Kafka was unpacked to.
        found: the broker's interpreter, None if it doesn't answer; then no versions are compared.
        in_child: whether it gets a process of its own.
    """
    if kafka_home is None:
        yield note("the broker's classpath is not checked", "give --kafka-home DIR")
        yield from _carried(found, in_child)
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
        yield from _versions(jars[0], found, install, in_child)


def _carried(found: Interpreter | None, in_child: bool) -> Iterator[Finding]:
    try:
        with carried_jar() as jar:
            yield from _versions(jar, found, "pip install --force-reinstall quotahost", in_child)
    except NoJar as error:
        yield note(str(error))


def _versions(jar: Jar, found: Interpreter | None, remedy: str, in_child: bool) -> Iterator[Finding]:
    yield good(f"{jar.path}, of quotahost {jar.quotahost} with jpype {jar.jpype}")
    if found is None or not found.quotahost:
        return  # that quotahost isn't installed there is a finding of the interpreter
    if in_child:
        if jar.quotahost != found.quotahost:
            yield note(f"Python has quotahost {found.quotahost}: it has to have the same protocol, or is refused")
        return
    for name, needed, installed in (("quotahost", jar.quotahost, found.quotahost), ("jpype1", jar.jpype, found.jpype)):
        # Exactly: JPype's Java classes work with the native module of their own version only.
        if needed != installed:
            yield wrong(f"the jar needs {name} {needed}, installed is {installed or 'none'}", remedy)
