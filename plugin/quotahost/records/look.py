"""What one broker shows to those who watch: its state, and who uses what.

The task ``publish-usage`` of each broker writes it to the topic ``looks.topic`` under the broker's id, while somebody
watches (``quotahost.records.watch``); ``quotahost top --bootstrap`` reads it. The form is ``schemas/look.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, Any, Final, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import Bound, Client, ClientUse, Look, QuotaType, State, VolumeUse
from quotahost.model.volume_use import MeasuredVolume
from quotahost.records.clients import ClusterId
from quotahost.records.codec import Codec
from quotahost.records.declaration import IS_KEY, RECORD, As, Versioned, Whole
from quotahost.records.fields import Name
from quotahost.records.look_volumes import (
    MARKS,
    OPENED,
    VOLUMES,
    Number,
    fitting_marks,
    fitting_opened,
    fitting_volumes,
    in_unicode,
)

MAX_BYTES: Final = 900_000  # librdkafka sends a million by default
MAX_USES: Final = 1_000
MAX_ANSWERS: Final = 4
_MAX_NAMES: Final = 60_000  # characters of all names; JSON may write each as six
_MAX_TEXT: Final = 2_000  # characters of the cause
_MAX_LINES: Final = 20_000  # characters of all answers


class UseJson(TypedDict):
    """A ClientUse. The rates are in the unit of the quota type; null is unlimited."""

    quotaType: QuotaType
    user: str
    clientId: str
    scope: str
    rate: Number
    quota: Number | None
    limit: Number | None
    delayMs: Number
    boundBy: Bound
    idleSeconds: Number
    shadow: str


# In the order of ClientUse's fields: both directions pair them by position.
_USE: Final = tuple(UseJson.__annotations__)


@dataclass(frozen=True, slots=True)
class Answered:
    """What the broker says of a client that a watcher wants to have explained.

    Attributes:
        watcher: who asked.
        lines: the lines that ``quotahost explain`` reads; those of another version may differ.
    """

    watcher: str
    lines: tuple[str, ...]


class AnsweredJson(TypedDict):
    """An Answered."""

    watcher: Name
    lines: list[str]


def _uses(listed: list[UseJson], _: object) -> tuple[ClientUse, ...]:
    return tuple(ClientUse(*(each[name] for name in _USE)) for each in listed)  # type: ignore[literal-required]


def _uses_json(uses: Iterable[ClientUse]) -> list[dict[str, Any]]:
    fields = ClientUse.__dataclass_fields__
    return [dict(zip(_USE, (getattr(use, field) for field in fields), strict=True)) for use in uses]


def _fitting(uses: Iterable[ClientUse]) -> Iterator[ClientUse]:
    """The first of them, as many as fit a record. A number that JSON lacks would spoil all of it."""
    names = 0
    for number, use in enumerate(uses):
        names += len(use.user) + len(use.client_id) + len(use.scope) + len(use.shadow)
        if number == MAX_USES or names > _MAX_NAMES:
            return
        if all(isfinite(value) for value in (use.rate, use.quota or 0, use.limit or 0, use.delay_ms, use.idle)):
            yield use


def _answers(listed: list[AnsweredJson], _: object) -> tuple[Answered, ...]:
    return tuple(Answered(each["watcher"], tuple(each["lines"])) for each in listed)


def _answers_json(answers: Iterable[Answered]) -> list[AnsweredJson]:
    return [{"watcher": each.watcher, "lines": list(each.lines)} for each in answers]


def _fitting_answers(answers: Iterable[Answered]) -> Iterator[Answered]:
    left = _MAX_LINES
    for each in answers:
        length = sum(map(len, each.lines))
        if length <= left:
            left -= length
            yield each


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class BrokerLook(Versioned):
    """One look at a broker; the fields without a word here are those of ``quotahost.model.Look``.

    Attributes:
        broker: the broker's id.
        cluster: the id of its cluster; "" while it is unknown.
        uses: at most MAX_USES of them; none from a broker that nobody watches.
        answers: what watchers asked.
        left_out: whether there were more uses than fit.
        volumes: at most MAX_VOLUMES.
        opened: those of its volumes that watchers opened, once they are measured.
    """

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]
    state: State
    factor: Number
    limit_factor: Number
    cause: Annotated[str, Field(max_length=_MAX_TEXT)]
    fence: Literal["open", "closed", "none"]
    affected: Annotated[Whole, Field(alias="affectedTopics", ge=-1)]
    clients: Annotated[Whole, Field(ge=0)]
    clients_max: Annotated[Whole, Field(ge=0)]
    uses: Annotated[tuple[ClientUse, ...], As(Annotated[list[UseJson], Field(max_length=MAX_USES)], _uses, _uses_json)]
    answers: Annotated[
        tuple[Answered, ...], As(Annotated[list[AnsweredJson], Field(max_length=MAX_ANSWERS)], _answers, _answers_json)
    ] = ()
    cluster: ClusterId = ""
    left_out: bool = False
    volumes: Annotated[tuple[VolumeUse, ...], VOLUMES] = ()
    marks: Annotated[tuple[tuple[Client, str], ...], MARKS] = ()
    opened: Annotated[tuple[MeasuredVolume, ...], OPENED] = ()

    @property
    def look(self) -> Look:
        """As a look at this broker."""
        return Look(
            f"broker {self.broker}", self.state, self.factor, self.limit_factor, self.cause, self.fence, self.affected,
            self.clients, self.clients_max, self.uses, self.left_out, volumes=self.volumes, marks=self.marks,
        )  # fmt: skip


def of(
    broker: str, cluster: str, look: Look, answers: Iterable[Answered] = (), opened: Iterable[MeasuredVolume] = ()
) -> BrokerLook:
    """A broker's record of a look; what is too long is cut, and what JSON lacks is left out."""
    fence: Any = look.fence
    uses = tuple(_fitting(map(_in_unicode, look.uses)))
    answered = tuple(_fitting_answers(answers))[:MAX_ANSWERS]
    return BrokerLook(
        broker, look.state, look.factor, look.limit_factor, look.cause[:_MAX_TEXT], fence, look.affected,
        look.clients, look.clients_max, uses, answered, cluster, look.left_out or len(uses) < len(look.uses),
        fitting_volumes(look.volumes), fitting_marks(look.marks), fitting_opened(opened),
    )  # fmt: skip


def _in_unicode(use: ClientUse) -> ClientUse:
    """Without half surrogate pairs, for one of which every reader would refuse the whole record."""
    if use.user.isascii() and use.client_id.isascii() and use.scope.isascii():
        return use
    return replace(use, user=in_unicode(use.user), client_id=in_unicode(use.client_id), scope=in_unicode(use.scope))


_CODEC: Final = Codec(BrokerLook, MAX_BYTES, lambda record: record.broker)
encode, decode = _CODEC.encode, _CODEC.decode
