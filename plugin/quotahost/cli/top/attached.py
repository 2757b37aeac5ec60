"""Looks at a running broker of this machine again and again, by one program of Java that stays attached to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Final

from quotahost.cli.explain.query import Unanswered, command_of, refusal, trouble
from quotahost.cli.jars import NoJar, carried_jar
from quotahost.host.looks import parse
from quotahost.model.look import Look

MOST: Final = 1_000  # scopes of one look
_END: Final = "end"


class Attached:
    """Use it in a ``with`` block; then the program ends with it, as it does with this process."""

    def __init__(self, which: str = "", most: int = MOST) -> None:
        """Attach to a broker (``quotahost.cli.explain.query.named``), for at most so many rows.

        Raises:
            Unanswered: there is no Java, or no jar; whether there is such a broker shows at the first look.
        """
        self._which, self._most = which, most
        with ExitStack() as stack:
            try:
                jar = stack.enter_context(carried_jar())
            except NoJar as error:
                raise Unanswered(str(error), "reinstall quotahost") from None
            command = command_of(jar, which, "watch", str(most + 1))  # one more tells whether there are more
            pipe = subprocess.PIPE
            self._program = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            self._stack = stack.pop_all()

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            self._program.kill()
            self._program.communicate()

    def look(self) -> Look:
        """What the broker says now.

        Raises:
            Unanswered: there is no such broker, it has ended, or can't be asked.
        """
        lines = list(self._ask())
        wrong = refusal(lines, self._which)
        if wrong is not None:
            raise wrong
        try:
            return parse(lines).first(self._most)
        except ValueError as problem:
            raise trouble("older", f"{self._which or 'the broker'}: {problem}", self._which) from None

    def _ask(self) -> Iterator[str]:
        into, out = _pipe(self._program.stdin), _pipe(self._program.stdout)
        try:
            into.write(b"\n")
            into.flush()
        except BrokenPipeError:
            pass  # it has ended; what it said last tells why
        for raw in out:
            line = raw.decode("ascii", "replace").rstrip("\r\n")
            if line == _END:
                return
            yield line
            if line.startswith("error\t"):
                return
        raise Unanswered("the broker no longer answers", "see whether it still runs")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise TypeError("Popen was called with PIPE")
    return pipe
