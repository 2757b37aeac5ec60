"""What the lab's commands check before they begin: Spark takes seconds to start, and a scene to play."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from quotahost.cli.console import parsed
from quotahost.cli.property_files import BrokerFile
from quotahost.errors import QuotahostError
from quotahost.units.parse import parse_count

_PAGES: Final = (".html", ".htm")
_PLOTS: Final = (".png", ".svg")
_SECONDS: Final = "quota.window.size.seconds"
_CLUSTER: Final = "Only of this cluster; may be repeated."
_SINCE: Final = "From 2026-11-21, or 2026-11-21T09:30, in UTC."
_UNTIL: Final = "To that time; a day is included whole."
Clusters: TypeAlias = Annotated[list[str] | None, typer.Option("--cluster", help=_CLUSTER)]
Since: TypeAlias = Annotated[str | None, typer.Option("--from", metavar="TIME", help=_SINCE)]
Until: TypeAlias = Annotated[str | None, typer.Option("--to", metavar="TIME", help=_UNTIL)]


def check_packages(command: str, *names: str, extra: str = "spark") -> None:
    """See that the packages are there, which an extra of quotahost's brings, without importing them.

    Raises QuotahostError if one is missing; the message says what to install.
    """
    if missing := [name for name in names if find_spec(name) is None]:
        raise QuotahostError(f"quotahost {command} needs {' and '.join(missing)}: pip install 'quotahost[{extra}]'")


def check_page(out: Path) -> None:
    """See that a page can be written there. Raises typer.BadParameter if not."""
    if not (out.suffix.lower() in _PAGES and out.absolute().parent.is_dir()):
        raise typer.BadParameter(f"{out} must be a FILE.html in a folder that exists", param_hint="--out")


def check_plot(command: str, plot: Path) -> None:
    """See that it can be drawn. Raises QuotahostError without matplotlib, typer.BadParameter for another format."""
    check_packages(f"{command} --plot", "matplotlib")
    if plot.suffix.lower() not in _PLOTS:
        raise typer.BadParameter(f"{plot} is no FILE.png or FILE.svg", param_hint="--plot")


def windows_of(file: BrokerFile) -> tuple[int, int]:
    """A broker's number of windows, and the length of one in ms. Raises typer.BadParameter if one is wrong."""
    number = parsed("quota.window.num", file.get("quota.window.num") or "11", parse_windows)
    return number, 1000 * parsed(_SECONDS, file.get(_SECONDS) or "1", parse_count)


def parse_windows(text: str) -> int:
    """``quota.window.num``. Raises ValueError if it is no number from 1 to 100."""
    windows = parse_count(text)
    if windows > 100:
        raise ValueError("windows are too many; take 100 at most")
    return windows


def parse_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """The first time of ``--from`` and ``--to``, and the time before which the last one is; None is open.

    A time without a zone is UTC, and a day is included whole. Raises typer.BadParameter if it is no time or no range.
    """
    start = None if since is None else parsed("--from", since, _parse_time)
    end = None if until is None else parsed("--to", until, _parse_end)
    if start is not None and end is not None and end <= start:
        raise typer.BadParameter("--to is not after --from")
    return start, end


def _parse_end(text: str) -> datetime:
    whole_day = len(text) <= len("2026-11-21")  # no time of day
    return _parse_time(text, timedelta(days=1) if whole_day else timedelta())


def _parse_time(text: str, more: timedelta = timedelta()) -> datetime:
    try:
        at = datetime.fromisoformat(text) + more
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no time; write it like 2026-11-21 or 2026-11-21T09:30") from None
