"""Whether brokers enforce Kafka's client quotas, or something else decides there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quotahost.declared.configs import change, describe
from quotahost.declared.connection import Connection
from quotahost.settings.declaration import PREFIX
from quotahost.settings.telling import TOLD

_CLASS: Final = f"{PREFIX}class"
_SUPPLIER: Final = f"{PREFIX}supplier"
_OURS: Final = "org.quotahost."
_ASK: Final = f"{PREFIX}plugin.client-quotas.tell"


def warnings(connection: Connection) -> list[str]:
    """Each broker on which Kafka's client quotas may not hold, as far as it can be seen.

    Raises:
        DeclarationError: there is no answer.
    """
    return [words for broker in connection.brokers() for words in _of(connection, broker)]


def _of(connection: Connection, broker: int) -> Iterator[str]:
    configs = describe(connection, broker)
    callback = configs.get(_CLASS)
    if callback and not callback.startswith(_OURS):
        yield f"broker {broker}: {callback} decides about quotas; Kafka's client quotas hold as far as it follows them"
    elif callback and _SUPPLIER in configs:
        answer = change(connection, {_ASK: "true"}, broker, validate_only=True)
        if not answer.error_code:
            yield f"broker {broker}: Kafka's client quotas are not enforced; add client-quotas to {_SUPPLIER}"
        elif TOLD not in (answer.error_message or ""):
            hidden = f"{_SUPPLIER}, which Kafka hides,"
            yield f"broker {broker}: Kafka's client quotas are enforced only if {hidden} has client-quotas"
