"""Asks a running broker of this machine by way of ``org.quotahost.explain.Explain`` in the jar.

That class attaches to the broker's JVM, finds quotahost's MBean and prints what it says of the client. ``answer``
reads these lines. This module turns every failure into an error with a remedy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quotahost.cli.explain.answer import Answer, escaped, parse
from quotahost.cli.jars import Jar, NoJar, carried_jar
from quotahost.errors import QuotahostError
from quotahost.host.messages import plain
from quotahost.model import Client

# Seconds: a JVM that is stopped doesn't answer, and one that collects garbage answers late.
_TIMEOUT: Final = 60.0
_JDK: Final = "set JAVA_HOME to a JDK, 17 or newer (a JRE can't look into another JVM)"
_PICK: Final = "--pid PID of the broker's process"


class Unanswered(QuotahostError):
    """No broker answered; the message's second line is what to do about it."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str) -> None:
        """Make the message of the two."""
        super().__init__(f"{problem}\n  -> {remedy}")


def named(pid: int | None, broker: int | None) -> str:
    """The broker with this process id or this node id, or without either the only one, as Explain takes it."""
    return str(pid) if pid is not None else "" if broker is None else f"broker:{broker}"


def ask(client: Client, which: str = "") -> Answer:
    """Ask a broker (:func:`named`) about a client.

    Raises:
        Unanswered: no such broker, several of them, or it can't be asked.
    """
    try:
        return parse(question(which, "client", *client), client)
    except ValueError as problem:
        raise trouble("older", f"{which or 'the broker'}: {problem}", which) from None


def question(which: str, *words: str) -> list[str]:
    """The lines with which a broker (:func:`named`) answers a question of ``org.quotahost.explain.Explain``.

    Raises:
        Unanswered: no such broker, several of them, or it can't be asked.
    """
    try:
        with carried_jar() as jar:
            lines = _run(command_of(jar, which, *words))
    except NoJar as error:
        raise Unanswered(str(error), "reinstall quotahost") from None
    wrong = refusal(lines, which)
    if wrong is not None:
        raise wrong
    return lines


def command_of(jar: Jar, which: str, *words: str) -> list[str]:
    """The command that asks a question.

    Raises:
        Unanswered: there is no Java.
    """
    options = ["-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", str(jar.path)]
    return [java(), *options, "org.quotahost.explain.Explain", which, *map(escaped, words)]


def refusal(lines: Sequence[str], which: str) -> Unanswered | None:
    """The error that Explain's lines tell, None if they are an answer."""
    # Explain ends with 2 after an error, but its line says more than the code.
    wrong = next((line for line in lines if line.startswith("error\t")), None)
    if wrong is None:
        return None
    kind, details = map(plain, wrong.split("\t")[1:3])
    return trouble(kind, details, which)


def java() -> str:
    """The ``java`` of JAVA_HOME, else of PATH.

    Raises:
        Unanswered: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise Unanswered("there is no java", _JDK)
    return found


def _run(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Unanswered(f"no answer within {_TIMEOUT:.0f} s", "see whether the broker still runs") from None
    except OSError as error:
        raise Unanswered(f"{command[0]} can't be run: {error.strerror or error}", _JDK) from None
    # Explain escapes all else, because the locale may garble a pipe.
    lines = done.stdout.decode("ascii", "replace").splitlines()
    # Explain prints an error as a line; without any line, the JVM itself failed.
    if not lines:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise Unanswered(f"{command[0]} failed: {last}", _JDK)
    return lines


def trouble(kind: str, details: str, which: str = "") -> Unanswered:
    """Java's error with its remedy."""
    wanted = f"broker {which.removeprefix('broker:')}" if which else "broker"
    problems = {
        "no-jdk": (f"the Java in {details} has no module jdk.attach", _JDK),
        "none": (
            f"no {wanted} with quotahost was found among the JVMs of this user on this machine"
            + (f" ({details})" if details else ""),
            "run this on the broker's machine (in its container) as the broker's user, or give " + _PICK,
        ),
        "several": (f"several brokers with quotahost run here: {details}", "choose: --pid PID or --broker-id N"),
        "refused": (
            f"can't attach to {details}",
            "run this as the broker's user, in its container if it has one; "
            "a JVM with -XX:+DisableAttachMechanism can't be asked",
        ),
        "no-jvm": (f"process {details} is no JVM of this machine", "give " + _PICK),
        "no-quotahost": (f"no quotahost runs in process {details}", "give " + _PICK),
        "older": (
            f"the quotahost of the broker isn't of this version ({details})",
            "quotahost install --kafka-home DIR, and restart the broker",
        ),
    }  # fmt: skip
    return Unanswered(*problems.get(kind, (f"the broker can't be asked: {details}", "see the broker's log")))
