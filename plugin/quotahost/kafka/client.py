"""How a plugin's own Kafka client connects, and the metric that shows whether it is connected.

The broker says where to connect and with which credentials (``Broker.client_config``); this module adds what every
client of quotahost needs. ``follower`` and ``publisher`` build their librdkafka clients with it.
"""

from __future__ import annotations

from typing import Any, Final

from quotahost.api import Context
from quotahost.background import LoggedOnce

_OURS: Final = {
    "log_level": 0,  # librdkafka would write to the broker's stderr at each try while the broker starts
    # A broker that is back is found within about a second; by librdkafka's defaults within up to 10 s.
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,  # the broker would create our topics without compaction
}


def client_config(context: Context[object], **more: Any) -> dict[str, Any]:
    """The configuration of a librdkafka client. It contains secrets, so it must not be logged.

    Args:
        context: the plugin's; its broker names the servers and the credentials.
        more: further options of librdkafka, with ``_`` for ``.`` in their names.
    """
    options = {name.replace("_", "."): value for name, value in more.items()}
    # The operator's kafka.* override ours, but not the options without which a caller can't work.
    return {**_OURS, **context.broker.client_config(), **options}


class Connection:
    """Shows as a metric whether a plugin's client reaches the cluster, and logs when that changes.

    Before the first success nothing is logged: the broker's own listener may not be open yet.
    """

    def __init__(self, context: Context[object], name: str = "") -> None:
        """Not connected yet. ``name`` tells the clients of a plugin apart that has several; else it is the plugin's."""
        self._context, self._name = context, name or context.name
        self._fault = LoggedOnce(context.log)
        self._connected: bool | None = None  # None until the first success
        self._show()

    @property
    def ever(self) -> bool:
        """Whether the client has reached the cluster at least once."""
        return self._connected is not None

    def works(self) -> None:
        """The client has just read or written something."""
        if self._fault.healed():
            self._context.log.warning("connected again")
        if not self._connected:
            self._connected = True
            self._show()

    def fails(self, error: object) -> None:
        """The client can read or write nothing; ``error`` goes to the log and must contain no secret."""
        if self._connected is None:
            return
        # Each time, since a connection that comes and goes is logged once a minute only.
        self._fault.report("not connected: %s", error)
        if self._connected:
            self._connected = False
            self._show()

    def _show(self) -> None:
        self._context.metrics.gauge("Connection", self._name, "Connected", float(bool(self._connected)))
