"""Polls the registered brokers of the cluster, as DescribeCluster lists them (KIP-1073 adds the fenced brokers).

While the broker starts, its own listener isn't open yet. So the poll retries a failure soon, and logs it only after
``startup.grace``.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from quotahost.api import Context
from quotahost.base.background import LoggedOnce, Periodic

_FIRST_RETRY: Final = 0.5  # seconds between tries until the first answer


class ClusterPoll:
    """Calls ``ask`` at once and then periodically."""

    def __init__(
        self, context: Context[object], name: str, ask: Callable[[], None], period: Callable[[], float], failure: str
    ) -> None:
        """Start the thread ``quotahost-NAME``; ``period`` is in seconds.

        ``ask`` asks the cluster and keeps the answer; it may block, and raises if there is no answer. ``failure`` is
        the log line for such a fault, with one ``%s`` for the exception; the fault is logged once until it heals.
        """
        self._context, self._ask, self._failure = context, ask, failure
        self._started = time.monotonic()
        self._fault = LoggedOnce(context.log)
        self.answered = False  # whether the cluster has answered at least once
        self._loop = Periodic(
            name, self._try, lambda: period() if self.answered else min(_FIRST_RETRY, period()), context.start_thread
        )
        context.closing.callback(self._loop.close)

    def wake(self) -> None:
        """Ask now, because the new period may be shorter than the current wait."""
        self._loop.wake()

    def _try(self) -> None:
        try:
            self._ask()
        # The exception may come from Java. If it ended the thread, the last answer would stay for good.
        except Exception as error:
            grace = self._context.settings.startup_grace.total_seconds()
            if self.answered or time.monotonic() - self._started >= grace:
                self._fault.report(self._failure, error)
        else:
            self.answered = True
            self._fault.healed("the cluster answers again")


_PERIOD: Final = 5.0  # seconds
_OF_VALIDITY: Final = 10  # a stopped broker must show as fenced long before its snapshot is stale


class RegisteredBrokers(ClusterPoll):
    """Calls ``register`` with the registered brokers whenever the cluster answers."""

    def __init__(self, context: Context[object], register: Callable[[Mapping[str, bool]], None]) -> None:

        def ask() -> None:
            register({str(broker): fenced for broker, fenced in context.broker.registered().items()})

        def period() -> float:
            return min(_PERIOD, context.settings.validity.total_seconds() / _OF_VALIDITY)

        failure = "can't list the registered brokers; the last list stays in use: %s"
        super().__init__(context, f"{context.name}-registered-brokers", ask, period, failure)
