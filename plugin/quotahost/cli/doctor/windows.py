"""Checks over how many windows the broker measures PRODUCE, FETCH and REQUEST quotas: many make every quota a burst.

Kafka compares a quota with the mean over its windows, so a client that sends as fast as it can gets all windows' bytes
in the first, and then next to nothing until that window is forgotten. It does so with Kafka's own quotas, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, weak
from quotahost.throttling.quota_window import quota_windows

#: Seconds of all windows, up to which nobody notices the burst: 2 windows of 1 s.
_EVEN: Final = 2


def check_windows(broker: BrokerFile) -> Iterator[Finding]:
    """The burst and the silence that these windows make, if they are long."""
    if broker.get("process.roles") == "controller":
        return
    try:
        windows = quota_windows(broker.properties)
    except ValueError:
        return  # Kafka itself refuses it
    seconds = windows.number * windows.size
    if seconds <= _EVEN:
        return
    text = (
        f"quotas are measured over {windows.number} windows of {windows.size} s: a client that sends as fast as it can "
        f"gets {seconds} s of its quota at once, and then next to nothing for {seconds - windows.size} s"
    )
    size = "" if windows.size == 1 else " and quota.window.size.seconds=1"
    yield weak(f"{text}; its mean over longer times is right", f"quota.window.num=2{size}")
