"""The second factor source from its building to its close, both on a thread of their own."""

from __future__ import annotations

import threading
from typing import Final

from quotahost.api import Built, Context
from quotahost.broker import Broker

_CLOSE_WITHIN: Final = 2.0  # seconds


class SecondLife:
    """Builds the source at once, without holding whoever asks for it.

    Attributes:
        name: its entry point name.
        own: its ``plugin.NAME.*``, by which it was built.
        built: the source, once it is there.
        error: why it can't be built.
        ready: whether it has answered without waiting.
    """

    def __init__(self, context: Context, name: str, broker: Broker) -> None:
        """``context`` is the first source's."""
        self._context, self.name, self._broker = context, name, broker
        self.own = context.host.plugin.get(name, {})
        self.built: Built | None = None
        self.error: BaseException | None = None
        self.ready = False
        self._stop = threading.Event()
        self._thread = context.start_thread(f"{context.name}-second", self._run)

    def end(self) -> None:
        """Let it close itself."""
        self._stop.set()

    @property
    def running(self) -> bool:
        """Whether its thread has not ended yet."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait two seconds at most until it has; one that hangs is left behind."""
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        try:
            self.built = self._context.factor_source(self.name, self._broker)
        except BaseException as error:  # sys.exit in a plugin is its failure
            self.error = error
            return
        self._stop.wait()
        if callable(close := getattr(self.built.plugin, "close", None)):
            close()
