"""Says that somebody watches, so that brokers publish who uses what (``quotahost.records.look``) for some seconds.

No clock is compared: a broker counts the seconds from when it reads the record.
"""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from quotahost.model import Client
from quotahost.records.codec import Codec, Versioned, Whole, object_of
from quotahost.records.fields import MAX_NAME, Name

#: The longest time for which one record asks; whoever watches on writes another one before.
MOST_SECONDS: Final = 30
#: One key for all, so that compaction keeps one record, however many people have watched.
KEY: Final = b"watch"
_MAX_BYTES: Final = 300_000  # a client-id may have 32,767 bytes, of which JSON may write each as six


class VolumeOf(NamedTuple):
    """A volume, by the id of its broker and its name there."""

    broker: str
    name: str


_NAME_OF_CLIENT: Final = Annotated[str, Field(max_length=32_767)]
_CLIENT: Final = object_of(Client, principal=Annotated[_NAME_OF_CLIENT, Field(alias="user")], client_id=_NAME_OF_CLIENT)
_VOLUME: Final = object_of(
    VolumeOf, broker=Annotated[Name, Field(alias="brokerId")], name=Annotated[Name, Field(alias="volumeName")]
)


@dataclass(frozen=True, slots=True)
class Watch(Versioned):
    """Somebody watches."""

    #: Who, by an id of their own choice; each watcher's newest record counts.
    watcher: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    seconds: Annotated[Whole, Field(ge=0, le=MOST_SECONDS)]  # for how long, from now on; 0 if they have ended
    client: Annotated[Client, _CLIENT] | None = None  # the client that they want to have explained; None for none
    #: The volume that they have opened, of which its broker tells what fills it; None for none.
    volume: Annotated[VolumeOf, _VOLUME] | None = None


CODEC: Final = Codec(Watch, _MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode
