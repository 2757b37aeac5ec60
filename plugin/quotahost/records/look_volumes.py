"""The part of a look that is about volumes: how full they are, who writes, and what fills those that somebody opened.

:mod:`quotahost.records.look` is the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import Client, VolumeUse
from quotahost.model.volume_use import MeasuredVolume, TopicUse
from quotahost.model.volumes import Volume
from quotahost.records.declaration import As
from quotahost.records.fields import Name, SizesJson

MAX_VOLUMES: Final = 100
MAX_MARKS: Final = 10
MAX_OPENED: Final = 2
MAX_TOPICS: Final = 30
_MAX_TEXT: Final = 300  # characters of a name, of all three of a mark; a topic has 249 at most
_MAX_PLACES: Final = 20  # directories of a volume that is opened

Number = Annotated[float, Field(allow_inf_nan=False)]


class VolumeJson(SizesJson):
    """A VolumeUse; the limits in bytes consumed. Null is unknown."""

    soft: Number | None
    hard: Number | None
    factor: Number | None


class MarkJson(TypedDict):
    """A client, and the affected topic that it asked to write to."""

    user: str
    clientId: str
    topic: str


class TopicJson(TypedDict):
    """A TopicUse: bytes, and bytes/s."""

    name: Name
    used: Annotated[int, Field(ge=0)]
    written: Number


class OpenedJson(SizesJson):
    """A MeasuredVolume: seconds, and bytes/s."""

    directories: list[str]
    seconds: Number
    growth: Number
    topics: Annotated[list[TopicJson], Field(max_length=MAX_TOPICS)]
    unread: list[str]


# ---- volumes ---------------------------------------------------------------------------------------


def _volumes(listed: list[VolumeJson], _: object) -> tuple[VolumeUse, ...]:
    return tuple(
        VolumeUse(each["volumeName"], each["capacity"], each["consumed"], each["soft"], each["hard"], each["factor"])
        for each in listed
    )


def _volumes_json(volumes: Iterable[VolumeUse]) -> list[VolumeJson]:
    return [
        {
            "volumeName": each.name, "capacity": int(each.capacity), "consumed": int(each.consumed),
            "soft": each.soft, "hard": each.hard, "factor": each.factor,
        }
        for each in volumes
    ]  # fmt: skip


def fitting_volumes(volumes: Iterable[VolumeUse]) -> tuple[VolumeUse, ...]:
    """Those that fit a record; without one whose name is too long, or with a number that no schema allows."""
    return tuple(replace(each, name=in_unicode(each.name)) for each in volumes if _fits(each))[:MAX_VOLUMES]


def _fits(volume: VolumeUse) -> bool:
    numbers = (volume.capacity, volume.consumed, volume.soft or 0, volume.hard or 0, volume.factor or 0)
    return len(volume.name) <= _MAX_TEXT and all(isfinite(number) and number >= 0 for number in numbers)


# ---- marks -----------------------------------------------------------------------------------------


def _marks(listed: list[MarkJson], _: object) -> tuple[tuple[Client, str], ...]:
    return tuple((Client(each["user"], each["clientId"]), each["topic"]) for each in listed)


def _marks_json(marks: Iterable[tuple[Client, str]]) -> list[MarkJson]:
    return [{"user": user, "clientId": client_id, "topic": topic} for (user, client_id), topic in marks]


def fitting_marks(marks: Iterable[tuple[Client, str]]) -> tuple[tuple[Client, str], ...]:
    """Those that fit a record."""
    short = [each for each in marks if len("".join(each[0])) + len(each[1]) <= _MAX_TEXT]
    return tuple((Client(*map(in_unicode, client)), in_unicode(topic)) for client, topic in short[:MAX_MARKS])


# ---- volumes that somebody opened ------------------------------------------------------------------


def _opened(listed: list[OpenedJson], _: object) -> tuple[MeasuredVolume, ...]:
    return tuple(
        MeasuredVolume(
            Volume("", each["volumeName"], each["capacity"], each["consumed"]),
            tuple(each["directories"]),
            each["seconds"],
            each["growth"],
            tuple(TopicUse(topic["name"], topic["used"], topic["written"]) for topic in each["topics"]),
            tuple(each["unread"]),
        )
        for each in listed
    )


def _opened_json(opened: Iterable[MeasuredVolume]) -> list[OpenedJson]:
    return [
        {
            "volumeName": each.volume.name, "capacity": each.volume.capacity, "consumed": each.volume.consumed,
            "directories": list(each.directories), "seconds": each.seconds, "growth": each.growth,
            "topics": [{"name": topic.name, "used": topic.used, "written": topic.written} for topic in each.topics],
            "unread": list(each.unread),
        }
        for each in opened
    ]  # fmt: skip


def fitting_opened(opened: Iterable[MeasuredVolume]) -> tuple[MeasuredVolume, ...]:
    """The first of them, each cut to what fits a record."""
    return tuple(map(_cut, opened))[:MAX_OPENED]


def _cut(opened: MeasuredVolume) -> MeasuredVolume:
    topics = [replace(each, name=in_unicode(each.name[:_MAX_TEXT])) for each in opened.topics[:MAX_TOPICS]]
    directories, unread = opened.directories[:_MAX_PLACES], opened.unread[:_MAX_PLACES]
    places, problems = ([in_unicode(each[:_MAX_TEXT]) for each in texts] for texts in (directories, unread))
    return replace(opened, directories=places, unread=problems, topics=topics)


def in_unicode(text: str) -> str:
    """Without half surrogate pairs, for one of which every reader would refuse the whole record."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


VOLUMES: Final = As(Annotated[list[VolumeJson], Field(max_length=MAX_VOLUMES)], _volumes, _volumes_json)
MARKS: Final = As(Annotated[list[MarkJson], Field(max_length=MAX_MARKS)], _marks, _marks_json)
OPENED: Final = As(Annotated[list[OpenedJson], Field(max_length=MAX_OPENED)], _opened, _opened_json)
