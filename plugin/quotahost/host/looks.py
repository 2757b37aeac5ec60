"""Makes a look (``quotahost.model.look``) of the lines that the Java half answers with.

``quotahost top`` reads these lines from another process, and the host in its own (``Shim.explain``, ``Shim.uses``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quotahost.host.messages import plain
from quotahost.model import State
from quotahost.model.client_use import ClientUse
from quotahost.model.look import Look


def parse(lines: Iterable[str]) -> Look:
    """A broker's answer to the question ``watch`` of ``org.quotahost.explain.Explain``.

    Raises:
        ValueError: these are not the lines of this version.
    """
    rows = [[plain(field) for field in line.split("\t")] for line in lines]
    return look_of(rows, [ClientUse.of(row[1:]) for row in rows if row[0] == "uses"])


def look_of(rows: Iterable[Sequence[str]], uses: Sequence[ClientUse]) -> Look:
    """Of the fields of its lines for broker and state, no longer escaped, and what was asked besides.

    Raises:
        ValueError: a line or a fact is missing.
    """
    rows = list(rows)
    ((pid, node),) = (row[1:] for row in rows if row[0] == "broker")
    state = {row[1]: row[2] for row in rows if row[0] == "state"}
    try:
        return Look(
            f"broker {node or 'of unknown id'} (pid {pid})",
            State(state["state"]),
            float(state["factor"]),
            float(state["limit-factor"]),
            state["cause"],
            _fence(state),
            int(state["affected-topics"]),
            int(state["clients"]),
            int(state["clients-max"]),
            uses,
            left_out=False,
        )
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None


def _fence(state: Mapping[str, str]) -> str:
    if state["fence-installed"] != "true":
        return "none"
    return "closed" if state["fence-closed"] == "true" else "open"
