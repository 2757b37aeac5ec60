"""Several commands share these options (``--cluster``, ``--from``, ``--to``, ``--client-config``) and early checks.

``explain`` and ``top`` don't use this module, because they start without typer (``quotahost.cli.start``).
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar

import typer

from quotahost.base.errors import Unusable
from quotahost.cli.property_files import BrokerFile
from quotahost.units.parse import parse_count

T = TypeVar("T")
_SECONDS: Final = "quota.window.size.seconds"
_CLUSTER: Final = "Only of this cluster; may be repeated."
_SINCE: Final = "From 2026-11-21, or 2026-11-21T09:30, in UTC."
_UNTIL: Final = "Up to this time; a day is included as a whole."
Clusters: TypeAlias = Annotated[list[str] | None, typer.Option("--cluster", help=_CLUSTER)]
Since: TypeAlias = Annotated[str | None, typer.Option("--from", metavar="TIME", help=_SINCE)]
Until: TypeAlias = Annotated[str | None, typer.Option("--to", metavar="TIME", help=_UNTIL)]
_CONNECT: Final = "Connection properties, as librdkafka or the Java client names them; default: plaintext, no login."
ClientConfig: TypeAlias = Annotated[
    Path | None, typer.Option("--client-config", "--command-config", metavar="FILE", help=_CONNECT)
]


def parsed(option: str, text: str, parse: Callable[[str], T]) -> T:
    """Return an option's value. Raises typer.BadParameter, which names the option, for the parser's ValueError."""
    try:
        return parse(text)
    except ValueError as wrong:
        raise typer.BadParameter(f"{text!r} {wrong}", param_hint=option) from None


def check_packages(command: str, *names: str, extra: str = "spark") -> None:
    """Check that packages, which belong to an extra of quotahost (or ""), are installed. Raises Unusable if not."""
    if missing := [name for name in names if find_spec(name) is None]:
        install = f"'quotahost[{extra}]'" if extra else " ".join(missing)
        raise Unusable(f"quotahost {command} needs {' and '.join(missing)}: pip install {install}")


def check_out(option: str, out: Path, *endings: str) -> None:
    """Check that a file has one of the endings, if any, and its folder exists. Raises typer.BadParameter if not."""
    if (endings and out.suffix.lower() not in endings) or not out.absolute().parent.is_dir():
        names = " or ".join(f"FILE{ending}" for ending in endings) or "FILE"
        raise typer.BadParameter(f"{out} must be a {names} in a folder that exists", param_hint=option)


def check_plot(command: str, plot: Path | None) -> None:
    """Check that a plot can be drawn if ``plot`` is given. Raises Unusable if matplotlib is missing."""
    if plot is not None:
        check_packages(f"{command} --plot", "matplotlib", extra="")
        check_out("--plot", plot, ".png", ".svg")


def windows_of(file: BrokerFile, windows: str | None = None) -> tuple[int, int]:
    """Return the number of windows, from ``--windows`` or a broker's file, and a window's ms, or raise BadParameter."""
    option = "quota.window.num" if windows is None else "--windows"
    text = file.get(option, "11") if windows is None else windows
    return parsed(option, text, parse_count), 1000 * parsed(_SECONDS, file.get(_SECONDS, "1"), parse_count)


def parse_range(since: str | None, until: str | None) -> tuple[float | None, float | None]:
    """Return the start (included) and the end (excluded) of ``--from`` and ``--to``; None means no bound.

    Both are seconds since 1970. A time without a zone is UTC, and a day is included whole. Raises typer.BadParameter if
    a text is no time, or the end is not after the start.
    """
    start = None if since is None else parsed("--from", since, _parse_time)
    end = None if until is None else parsed("--to", until, partial(_parse_time, is_end=True))
    if start is not None and end is not None and end <= start:
        raise typer.BadParameter("--to is not after --from")
    return start, end


def _parse_time(text: str, is_end: bool = False) -> float:
    is_day = len(text) <= len("2026-11-21")  # no time of day
    try:
        at = datetime.fromisoformat(text) + timedelta(days=is_end and is_day)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("is not a time; write it like 2026-11-21 or 2026-11-21T09:30") from None
