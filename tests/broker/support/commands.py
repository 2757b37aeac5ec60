"""Runs quotahost's commands as an operator does, in this process or in a terminal, and reads what they print.

Commands run in the test's process, because a new Python needs ten times as long to start as a broker to answer, and
tests poll. ``Terminal`` starts a command in a process of its own, as an operator would, and types keys.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner, Result

from harness.kafka.node import KafkaNode
from harness.kafka.properties import login_jaas, write_properties
from harness.system.waiting import eventually
from quotahost.cli.main import app
from quotahost.cli.start import run

_COMMAND: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def quotahost(*arguments: object) -> Result:
    """The exit code and the output of a command."""
    return CliRunner().invoke(app, list(map(str, arguments)))


def explain(*arguments: object) -> tuple[int, str]:
    """Exit code and output of ``quotahost explain``."""
    code, output, errors = _quick("explain", *arguments)
    return code, output + errors


def _quick(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command with its own parser: typer needs 0.1 s to make one, and tests poll."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        code = run(list(map(str, arguments)))
    return code, output.getvalue(), errors.getvalue()


def explain_client(node: KafkaNode, user: str, client_id: str, quota_type: str = "PRODUCE") -> tuple[int, str]:
    """Exit code and output of ``quotahost explain`` for one client of one node, and for one quota type."""
    return explain("--pid", node.pid, "--user", user, "--client-id", client_id, "--type", quota_type)


def last_line(text: str) -> str:
    """The sentence that says what limits the client."""
    return text.strip().splitlines()[-1]


def field(text: str, label: str) -> str:
    """The value of a labelled fact, "" if there is none."""
    found = re.search(rf"^  {label}\s+(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def top(*arguments: object) -> dict[str, Any]:
    """The output of ``quotahost top --json``."""
    code, output, errors = _quick("top", "--json", *arguments)
    assert code == 0, errors
    shown: dict[str, Any] = json.loads(output)
    return shown


def connect_as(node: KafkaNode, user: str, directory: Path) -> list[str]:
    """The options with which a command connects as this user; writes a Java client's file into the directory."""
    file = directory / f"{user}.properties"
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": node.mechanism}
    write_properties(file, login | {"sasl.jaas.config": login_jaas(node.mechanism, user, node.users[user])})
    return ["--bootstrap", node.client_config(user)["bootstrap.servers"], "--client-config", str(file)]


class Terminal:
    """A command in a pseudo terminal, for the time of a ``with`` block."""

    def __init__(self, *arguments: object, lines: int = 24, columns: int = 100, term: str = "xterm") -> None:
        """Start ``quotahost`` with these arguments."""
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._seen = ""
        # pytest-xdist sets these two for its workers, and the command would take them for the terminal's size.
        inherited = {name: text for name, text in os.environ.items() if name not in ("LINES", "COLUMNS")}
        environment = inherited | {"TERM": term, "PYTHONFAULTHANDLER": "1"}
        self._program = subprocess.Popen(
            [sys.executable, "-m", "quotahost", *map(str, arguments)],
            stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, env=environment,
        )  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def press(self, keys: bytes) -> None:
        """Type these keys, and forget the earlier output."""
        self._seen = ""
        os.write(self._ours, keys)

    def shows(self, text: str) -> None:
        """Wait until the command has shown this text since the last keys."""
        eventually(lambda: text in self._read(), on_timeout=self._last)

    def line(self, pattern: str) -> str:
        """Wait for a line since the last keys that has the pattern; returns the line without terminal sequences."""
        eventually(lambda: self._line(pattern) is not None, on_timeout=self._last)
        return self._line(pattern) or ""

    def _line(self, pattern: str) -> str | None:
        whole, _, _ = _COMMAND.sub("", self._read()).rpartition("\n")
        return next((line for line in whole.splitlines() if re.search(pattern, line)), None)

    def ends(self) -> int:
        """Wait for the command's end; returns the exit code."""
        eventually(lambda: (self._read(), self._program.poll() is not None)[1])
        return self._program.returncode

    def _last(self) -> str:
        """The last screen, and the stacks of the command's threads: this ends it."""
        seen = self._seen[-6000:]
        self._program.send_signal(signal.SIGABRT)
        return seen + "".join(iter(self._read_more, ""))

    def _read(self) -> str:
        self._seen += self._read_more()
        return self._seen

    def _read_more(self) -> str:
        readable = select.select([self._ours], [], [], 0.2)[0]
        return os.read(self._ours, 65536).decode(errors="replace") if readable else ""
