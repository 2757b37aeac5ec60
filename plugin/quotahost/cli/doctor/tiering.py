"""Checks of tiered storage's own client, which writes down what was offloaded (``__remote_log_metadata``).

The fence lets those writes pass whoever sends them. But a client that is not exempt has a quota, which a factor
multiplies; in a PAUSE without the fence that is the floor. Then segments are offloaded slowly, when it matters most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, weak
from quotahost.kafka.jaas import login_name
from quotahost.kafka.listeners import Listeners
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.text import printable

_ANONYMOUS: Final = "ANONYMOUS"
_EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"
_LISTENER: Final = "remote.log.metadata.manager.listener.name"
_SLOW: Final = "is not exempt: its quota, and in a PAUSE without the fence the floor, slows offloading down"


def check_tiering(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether the client of ``__remote_log_metadata`` is exempt from quotas, and as whom it connects."""
    if broker.get("remote.log.storage.system.enable").lower() != "true":
        return
    client = _Client(broker)
    listeners = Listeners(broker.properties)
    own = listeners.inter_broker
    if client.is_anonymous:
        # Where brokers are anonymous, too, client-ids exempt both.
        if listeners.authenticates(own) and _ANONYMOUS not in settings.excluded_principals:
            yield weak(
                f"tiered storage's client for __remote_log_metadata connects as {_ANONYMOUS}, while brokers "
                f"authenticate to each other: it {_SLOW}",
                f"{_LISTENER}={own}, with {client.prefix}sasl.* or ssl.* to log in as the brokers do",
            )
        return
    name = client.name
    if name is None:
        yield weak(
            "the principal of tiered storage's client for __remote_log_metadata can't be found in this file: unless it "
            f"is the brokers' own or listed, it {_SLOW}",
            f"make sure that {_EXCLUDED} lists it",
        )
    elif name not in {*settings.excluded_principals, _own_name(listeners)}:
        yield weak(
            f"tiered storage's client for __remote_log_metadata logs in as {printable(name)}, which {_SLOW}",
            f"add User:{printable(name)} to {_EXCLUDED}",
        )


class _Client:
    """The client's own properties (RemoteLogManager, TopicBasedRemoteLogMetadataManagerConfig)."""

    def __init__(self, broker: BrokerFile) -> None:
        prefix = broker.get("remote.log.metadata.manager.impl.prefix") or "rlmm.config."
        self._broker = broker
        self._producer = f"{prefix}remote.log.metadata.producer."
        self.prefix = f"{prefix}remote.log.metadata.common.client."

    def _get(self, name: str) -> str:
        return self._broker.get(self._producer + name) or self._broker.get(self.prefix + name)

    @property
    def is_anonymous(self) -> bool:
        listener = self._broker.get(_LISTENER)
        given = self._get("security.protocol").upper()
        if given in ("", "SSL") and listener:
            return not Listeners(self._broker.properties).authenticates(listener)
        return given in ("", "PLAINTEXT")

    @property
    def name(self) -> str | None:
        """The user of SASL; None for a certificate's subject, and for what a file of Java's JAAS names."""
        return login_name(self._get("sasl.jaas.config"), self._get("sasl.mechanism") or "GSSAPI")


def _own_name(listeners: Listeners) -> str | None:
    """As whom brokers log in at each other's listener."""
    own = listeners.inter_broker
    return listeners.login_name(own) if listeners.protocol(own).startswith("SASL") else None
