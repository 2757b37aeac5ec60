"""A broker's listeners as its properties describe them: their protocols, and where nobody authenticates."""

from __future__ import annotations

import re
from typing import Final

from quotahost.cli.broker_file import BrokerFile

# An option of a JAAS configuration, quoted (with backslash escapes) or bare, as Java's BrokerPrincipal reads it.
_OPTION: Final = re.compile(r'"?([\w.]+)"?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def unauthenticated(broker: BrokerFile) -> list[str]:
    """Names of the client listeners on which every principal is ``ANONYMOUS``.

    Controller listeners are left out, since clients don't connect to them.
    """
    controllers = broker.listed("controller.listener.names")
    listeners = [each.partition(":")[0].strip() for each in broker.listed("listeners", "PLAINTEXT://:9092")]
    return [name for name in listeners if name not in controllers and is_open(broker, name)]


def inter_broker_listener(broker: BrokerFile) -> str:
    """The name of the listener by which brokers reach each other."""
    return broker.get("inter.broker.listener.name") or broker.get("security.inter.broker.protocol") or "PLAINTEXT"


def protocol(broker: BrokerFile, listener: str) -> str:
    """A listener's security protocol; by Kafka's default map a listener bears the name of its protocol."""
    entries = [entry.partition(":") for entry in broker.listed("listener.security.protocol.map")]
    protocols = {name.strip(): protocol.strip() for name, _, protocol in entries}
    return protocols.get(listener, listener).upper()


def is_open(broker: BrokerFile, listener: str) -> bool:
    """Whether nobody authenticates: PLAINTEXT, and SSL without ``ssl.client.auth=required`` (all or listener)."""
    if (kind := protocol(broker, listener)) != "SSL":
        return kind == "PLAINTEXT"
    general = broker.get("ssl.client.auth", "none")
    # With `requested`, Kafka lets a client without a certificate in as ANONYMOUS. In the names of properties Kafka
    # writes a listener's name in lower case.
    return broker.get(f"listener.name.{listener.lower()}.ssl.client.auth", general).lower() != "required"


def login_name(jaas: str, mechanism: str) -> str | None:
    """The user in a ``sasl.jaas.config`` with which a client logs in; None if it can't be found there."""
    options = {name: bare or re.sub(r"\\(.)", r"\1", quoted) for name, quoted, bare in _OPTION.findall(jaas)}
    if mechanism == "GSSAPI":
        principal = options.get("principal")
        return re.split("[/@]", principal)[0] if principal else None
    return options.get("unsecuredLoginStringClaim_sub" if mechanism == "OAUTHBEARER" else "username")
