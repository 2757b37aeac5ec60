"""``quotahost simulate disk``: a disk that fills, with the limits that an operator wants to try.

The real policy decides, the real tap moves the limits, and Kafka's own arithmetic mutes the clients
(``quotahost.simulation``); clients and the disk are models. So it shows what limits do before a broker has them.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.console import console, parsed, table, writing
from quotahost.cli.simulate.options import Plan, parse_demand, parse_limits, parse_windows, properties_of, scene_of
from quotahost.cli.simulate.picture import check_drawing, draw, show_size
from quotahost.cli.simulate.recording import Recording, record
from quotahost.errors import QuotahostError
from quotahost.simulation.run import violations
from quotahost.simulation.scenes import scene as scene_of_seed
from quotahost.units.parse import parse_duration, parse_quantity, parse_size

_LONGEST: Final = timedelta(hours=2)


def disk(
    limits: Annotated[str | None, typer.Option(metavar="soft=..,hard=..", help="70G consumed, or 20% free.")] = None,
    properties: Annotated[Path | None, typer.Option(metavar="FILE", help="A broker's properties.")] = None,
    policy: Annotated[str | None, typer.Option(help="limits, setpoint, or any that is installed.")] = None,
    demand: Annotated[
        list[str] | None, typer.Option(help="eager, paced:5M, bursty:5M or 3xeager; may be repeated. [eager]")
    ] = None,
    quota: Annotated[str, typer.Option(help="Each client's produce quota a second.")] = "10M",
    batch: Annotated[str, typer.Option(help="Bytes of one request.")] = "64K",
    capacity: Annotated[str, typer.Option(help="Of the volume.")] = "100G",
    used: Annotated[str | None, typer.Option(help="At the start; otherwise as full as the soft limit.")] = None,
    drain: Annotated[str | None, typer.Option(help="What retention deletes a second, in the mean.")] = None,
    every: Annotated[str, typer.Option(help="From one deletion to the next.")] = "10s",
    windows: Annotated[str | None, typer.Option(help="quota.window.num; the file's, else Kafka's 11.")] = None,
    time: Annotated[str, typer.Option(help="How long, simulated.")] = "10m",
    fence: Annotated[bool, typer.Option(help="Whether brokers have the fence.")] = True,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|svg", help="Draw it too; needs matplotlib.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Play the tests' scene of this number instead.")] = None,
) -> None:
    """Show where a disk comes to rest with these limits, and what that is like for its clients.

    What is on the command line takes the place of what is in the file. With --seed nothing else counts but --plot.
    """
    if plot is not None:
        check_drawing(plot)
    if seed is not None:
        _play(seed, plot)
        return
    own = {**({"policy": policy} if policy else {}), **(parsed("--limits", limits, parse_limits) if limits else {})}
    merged, in_file = properties_of(properties, own)
    plan = Plan(
        merged,
        [parsed("--demand", each, parse_demand) for each in demand or ["eager"]],
        parsed("--quota", quota, parse_quantity),
        _size("--batch", batch),
        _size("--capacity", capacity),
        None if used is None else _size("--used", used),
        0.0 if drain is None else parsed("--drain", drain, parse_quantity),
        parsed("--every", every, parse_duration),
        parsed("--windows", windows or in_file or "11", parse_windows),
        parsed("--time", time, _time),
        fence,
    )
    played = record(scene_of(plan))
    _show(played)
    if plot is not None:
        _draw(played, f"policy {merged.get('policy', 'limits')}, {plan.windows} windows", plot)


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


def _show(played: Recording) -> None:
    # Only an eager client is silent because it is held: the others may have nothing to send.
    silences = [(played.silence(i), name) for i, name in enumerate(played.clients) if name.endswith("eager")]
    longest, who = max(silences, default=(0, ""))
    silence = f"{longest / 1000:,.1f} s outside a PAUSE, client {who}" if who else "no client is eager"
    place = f"{played.rest:.2f} of the way from soft to hard (mean of the last quarter)"
    rows = [
        ["limits", f"{show_size(played.bounds.soft)} soft, {show_size(played.bounds.hard)} hard"],
        ["at rest after", "not within this time" if played.rest_ms is None else f"{played.rest_ms / 1000:,.1f} s"],
        ["place", place if played.bounds.soft < played.bounds.hard else "there is no way from soft to hard"],
        ["PAUSEs", str(played.pauses)],
        ["longest silence", silence],
        ["beyond hard", show_size(played.beyond)],
    ]
    console().print(table(["", "outcome"], rows))


def _draw(played: Recording, title: str, file: Path) -> None:
    with writing(file):
        draw(played, title, file)
    typer.echo(f"\n{file}")


def _play(seed: int, plot: Path | None) -> None:
    """The scene of a seed with its checks; exits with 1 if one of them found something."""
    # Without samples, so that it is to the ms what the tests have played.
    found = violations(seed)
    for violation in found:
        typer.echo(str(violation))
    if plot is not None:
        _draw(record(scene_of_seed(seed)), f"seed {seed}, broker 1", plot)
    if found:
        raise QuotahostError(f"seed {seed}: {len(found)} of the checks found something")
    typer.echo(f"seed {seed}: all checks hold")
