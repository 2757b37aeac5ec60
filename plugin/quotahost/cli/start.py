"""The entry of the command ``quotahost``: ``explain`` and ``top``, which start without typer, and all others.

An operator who asks why a client is slow, while a broker suffers, doesn't wait for typer and pydantic, which take
longer to import than the broker to answer. So ``explain`` and ``top`` have argparse's parsers.
"""

import os
import sys
from collections.abc import Sequence
from errno import ENOSPC, EPIPE
from importlib import import_module
from io import TextIOWrapper
from typing import Final

from quotahost.base.errors import QuotahostError

_QUICK: Final = ("explain", "top")


def main() -> None:
    """Run the command of the arguments. Ctrl-C, or what the system refuses, ends it without a traceback."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by 2>&-; print() would take None for stdout
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what its encoding has not ends no command
    try:
        try:
            if sys.argv[1:2] and sys.argv[1] in _QUICK:
                sys.exit(run(sys.argv[1:]))
            from quotahost.cli.main import app

            app(prog_name="quotahost")
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # also before typer is imported, which ends so itself
        sys.exit(130)  # as a shell says it
    except OSError as error:
        if error.filename is None and error.errno not in (EPIPE, ENOSPC):
            raise
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == EPIPE:  # who has read enough is told nothing, as by typer
            sys.exit(1)
        what = "the output can't be written" if error.filename is None else f"{error.filename} can't be used"
        _tell(f"{what}: {error.strerror}")
        sys.exit(2)  # 1 is what drift and doctor have found


def run(arguments: Sequence[str]) -> int:
    """Run one of the quick commands; the exit code. Its error goes to stderr, without a traceback."""
    name, *options = arguments
    try:
        return int(import_module(f"quotahost.cli.{name}.{name}").main(options))
    except QuotahostError as error:
        _tell(str(error))
        return error.exit_code


def _tell(error: str) -> None:
    from quotahost.cli.console import say  # here, as main() must hear of Ctrl-C meanwhile: it imports rich

    say(error, to_stderr=True)
