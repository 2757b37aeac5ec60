"""The principals that the brokers of this cluster have at each other's listeners, to exempt them from quotas.

They are derived from this broker's own configuration, since the brokers of a cluster share their credentials. Where one
can't be found out, the log names the property in which to list it.

If ANONYMOUS is among them, ``exemptions`` goes by client-ids, which anybody can claim. So it is only where brokers
don't authenticate to each other, or where nobody but nodes can be ANONYMOUS: at the listeners of controllers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from quotahost.kafka.librdkafka import Keystores
from quotahost.kafka.listeners import Listeners
from quotahost.settings.declaration import PREFIX

log = logging.getLogger("quotahost.principals")

ANONYMOUS: Final = "ANONYMOUS"


def broker_principals(properties: Mapping[str, str], keystores: Keystores) -> list[str]:
    """The names of the principals, without the type ("User:"), each once.

    Args:
        properties: the broker's own.
        keystores: reads a keystore; it waits for a file.
    """
    listeners = Listeners(properties)
    names: dict[str, None] = {}
    # Those that brokers connect to.
    for each in [*([] if listeners.controller_alone else [listeners.inter_broker]), *listeners.controllers]:
        try:
            name, why = _name(listeners, each, keystores), ""
        except Exception as error:
            # Not the message, which may contain a secret: its first word is the class of Java's exception.
            name, why = None, f": {str(error).partition(':')[0]}" if isinstance(error, ConnectionError) else ""
        if name is None:
            log.warning(
                "The principal of brokers at listener %s can't be found in the configuration%s. If they authenticate, "
                "name it in %sstatic.excluded.principal.name.list, or brokers may be throttled", each, why, PREFIX
            )  # fmt: skip
        elif name != ANONYMOUS or _decides(listeners, each):
            names[name] = None
    return list(names)


def _name(listeners: Listeners, listener: str, keystores: Keystores) -> str | None:
    protocol = listeners.protocol(listener)
    if protocol.startswith("SASL_"):
        return listeners.login_name(listener)
    if protocol != "SSL" or listeners.asks_for_certificates(listener) not in ("required", "requested"):
        return ANONYMOUS
    ssl = listeners.own(listener, "ssl.")
    # A truststore that can't be read is of no concern here.
    found = keystores({name: value for name, value in ssl.items() if not name.startswith("ssl.truststore.")})
    return found.get("principal")


def _decides(listeners: Listeners, listener: str) -> bool:
    """Whether a listener that lets everybody in as ANONYMOUS shows that nodes are: clients must not use others."""
    if listeners.controller_alone or listener == listeners.inter_broker:
        return True
    return not listeners.unauthenticated()
