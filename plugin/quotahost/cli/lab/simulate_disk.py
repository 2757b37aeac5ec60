"""``quotahost simulate disk``: a disk that fills, or with ``--budget`` a budget of storage.

The options become a scene of one broker, which ``world`` plays; clients and the disk are models.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, TypeAlias, cast

import typer

from quotahost.cli.asking import check_plot, parsed, windows_of
from quotahost.cli.console import console, say, table, writing
from quotahost.cli.lab.host import settings_of
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan, Kind, Scene, ms
from quotahost.cli.lab.world import Recording, World, pauses, record, volume_of
from quotahost.cli.property_files import BrokerFile, read_broker_file
from quotahost.errors import QuotahostError
from quotahost.model import State
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.units.parse import parse_duration, parse_quantity, parse_size
from quotahost.units.show import show_bytes

_LONGEST: Final = timedelta(hours=2)
_FASTEST: Final = 10  # times its quota: what an eager client would send if nobody held it back
_DEMAND: Final = re.compile(r"(?:(\d+)x)?(eager|(paced|bursty):([^/]+))")
_MOST: Final = 200  # clients in one demand
_WORK: Final = 3_000_000  # requests: more take minutes
_NO_FILE: Final = BrokerFile(Path(), {}, ())

Demand: TypeAlias = tuple[Kind, float | None]  # bytes/s; an eager client has none, and wants all it can get


def disk(
    limits: Annotated[str | None, typer.Option(metavar="soft=..,hard=..", help="70G consumed, or 20% free.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="BYTES", help="In a disk's place a budget of storage of all clients' topics.")
    ] = None,
    properties: Annotated[Path | None, typer.Option(metavar="FILE", help="A broker's properties.")] = None,
    policy: Annotated[str | None, typer.Option(help="limits, setpoint, or any that is installed.")] = None,
    demand: Annotated[
        list[str] | None, typer.Option(help="eager, paced:5M, bursty:5M or 3xeager; may be repeated. [eager]")
    ] = None,
    quota: Annotated[str, typer.Option(help="Each client's produce quota a second.")] = "10M",
    batch: Annotated[str, typer.Option(help="Bytes of one request.")] = "64K",
    capacity: Annotated[str, typer.Option(help="Of the volume.")] = "100G",
    used: Annotated[str | None, typer.Option(help="At the start; otherwise as full as the soft limit.")] = None,
    drain: Annotated[str, typer.Option(help="What retention deletes a second, in the mean.")] = "0",
    every: Annotated[str, typer.Option(help="From one deletion to the next.")] = "10s",
    windows: Annotated[str | None, typer.Option(help="quota.window.num; the file's, else Kafka's 11.")] = None,
    time: Annotated[str, typer.Option(help="How long, simulated.")] = "10m",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|svg", help="Draw it too; needs matplotlib.")] = None,
) -> None:
    """Show where a disk comes to rest with these limits, and what that is like for its clients.

    What is on the command line takes the place of what is in the file; without a file the broker has the fence. What
    the file has in shadow is played as if it were enforced. With --budget show how who writes to its topics
    is slowed as it fills, and when turned back.
    """
    check_plot("simulate disk", plot)
    if budget is not None and limits:
        raise typer.BadParameter("a budget has no other limits", param_hint="--budget")
    given = {**({"policy": policy} if policy else {}), **(parsed("--limits", limits, parse_limits) if limits else {})}
    file = _NO_FILE if properties is None else read_broker_file(properties)
    own, (count, window_ms) = properties_of(file, given, budget is not None), windows_of(file, windows)
    demands = chain.from_iterable(parsed("--demand", text, parse_demand) for text in demand or ["eager"])
    clients = _clients(demands, parsed("--quota", quota, parse_quantity), _size("--batch", batch))
    lasts = parsed("--time", time, _time)
    _check_work(clients, lasts)
    size = _size("--budget", budget) if budget else _size("--capacity", capacity)
    start = 0 if used is None else _size("--used", used)
    drained = 0.0 if drain == "0" else parsed("--drain", drain, parse_quantity)
    lump = ms(parsed("--every", every, parse_duration))
    volume = _filled(DiskPlan(size, start, drain=drained, lump=lump, is_budget=budget is not None), settings_of(own))
    has_fence = properties is None or file.has_fence
    played = record(World(Scene(0, ms(lasts), own, clients, (volume,), count, window_ms, has_fence)))
    _show(played, budget is not None)
    if plot is not None:
        from quotahost.cli.lab.drawing import draw_run

        with writing(plot):
            draw_run(played, f"policy {dict(own).get('policy', 'limits')}, {count} windows", plot)
        say(f"\n{plot}")


def parse_limits(text: str) -> dict[str, str]:
    """``soft=20%,hard=50G``: properties by name. A share must stay free, an amount may be consumed.

    Raises ValueError if it is nothing like that.
    """
    names: dict[str, str] = {}
    for part in text.split(","):
        side, _, level = (word.strip() for word in part.partition("="))
        if side not in ("soft", "hard") or not level or any(f".{side}" in name for name in names):
            raise ValueError("are no limits; write them as soft=70G,hard=90G or soft=20%,hard=5%")
        names[f"static.storage.{side}{'.min-free-percent' if level.endswith('%') else ''}"] = level
    return names


def parse_demand(text: str) -> list[Demand]:
    """``eager``, ``paced:5M``, ``bursty:5M``, and ``3xeager`` for three of them. Raises ValueError if it is no such."""
    match = _DEMAND.fullmatch(text)
    count = int(match[1] or 1) if match else 0
    if match is None or not 0 < count <= _MOST:
        raise ValueError(f"is no demand; write eager, paced:5M or bursty:5M, or 3xeager (up to {_MOST})")
    return [(cast("Kind", match[3] or match[2]), parse_quantity(match[4]) if match[3] else None)] * count


def properties_of(file: BrokerFile, given: dict[str, str], is_budget: bool) -> tuple[tuple[str, str], ...]:
    """A broker's properties under our prefix, without it, with ``given`` in their place, for a scene of one broker.

    Of the policy and the factor sources that the scene replaces, the properties of their own go, too.
    """
    own = {name.removeprefix(PREFIX): text for name, text in file.properties.items() if name.startswith(PREFIX)}
    replaced = {*map(str.strip, own.get("factor.source", "").split(",")), own.get("policy", "").strip()}
    policy = given.get("policy", own.get("policy", "")).strip()
    without = tuple(f"plugin.{name}." for name in replaced - {"", policy})
    # Limits are of several forms that exclude each other: those on the command line take the place of all.
    if any(name.startswith("static.storage.") for name in given):
        without += ("static.storage.",)
    # A broker has budgets with the source snapshots alone; what other brokers publish is not played.
    source, budgets = ("snapshots", "on") if is_budget else ("local", "off")
    played = {"factor.source": source, "budgets": budgets, "shadow": ""}
    kept = {name: text for name, text in own.items() if not name.startswith(without)}
    return tuple(sorted((kept | given | played).items()))


def _filled(plan: DiskPlan, settings: Settings) -> DiskPlan:
    """The same disk, if nobody says how full it is as full as its soft limit.

    Raises QuotahostError if there are no limits to try.
    """
    _, levels = volume_of(plan, settings, "1")
    if levels is None:
        raise QuotahostError("there are no limits to try; give --limits soft=..,hard=.., or --properties with some")
    if levels.hard >= plan.capacity and not plan.is_budget:
        raise QuotahostError("there is no hard limit below --capacity, so nothing would stop before the disk is full")
    return replace(plan, used=plan.used or levels.soft)


def _clients(demands: Iterable[Demand], quota: float, batch: int) -> tuple[ClientPlan, ...]:
    return tuple(
        ClientPlan(f"{number} {kind}", kind, quota, batch, rate or _FASTEST * quota)
        for number, (kind, rate) in enumerate(demands, 1)
    )


def _check_work(clients: Sequence[ClientPlan], lasts: timedelta) -> None:
    requests = sum(min(plan.demand, plan.quota) / plan.batch for plan in clients) * lasts.total_seconds()
    if requests > _WORK:
        what = f"some {requests:,.0f} requests would take too long to play, {_WORK:,} is the most"
        raise QuotahostError(f"{what}; take a larger --batch, a shorter --time, or fewer clients")


def _size(option: str, text: str) -> int:
    size = parsed(option, text, parse_size)
    if size is None:
        raise typer.BadParameter("must be a size, such as 10G", param_hint=option)
    return size


def _time(text: str) -> timedelta:
    time = parse_duration(text)
    if not timedelta(seconds=10) <= time <= _LONGEST:
        raise ValueError("is too short or too long; write 10s to 2h")
    return time


def _show(played: Recording, is_budget: bool) -> None:
    # Only an eager client is silent because it is held: the others may have nothing to send.
    silences = [(played.silence(i), name) for i, name in enumerate(played.clients) if name.endswith("eager")]
    longest, who = max(silences, default=(0, ""))
    bounds = played.bounds
    place = f"{played.rest:.2f} of the way from soft to hard (mean of the last quarter)"
    rows = [["limits", f"{show_bytes(bounds.soft)} soft, {show_bytes(bounds.hard)} hard"]]
    if is_budget:
        rows.append(["slowed after", _after(played.first(State.THROTTLE, State.PAUSE))])
        rows.append(["turned back after", _after(played.first(State.PAUSE))])
    rows += [
        ["at rest after", _after(played.rest_ms)],
        ["place", place if bounds.soft < bounds.hard else "there is no way from soft to hard"],
        ["PAUSEs", str(pauses(sample.factor for sample in played.samples))],
        ["longest silence", f"{longest / 1000:,.1f} s outside a PAUSE, client {who}" if who else "no client is eager"],
        ["beyond hard", show_bytes(played.beyond)],
    ]
    console().print(table(["", "outcome"], rows))


def _after(ms: int | None) -> str:
    return "not within this time" if ms is None else f"{ms / 1000:,.1f} s"
