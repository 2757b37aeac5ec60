"""The entry point of ``quotahost`` starts ``explain`` and ``top`` without typer, and all other commands with typer.

The imports of typer and pydantic take longer than a broker's answer, and an operator who asks why a client is slow must
not wait for them while a broker suffers. So ``explain`` and ``top`` use argparse.
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
    """Run the command of the arguments. Ctrl-C or an error of the operating system ends it without a traceback."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, for example by 2>&-; print() would use stdout for None
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for characters that the encoding lacks
    try:
        try:
            if sys.argv[1:2] and sys.argv[1] in _QUICK:
                sys.exit(run(sys.argv[1:]))
            from quotahost.cli.main import app

            app(prog_name="quotahost")
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # typer handles it in the same way, but only after its import
        sys.exit(130)  # a shell's code for SIGINT
    except OSError as error:
        if error.filename is None and error.errno not in (EPIPE, ENOSPC):
            raise
        # Python flushes stdout again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == EPIPE:  # the reader has closed the pipe; typer shows no message, either
            sys.exit(1)
        what = "the output can't be written" if error.filename is None else f"{error.filename} can't be used"
        _tell(f"{what}: {error.strerror}")
        sys.exit(2)  # 1 means that drift or doctor have found something


def run(arguments: Sequence[str]) -> int:
    """Run one of the quick commands and return its exit code. An error goes to stderr, without a traceback."""
    name, *options = arguments
    try:
        return int(import_module(f"quotahost.cli.{name}.{name}").main(options))
    except QuotahostError as error:
        _tell(str(error))
        return error.exit_code


def _tell(error: str) -> None:
    from quotahost.cli.console import say  # it imports rich, and main() must handle Ctrl-C meanwhile

    say(error, to_stderr=True)
