"""Makes a look (``quotahost.model.look``) of the lines that the Java half answers with.

``quotahost top`` reads these lines from another process, and the host in its own (``Shim.explain``, ``Shim.uses``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from quotahost.host.messages import Gauge, plain
from quotahost.model import Client, State, VolumeUse
from quotahost.model.client_use import ClientUse
from quotahost.model.look import Look


def parse(lines: Iterable[str]) -> Look:
    """A broker's answer to the question ``watch`` of ``org.quotahost.explain.Explain``.

    Raises:
        ValueError: these are not the lines of this version.
    """
    rows = [[plain(field) for field in line.split("\t")] for line in lines]
    return look_of(rows, [ClientUse.of(row[1:]) for row in rows if row[0] == "uses"])


def look_of(
    rows: Iterable[Sequence[str]],
    uses: Sequence[ClientUse],
    volumes: Sequence[VolumeUse] = (),
    marks: Sequence[tuple[Client, str]] = (),
) -> Look:
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
            volumes=volumes,
            marks=marks,
        )
    except KeyError as missing:
        raise ValueError(f"{missing} is missing") from None


def volumes_of(gauges: Iterable[Gauge]) -> list[VolumeUse]:
    """The volumes that the host shows numbers of (``quotahost.disks.monitor``, ``quotahost.host.volume_limits``)."""
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    for each in gauges:
        if each.type in ("Volume", "VolumeLimits"):
            numbers[each.name][each.attribute] = each.value
    return [
        VolumeUse(name, found["Capacity"], found["Consumed"], *map(found.get, ("Soft", "Hard", "Factor")))
        for name, found in sorted(numbers.items())
        if {"Capacity", "Consumed"} <= found.keys()  # the two types don't come and go at one moment
    ]


def _fence(state: Mapping[str, str]) -> str:
    if state["fence-installed"] != "true":
        return "none"
    return "closed" if state["fence-closed"] == "true" else "open"
