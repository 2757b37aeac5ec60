"""How the plugins' own client connects, and what it says of its connection."""

from __future__ import annotations

import logging
from typing import Any, Final

from quotahost.api import Context

log = logging.getLogger("quotahost.kafka")

_OURS: Final = {
    "log_level": 0,  # librdkafka would write to the broker's stderr, for each try while the broker starts
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,  # the broker would make ours without compaction
}


def client_config(context: Context[object], **more: Any) -> dict[str, Any]:
    """Librdkafka's configuration; ``more`` are further ones, with ``_`` for ``.``. Holds secrets."""
    own: dict[str, Any] = dict(context.broker.client_config())
    return {**_OURS, **own, **{name.replace("_", "."): value for name, value in more.items()}}


class Connection:
    """Whether this plugin's client reaches the cluster: a metric, and a log line when it changes.

    The first connect isn't told as a failure while the broker is still starting.
    """

    def __init__(self, context: Context[object]) -> None:
        """Nothing is connected yet."""
        self._context = context
        self._connected: bool | None = None
        context.metrics.gauge("Connection", context.name, "Connected", 0)

    @property
    def ever(self) -> bool:
        """Whether anything was ever read or written."""
        return self._connected is not None

    def works(self) -> None:
        """Something was read or written."""
        if self._connected is not True:
            if self._connected is False:
                self._context.log.warning("connected again")
            self._connected = True
            self._context.metrics.gauge("Connection", self._context.name, "Connected", 1)

    def fails(self, why: object) -> None:
        """Nothing can be read or written; ``why`` holds no secret."""
        if self._connected:
            self._context.log.warning("not connected: %s", why)
            self._context.metrics.gauge("Connection", self._context.name, "Connected", 0)
        if self._connected is not None:
            self._connected = False
