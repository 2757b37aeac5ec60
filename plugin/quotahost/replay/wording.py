"""A replay in an operator's words, for the page and the terminal alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from quotahost.replay.values import ClientCourse, Course, Held, Replay, Where
from quotahost.report.values import Name, in_utc
from quotahost.report.wording import show_at, show_bytes, show_span
from quotahost.text import printable

ARROW: Final = " → "
FACTOR_HEADS: Final = ("factor of", "settings", "OPEN", "THROTTLE", "PAUSE", "PAUSEs", "lowest factor", "first PAUSE")
VOLUME_HEADS: Final = ("volume", "slowed", "paused", "lowest factor", "first PAUSE", "fullest", "")
CLIENT_HEADS: Final = ("user", "client-id", "brokers", "rate", "slowed", "paused")
_NEVER: Final = "–"  # noqa: RUF001  # a dash, as in the report


def show_seconds(seconds: float) -> str:
    """``3 h 20 min``; a dash for none."""
    return show_span(timedelta(seconds=seconds)) if seconds >= 0.5 else _NEVER


def show_time(at: float | None) -> str:
    """A time in UTC; a dash for none."""
    return _NEVER if at is None else show_at(in_utc(at))


def _change(then: str, new: str) -> str:
    return then if then == new else f"{then}{ARROW}{new}"


def where(of: Where, replay: Replay) -> str:
    """Whose factor it is."""
    cluster = f"cluster {printable(of.cluster)}"
    if not of.broker:
        return cluster
    several = len({each.cluster for each in replay.where}) > 1
    return f"{cluster}, broker {printable(of.broker)}" if several else f"broker {printable(of.broker)}"


def title(name: Name, replay: Replay) -> str:
    """``broker 1: /dev/sdb``, after the cluster's name if there are several clusters."""
    several = len({each.cluster for each in replay.where}) > 1
    cluster = f"{printable(name.cluster)} / " if several else ""
    return f"{cluster}broker {printable(name.broker)}: {printable(name.volume)}"


def factor_rows(replay: Replay) -> list[list[str]]:
    """Two rows for each factor: then, and with the settings in question."""
    rows = []
    for each in replay.where:
        rows.append([where(each, replay), "then", *_held(each.then)])
        rows.append(["", "these", *_held(each.new)])
        if each.unknown_s >= 1:
            rows.append(["", f"no readings for {show_seconds(each.unknown_s)}", *[""] * 6])
    return rows


def _held(held: Held) -> list[str]:
    times = map(show_seconds, (held.open_s, held.throttle_s, held.pause_s))
    return [*times, str(held.pauses), f"{held.lowest:.2f}", show_time(held.first_pause)]


def volume_rows(replay: Replay, most: int) -> list[list[str]]:
    """So many volumes, those that would have been paused or slowed longest first."""
    return [volume_row(course, replay) for course in replay.volumes[:most]]


def volume_row(course: Course, replay: Replay) -> list[str]:
    """One row for a volume, then and with the settings in question where they differ."""
    then, new = course.then, course.new
    return [
        title(course.name, replay),
        _change(show_seconds(then.throttle_s), show_seconds(new.throttle_s)),
        _change(show_seconds(then.pause_s), show_seconds(new.pause_s)),
        _change(f"{then.lowest:.2f}", f"{new.lowest:.2f}"),
        _change(show_time(then.first_pause), show_time(new.first_pause)),
        f"{_change(show_bytes(course.peak_then), show_bytes(course.peak_new))} of {show_bytes(course.capacity)}",
        ", ".join(_remarks(course)),
    ]


def _remarks(course: Course) -> list[str]:
    full = [f"full at {show_time(course.full_at)}"] if course.full_at is not None else []
    return full + (["estimated"] if course.estimated else [])


def client_rows(replay: Replay, most: int) -> list[list[str]]:
    """So many clients that were or would have been held back, those that would have been paused longest first."""
    return [_client_row(client) for client in replay.clients[:most]]


def _client_row(client: ClientCourse) -> list[str]:
    then, new = client.then, client.new
    return [
        printable(client.user),
        printable(client.client),
        str(len(client.brokers)),
        f"{show_bytes(client.rate)}/s",
        _change(show_seconds(then.slowed_s), show_seconds(new.slowed_s)),
        _change(show_seconds(then.paused_s), show_seconds(new.paused_s)),
    ]
