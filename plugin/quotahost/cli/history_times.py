"""The times that ``--from`` and ``--to`` take."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta


def parse_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """From when, and before when; None is open. A time without a zone is UTC, and a day is included whole.

    Raises:
        ValueError: one is no time, or it ends before it begins; it says what to write.
    """
    start = None if since is None else _parse(since, "--from")[0]
    if until is None:
        return start, None
    at, whole_day = _parse(until, "--to")
    end = at + timedelta(days=1) if whole_day else at
    if start is not None and end <= start:
        raise ValueError("--to is not after --from")
    return start, end


def _parse(text: str, option: str) -> tuple[datetime, bool]:
    try:
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC), True
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC), False
    except (ValueError, OverflowError):
        raise ValueError(f"{option} must be like 2026-11-21 or 2026-11-21T09:30, not {text!r}") from None
