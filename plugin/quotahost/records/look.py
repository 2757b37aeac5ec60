"""The record of a look: one broker's state, what its clients use, and how full its volumes are, for watchers.

The forms of the record's lists come first. :func:`of` makes the record, and cuts what doesn't fit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainSerializer
from typing_extensions import TypedDict  # pydantic needs this TypedDict before Python 3.12

from quotahost.model import Client, ClientUse, LimitedBy, Look, QuotaType, State, VolumeUse
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.records.codec import IS_KEY, As, Codec, Record, Versioned, Whole, object_of
from quotahost.records.fields import MAX_LONG, Long, Name, Number
from quotahost.records.usage import ClusterId, fitting

MAX_BYTES: Final = 900_000  # librdkafka's default limit is a million
MAX_USES: Final = 1_000
MAX_ANSWERS: Final = 4
MAX_VOLUMES: Final = 100
MAX_MARKS: Final = 10
MAX_OPENED: Final = 2
MAX_ADDRESS: Final = 60  # characters; an IPv6 address with its scope has fewer
MAX_TOPICS: Final = 30
_MAX_NAMES: Final = 60_000  # characters of all names of uses; JSON may write each character as six
_MAX_CAUSE: Final = 2_000  # characters
_MAX_LINES: Final = 20_000  # characters of all answers
_MAX_TEXT: Final = 300  # characters of a mark's three texts together; a topic's name has 249 at most
_MAX_UNREAD: Final = 20  # directories that could not be listed

# ---- the forms of the record's lists ---------------------------------------------------------------

#: The bytes come from a gauge: as a double, Java's largest long is 2**63.
Bytes = Annotated[Long, PlainSerializer(lambda size: min(int(size), MAX_LONG))]
#: The rates are in the unit of the quota type; null is unlimited.
_USE: Final = object_of(
    ClientUse, quota_type=QuotaType, user=str, client_id=str, scope=str, rate=Number, quota=Number | None,
    limit=Number | None, delay_ms=Number, bound=Annotated[LimitedBy, Field(alias="boundBy")],
    idle=Annotated[Number, Field(alias="idleSeconds")], shadow=str,
    address=Annotated[str, Field(max_length=MAX_ADDRESS)],
)  # fmt: skip
#: The limits are in bytes consumed; null means unknown.
_VOLUME: Final = object_of(
    VolumeUse, name=Annotated[Name, Field(alias="volumeName")], capacity=Bytes, consumed=Bytes, soft=Number | None,
    hard=Number | None, factor=Number | None,
)  # fmt: skip
_TOPIC: Final = object_of(TopicUse, name=Name, used=Long, written=Number)
#: ``seconds`` is in s, ``growth`` in bytes/s.
_OPENED: Final = object_of(
    MeasuredVolume, name=Annotated[Name, Field(alias="volumeName")], capacity=Long, consumed=Long,
    directories=tuple[str, ...], seconds=Number, growth=Number,
    topics=Annotated[tuple[Annotated[TopicUse, _TOPIC], ...], Field(max_length=MAX_TOPICS)], unread=tuple[str, ...],
)  # fmt: skip


#: A client, and the affected topic that it asked to write to.
class _MarkJson(TypedDict):
    user: str
    client_id: str
    topic: str


_MARK: Final = As(
    _MarkJson,
    lambda form, _: (Client(form["user"], form["client_id"]), form["topic"]),
    lambda mark: {"user": mark[0].principal, "client_id": mark[0].client_id, "topic": mark[1]},
)


@dataclass(frozen=True, slots=True)
class Answered(Record):
    """The broker's explanation of a client, for a watcher."""

    watcher: Name  # the id of the watcher who asked
    lines: tuple[str, ...]  # the lines that ``quotahost explain`` reads; another version's may differ


@dataclass(frozen=True, slots=True)
class BrokerLook(Versioned):
    """One look at a broker; ``quotahost.model.Look`` explains the fields that have no comment here."""

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]  # the broker's id
    state: State
    factor: Number
    limit_factor: Number
    cause: Annotated[str, Field(max_length=_MAX_CAUSE)]
    fence: Literal["open", "closed", "none"]
    affected: Annotated[Whole, Field(alias="affectedTopics", ge=-1)]
    clients: Annotated[Whole, Field(ge=0)]
    clients_max: Annotated[Whole, Field(ge=0)]
    #: The clients' use of quotas; empty from a broker that nobody watches.
    uses: Annotated[tuple[Annotated[ClientUse, _USE], ...], Field(max_length=MAX_USES)]
    answers: Annotated[tuple[Answered, ...], Field(max_length=MAX_ANSWERS)] = ()  # explanations for watchers
    cluster: ClusterId = ""  # the id of its cluster; "" while it is unknown
    left_out: bool = False  # whether some uses didn't fit
    volumes: Annotated[tuple[Annotated[VolumeUse, _VOLUME], ...], Field(max_length=MAX_VOLUMES)] = ()
    marks: Annotated[tuple[Annotated[tuple[Client, str], _MARK], ...], Field(max_length=MAX_MARKS)] = ()
    #: The broker's volumes that watchers have opened, once they are measured.
    opened: Annotated[tuple[Annotated[MeasuredVolume, _OPENED], ...], Field(max_length=MAX_OPENED)] = ()
    #: Whether the broker knew of a watcher; if not, a reader waits for the next look.
    watched: bool = True

    @property
    def look(self) -> Look:
        same = {each.name: getattr(self, each.name) for each in fields(Look) if each.name != "where"}
        return Look(where=f"broker {self.broker}", **same)


CODEC: Final = Codec(BrokerLook, MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode


# ---- what fits a record ----------------------------------------------------------------------------


def of(
    broker: str,
    cluster: str,
    look: Look,
    answers: Iterable[Answered] = (),
    opened: Iterable[MeasuredVolume] = (),
    watched: bool = True,
) -> BrokerLook:
    """Make a broker's record of a look, and cut what is too long."""
    fence: Any = look.fence
    names = attrgetter("user", "client_id", "scope", "shadow", "address")
    uses = tuple(fitting(look.uses, MAX_USES, _MAX_NAMES, lambda use: len("".join(names(use)))))
    marks = tuple(mark for mark in look.marks if len("".join(mark[0])) + len(mark[1]) <= _MAX_TEXT)
    return BrokerLook(
        broker, look.state, look.factor, look.limit_factor, look.cause[:_MAX_CAUSE], fence, look.affected,
        look.clients, look.clients_max, uses, tuple(_fitting_answers(answers))[:MAX_ANSWERS], cluster,
        look.left_out or len(uses) < len(look.uses), tuple(look.volumes)[:MAX_VOLUMES], marks[:MAX_MARKS],
        tuple(replace(volume, unread=volume.unread[:_MAX_UNREAD]) for volume in opened)[:MAX_OPENED], watched,
    )  # fmt: skip


def _fitting_answers(answers: Iterable[Answered]) -> Iterator[Answered]:
    left = _MAX_LINES
    for answer in answers:
        length = sum(map(len, answer.lines))
        if length <= left:
            left -= length
            yield answer
