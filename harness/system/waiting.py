"""Waits for a condition instead of sleeping for a fixed time.

Tests on real brokers wait for what they expect, however long a busy machine takes; only a failure takes the whole
timeout.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

from harness.java.helper import HelperError

T = TypeVar("T")


def eventually(
    condition: Callable[[], T | None],
    timeout: float = 120,
    what: str = "",
    *,
    poll: float = 0.05,
    on_timeout: Callable[[], str] = lambda: "",
) -> T:
    """Calls condition until it returns something true, and returns that.

    Args:
        condition: called again and again. An AssertionError, or an error of a broker or of the helper, means
            "not yet".
        timeout: seconds. It may be generous, because only a failure takes so long.
        what: describes the condition in the error.
        poll: seconds between two calls.
        on_timeout: returns more text for the error.

    Raises:
        TimeoutError: the condition did not come true; the message has ``what`` and the last result or error.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            result = condition()
            if result:
                return result
            last = repr(result)
        except (AssertionError, KafkaException, HelperError) as not_yet:
            last = not_yet
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {timeout} s: {what or condition}; last: {last}\n{on_timeout()}")
        time.sleep(poll)
