"""The record of a watcher: it makes brokers publish looks (``quotahost.records.look``) for some seconds.

No clocks are compared: a broker counts the seconds from the moment at which it reads the record.
"""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from quotahost.model import Client
from quotahost.records.codec import Codec, Versioned, Whole, object_of
from quotahost.records.fields import MAX_NAME, Name

#: The longest time that one record asks for; a watcher that goes on writes the next record before its end.
MOST_SECONDS: Final = 30
#: All watchers use one key, so that compaction keeps one record, however many have watched.
KEY: Final = b"watch"
_MAX_BYTES: Final = 300_000  # a client-id may have 32,767 bytes, and JSON may write each byte as six


class VolumeOf(NamedTuple):
    """A volume: the id of its broker, and its name on this broker."""

    broker: str
    name: str


_NAME_OF_CLIENT: Final = Annotated[str, Field(max_length=32_767)]
_CLIENT: Final = object_of(Client, principal=Annotated[_NAME_OF_CLIENT, Field(alias="user")], client_id=_NAME_OF_CLIENT)
_VOLUME: Final = object_of(
    VolumeOf, broker=Annotated[Name, Field(alias="brokerId")], name=Annotated[Name, Field(alias="volumeName")]
)


@dataclass(frozen=True, slots=True)
class Watch(Versioned):
    """A watcher's request for looks."""

    #: The watcher's id, which the watcher chooses; each watcher's latest record counts.
    watcher: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    seconds: Annotated[Whole, Field(ge=0, le=MOST_SECONDS)]  # for how long from now; 0 if the watcher has ended
    client: Annotated[Client, _CLIENT] | None = None  # the client that brokers should explain; None for no client
    #: The volume that the watcher has opened; its broker tells what fills the volume. None for no volume.
    volume: Annotated[VolumeOf, _VOLUME] | None = None


CODEC: Final = Codec(Watch, _MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode
