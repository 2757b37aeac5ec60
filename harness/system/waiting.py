"""Waits for a condition instead of sleeping for a fixed time.

Tests on real brokers wait for the expected result, however long a busy machine takes. Only a failure takes the whole
timeout.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from harness.java.helper import HelperError

T = TypeVar("T")
_RAREST: Final = 0.25  # seconds between two calls of a slow condition, which costs a broker and a helper JVM some ms


def eventually(
    condition: Callable[[], T | None],
    timeout: float = 120,
    what: str = "",
    *,
    poll: float | None = None,
    on_timeout: Callable[[], str] = lambda: "",
) -> T:
    """Calls condition until it returns something true, and returns that.

    Args:
        condition: called repeatedly. An AssertionError, a missing thing (LookupError), or an error of a broker or of
            the helper means "not yet".
        timeout: seconds. It may be generous, because only a failure takes so long.
        what: describes the condition in the error.
        poll: seconds between two calls; if None, 0.05 at first and later a twentieth of the time that has passed.
        on_timeout: returns more text for the error.

    Raises:
        TimeoutError: the condition did not come true; the message has ``what`` and the last result or error.
    """
    begin = time.monotonic()
    while True:
        last: object
        try:
            result = condition()
            if result:
                return result
            last = repr(result)
        except (AssertionError, LookupError, KafkaException, HelperError) as not_yet:
            last = not_yet
        passed = time.monotonic() - begin
        if passed >= timeout:
            raise TimeoutError(f"not within {timeout} s: {what or condition}; last: {last}\n{on_timeout()}")
        time.sleep(min(max(0.05, passed / 20), _RAREST) if poll is None else poll)
