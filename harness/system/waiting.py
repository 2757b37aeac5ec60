"""Waiting for a condition instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

from harness.java.helper import HelperError

T = TypeVar("T")


def eventually(
    condition: Callable[[], T | None],
    timeout: float = 60,
    what: str = "",
    *,
    poll: float = 0.05,
    on_timeout: Callable[[], str] = lambda: "",
) -> T:
    """Calls condition until it returns something true, and returns that.

    Args:
        condition: called again and again; not yet is also an AssertionError, and that a broker did not answer.
        timeout: seconds; generous, as only what fails waits so long, and a busy machine may stall.
        what: is waited for, in words for the error.
        poll: seconds between two calls.
        on_timeout: more words for the error.

    Raises:
        TimeoutError: it did not come true; the message says what, and the last result or error.
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
