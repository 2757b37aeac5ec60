"""The options of ``quotahost simulate disk``, made into the scene that is played."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

from quotahost.cli.property_files import read_broker_file
from quotahost.errors import QuotahostError
from quotahost.model import Volume
from quotahost.model.bounds import bounds
from quotahost.settings.declaration import PREFIX
from quotahost.simulation.scene import ClientPlan, DiskPlan, Kind, Scene
from quotahost.simulation.world import settings_of
from quotahost.units.parse import parse_count, parse_quantity, parse_share, parse_size

_FASTEST: Final = 10  # times its quota: what an eager client would send if nobody held it back
_DEMAND: Final = re.compile(r"(?:(\d+)x)?(eager|(paced|bursty):([^/]+))")
_MOST: Final = 200  # clients in one demand
_WORK: Final = 3_000_000  # requests: more take minutes


@dataclass(frozen=True, slots=True)
class Demand:
    """``count`` clients that want ``rate`` bytes/s each; an eager one has none, and wants all it can get."""

    kind: Kind
    rate: float | None
    count: int = 1


def parse_limits(text: str) -> dict[str, str]:
    """``soft=20%,hard=50G``: properties by name. A share must stay free, an amount may be consumed.

    Raises:
        ValueError: it is nothing like that.
    """
    found = {}
    for part in text.split(","):
        side, _, level = (each.strip() for each in part.partition("="))
        if side not in ("soft", "hard") or not level or side in found:
            raise ValueError("are no limits; write soft=AMOUNT,hard=AMOUNT, such as soft=70G,hard=90G or soft=20%")
        found[side] = level
    names = {}
    for side, level in found.items():
        if level.endswith("%"):
            parse_share(level)
            names[f"static.storage.{side}.min-free-percent"] = level
        else:
            parse_size(level)
            names[f"static.storage.{side}"] = level
    return names


def parse_demand(text: str) -> Demand:
    """``eager``, ``paced:5M``, ``bursty:5M``, and ``3xeager`` for three of them.

    Raises:
        ValueError: it is none of these.
    """
    match = _DEMAND.fullmatch(text)
    count = int(match[1] or 1) if match else 0
    if match is None or not 0 < count <= _MOST:
        raise ValueError(f"is no demand; write eager, paced:5M or bursty:5M, or 3xeager (up to {_MOST})")
    return Demand(cast("Kind", match[3] or match[2]), parse_quantity(match[4]) if match[3] else None, count)


def parse_windows(text: str) -> int:
    """``quota.window.num``.

    Raises:
        ValueError: no number from 1 to 100.
    """
    windows = parse_count(text)
    if windows > 100:
        raise ValueError("windows are too many; take 100 at most")
    return windows


def properties_of(file: Path | None, own: dict[str, str]) -> tuple[dict[str, str], str | None]:
    """A broker's properties under our prefix, without it, with ``own`` in their place; and its quota.window.num.

    Raises:
        QuotahostError: the file can't be read.
    """
    if file is None:
        return own, None
    broker = read_broker_file(file)
    limits = any(name.startswith("static.storage.") for name in own)
    found = {
        name.removeprefix(PREFIX): text
        for name, text in broker.properties.items()
        # Limits are of several forms that exclude each other: those on the command line take the place of all.
        if name.startswith(PREFIX) and not (limits and name.startswith(f"{PREFIX}static.storage."))
    }
    return {**found, **own}, broker.get("quota.window.num") or None


@dataclass(frozen=True, slots=True)
class Plan:
    """What the options say. Sizes in bytes, rates in bytes/s; ``used`` None is at the soft limit."""

    properties: dict[str, str]
    demands: Sequence[Demand]
    quota: float
    batch: int
    capacity: int
    used: int | None
    drain: float
    every: timedelta
    windows: int
    lasts: timedelta
    fence: bool


def scene_of(plan: Plan) -> Scene:
    """The scene of a plan, with one broker.

    Raises:
        QuotahostError: a property is wrong, or there are no limits to try.
    """
    properties = tuple(sorted({**plan.properties, "factor.source": "local"}.items()))
    own = settings_of(properties)
    found = bounds(Volume("1", "/data", plan.capacity, 0), own.storage_soft, own.storage_hard)
    if found is None:
        raise QuotahostError("there are no limits to try; give --limits soft=..,hard=.., or --properties with some")
    if found.hard >= plan.capacity:
        raise QuotahostError("there is no hard limit below --capacity, so nothing would stop before the disk is full")
    used = min(found.soft, found.hard) if plan.used is None else plan.used
    disk = DiskPlan(plan.capacity, used, drain=plan.drain, lump=max(1, round(plan.every.total_seconds() * 1000)))
    _check_work(plan)
    ms = round(plan.lasts.total_seconds() * 1000)
    return Scene(0, ms, properties, _clients(plan), (disk,), plan.windows, fence=plan.fence)


def _check_work(plan: Plan) -> None:
    rates = sum(each.count * min(each.rate or plan.quota, plan.quota) for each in plan.demands)
    requests = rates / plan.batch * plan.lasts.total_seconds()
    if requests > _WORK:
        what = f"some {requests:,.0f} requests would take too long to play, {_WORK:,} is the most"
        raise QuotahostError(f"{what}; take a larger --batch, a shorter --time, or fewer clients")


def _clients(plan: Plan) -> tuple[ClientPlan, ...]:
    each = [demand for demand in plan.demands for _ in range(demand.count)]
    return tuple(
        ClientPlan(f"{i} {demand.kind}", demand.kind, plan.quota, plan.batch, demand.rate or _FASTEST * plan.quota)
        for i, demand in enumerate(each, 1)
    )
