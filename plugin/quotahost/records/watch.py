"""Says that somebody watches, so that brokers publish who uses what.

``quotahost top --bootstrap`` writes it to the topic ``watch.topic`` as long as it runs; the task ``publish-usage`` of
every broker reads it, and publishes a ``quotahost.records.look.BrokerLook`` every few seconds until then. No clock is
compared: a broker counts the seconds from when it reads the record. The form is ``schemas/watch.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import Client
from quotahost.records.codec import Codec
from quotahost.records.declaration import RECORD, As, Versioned, Whole
from quotahost.records.fields import MAX_NAME, Name

#: The longest time for which one record asks; whoever watches on writes another one before.
MOST_SECONDS: Final = 30
#: One key for all, so that compaction keeps one record, however many people have watched.
KEY: Final = b"watch"
_MAX_BYTES: Final = 300_000  # a client-id may have 32,767 bytes, of which JSON may write each as six


class ClientJson(TypedDict):
    """A client; ``user`` is the principal."""

    user: Annotated[str, Field(max_length=32_767)]
    clientId: Annotated[str, Field(max_length=32_767)]


def _client(fields: ClientJson | None, _: object) -> Client | None:
    return None if fields is None else Client(fields["user"], fields["clientId"])


def _client_json(client: Client | None) -> ClientJson | None:
    return None if client is None else {"user": client.principal, "clientId": client.client_id}


class VolumeOf(NamedTuple):
    """A volume, by the id of its broker and its name there."""

    broker: str
    name: str


class VolumeOfJson(TypedDict):
    """A VolumeOf."""

    brokerId: Name
    volumeName: Name


def _volume(fields: VolumeOfJson | None, _: object) -> VolumeOf | None:
    return None if fields is None else VolumeOf(fields["brokerId"], fields["volumeName"])


def _volume_json(volume: VolumeOf | None) -> VolumeOfJson | None:
    return None if volume is None else {"brokerId": volume.broker, "volumeName": volume.name}


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class Watch(Versioned):
    """Somebody watches.

    Attributes:
        watcher: who, by an id of their own choice; each watcher's newest record counts.
        seconds: for how long, from now on; 0 if they have ended.
        client: the client that they want to have explained; None for none.
        volume: the volume that they have opened, of which its broker tells what fills it; None for none.
    """

    watcher: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    seconds: Annotated[Whole, Field(ge=0, le=MOST_SECONDS)]
    client: Annotated[Client | None, As(ClientJson | None, _client, _client_json)] = None
    volume: Annotated[VolumeOf | None, As(VolumeOfJson | None, _volume, _volume_json)] = None


_CODEC: Final = Codec(Watch, _MAX_BYTES, lambda record: "watch")
encode, decode = _CODEC.encode, _CODEC.decode
