"""``quotahost simulate`` has two commands: ``disk`` (limits, clients, a budget) and ``quota`` (five forms of a quota).

1. ``simulate disk`` makes a scene of one broker from its options; ``world`` plays it with models of clients and a disk.
2. ``simulate quota`` runs the same requests through five models of ``quotahost.throttling``. Two are Kafka's, and the
   tests compare them with Kafka itself; three are from KIPs.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias, cast

import typer

from quotahost.base.errors import QuotahostError
from quotahost.cli.asking import check_plot, parsed, windows_of
from quotahost.cli.console import console, say, table, writing
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan, Kind, Scene, ms
from quotahost.cli.lab.world import STEP, Recording, World, pauses, record
from quotahost.cli.property_files import AUTHORIZER, FENCES, BrokerFile, read_broker_file
from quotahost.model import QuotaType, State
from quotahost.model.budgets import BUDGET
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.throttling import (
    RevisionDiffRate,
    SampledRate,
    TokenBucket,
    Version15Rate,
    samples_of_burst,
    simple_delay_s,
)
from quotahost.units.parse import parse_bytes, parse_count, parse_duration, parse_quantity
from quotahost.units.show import show_bytes, show_digits, show_number, show_seconds

# ---- a disk ----------------------------------------------------------------------------------------------------

_SHORTEST: Final = timedelta(seconds=10)  # a shorter run has no last quarter in which the disk could rest
_FASTEST: Final = 10  # times its quota: the rate of an eager client that nothing holds back
_DEMAND: Final = re.compile(r"(?:([1-9]\d{0,2})x)?(eager|(paced|bursty):([^/]+))")
_WORK: Final = 3_000_000  # requests and samples: more would take minutes
_NO_FILE: Final = BrokerFile(Path(), {AUTHORIZER: FENCES[0]}, ())

Demand: TypeAlias = tuple[Kind, float | None]  # bytes/s; None for an eager client, which sends as much as it may


def disk(
    limits: Annotated[str | None, typer.Option(metavar="soft=..,hard=..", help="70G consumed, or 20% free.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Instead of a disk: budget of storage of all clients' topics.")
    ] = None,
    properties: Annotated[Path | None, typer.Option(metavar="FILE", help="A broker's properties.")] = None,
    policy: Annotated[str | None, typer.Option(help="limits, setpoint, or another installed policy.")] = None,
    demand: Annotated[
        list[str] | None, typer.Option(help="eager, paced:5M, bursty:5M or 3xeager; may be repeated. [eager]")
    ] = None,
    quota: Annotated[str, typer.Option(help="Each client's produce quota per second.")] = "10M",
    batch: Annotated[str, typer.Option(help="Bytes of one request.")] = "64K",
    capacity: Annotated[str, typer.Option(help="Size of the volume.")] = "100G",
    used: Annotated[str | None, typer.Option(help="Bytes used at the start (default: the soft limit).")] = None,
    drain: Annotated[str, typer.Option(help="What retention deletes per second, on average.")] = "0",
    every: Annotated[str, typer.Option(help="Time from one deletion to the next.")] = "10s",
    windows: Annotated[str | None, typer.Option(help="quota.window.num (default: the file's, or 11).")] = None,
    time: Annotated[str, typer.Option(help="Simulated time.")] = "10m",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|svg", help="Draw it too; needs matplotlib.")] = None,
) -> None:
    """Show how full a disk stays with these limits, and what its clients feel.

    Options override the file. If there is no file, the broker has the fence.
    Rules in shadow are played as if they were enforced.
    """
    check_plot("simulate disk", plot)
    if budget is not None and limits:
        raise typer.BadParameter("can't be combined with --limits", param_hint="--budget")
    given = {**({"policy": policy} if policy else {}), **(parsed("--limits", limits, parse_limits) if limits else {})}
    file = _NO_FILE if properties is None else read_broker_file(properties)
    if budget is not None and not file.has_fence:
        raise QuotahostError(f"without the fence no budget slows anybody; set {AUTHORIZER}={FENCES[0]}")
    settings, (count, window_ms) = settings_of(file, given, budget is not None), windows_of(file, windows)
    demands = chain.from_iterable(parsed("--demand", text, parse_demand) for text in demand or ["eager"])
    rate, request = parsed("--quota", quota, parse_quantity), parsed("--batch", batch, parse_count)
    if (lasts := parsed("--time", time, parse_duration)) < _SHORTEST:
        raise typer.BadParameter("is too short; write 10s or more", param_hint="--time")
    clients = _clients(demands, rate, request, lasts)
    option, text = ("--capacity", capacity) if budget is None else ("--budget", budget)
    size = parsed(option, text, parse_bytes)
    start = None if used is None else parsed("--used", used, parse_bytes)
    if start is not None and start > size and budget is None:  # a lowered budget may already be exceeded
        raise typer.BadParameter("is more than --capacity", param_hint="--used")
    drained, lump = parsed("--drain", drain, parse_bytes), ms(parsed("--every", every, parse_duration))
    volume = DiskPlan(size, start, drained, lump, is_budget=budget is not None)
    world = World(Scene(0, ms(lasts), settings, clients, (volume,), count, window_ms, file.has_fence))
    _check_limits(world)
    played = record(world)
    if name := world.brokers[0].shim.failed:
        raise QuotahostError(f"policy {name!r} failed while it was played; check_policy of quotahost.testing says why")
    _show(played)
    if plot is not None:
        from quotahost.cli.lab.drawing import draw_run

        with writing(plot):
            draw_run(played, f"policy {settings.policy or 'limits'}, {count} windows", plot)
        say(f"\n{plot}")


def parse_limits(text: str) -> dict[str, str]:
    """Parse ``soft=20%,hard=50G``: a percentage must stay free, an amount may be consumed. Raises ValueError."""
    names: dict[str, str] = {}
    for part in text.split(","):
        side, _, level = (word.strip() for word in part.partition("="))
        if side not in ("soft", "hard") or not level or any(f".{side}" in name for name in names):
            raise ValueError("are not limits; write them as soft=70G,hard=90G or soft=20%,hard=5%")
        names[f"static.storage.{side}{'.min-free-percent' if level.endswith('%') else ''}"] = level
    return names


def parse_demand(text: str) -> list[Demand]:
    """Parse ``eager``, ``paced:5M``, ``bursty:5M``, or ``3xeager`` for three clients. Raises ValueError otherwise."""
    match = _DEMAND.fullmatch(text)
    if match is None:
        raise ValueError("is not a demand; write eager, paced:5M or bursty:5M, or 3xeager (up to 999)")
    one = cast("Kind", match[3] or match[2]), parse_quantity(match[4]) if match[3] else None
    return [one] * int(match[1] or 1)


def settings_of(file: BrokerFile, given: dict[str, str], is_budget: bool) -> Settings:
    """The settings of the scene's only broker: those of the file, replaced by ``given`` (names without our prefix)."""
    own = {name.removeprefix(PREFIX): text for name, text in file.properties.items() if name.startswith(PREFIX)}
    policy = (own | given).get("policy", "").strip() or "limits"
    # The policy is the only plugin that is played. Forms of limits exclude each other, so given limits replace all.
    limited = any(name.startswith("static.storage.") for name in given)
    without = ("plugin.", "static.storage.") if limited else ("plugin.",)
    played = {"factor.source": "local", "budgets": "off", "shadow": ""}
    if is_budget:  # a budget is only for its writers, and a broker measures topics twice a second at most
        played |= {"factor.scope": "topics", "volumes.period": "500ms"}
    of_policy = f"plugin.{policy}."
    kept = {name: text for name, text in own.items() if name.startswith(of_policy) or not name.startswith(without)}
    return Settings.from_properties({PREFIX + name: text for name, text in (kept | given | played).items()})


def _check_limits(world: World) -> None:
    if QuotaType.PRODUCE not in world.settings.factor_quota_types:
        raise QuotahostError("factor.quota.types has no PRODUCE, so nothing would slow a producer; add PRODUCE")
    disk = world.disks[0]
    if disk.volume.soft is None and disk.volume.hard is None:
        raise QuotahostError("there are no limits to try; give --limits soft=..,hard=.., or --properties with some")
    if disk.bounds.hard >= disk.volume.capacity and disk.volume.broker != BUDGET:
        raise QuotahostError("there is no hard limit below --capacity, so no producer stops before the disk is full")


def _clients(demands: Iterable[Demand], quota: float, batch: int, lasts: timedelta) -> tuple[ClientPlan, ...]:
    """Raises QuotahostError if this time is too long for so many clients."""
    clients = tuple(
        ClientPlan(f"{number} {kind}", kind, quota, batch, rate or _FASTEST * quota)
        for number, (kind, rate) in enumerate(demands, 1)
    )
    work = (sum(min(plan.demand, quota) / batch for plan in clients) + 1000 / STEP) * lasts.total_seconds()
    if work > _WORK:
        what = f"about {show_digits(work, 3)} requests and samples would take too long to play; {_WORK:,} is the most"
        raise QuotahostError(f"{what}; take a larger --batch, a shorter --time, or fewer clients")
    return clients


def _show(played: Recording) -> None:
    # Only an eager client is certainly silent because it is held back: other clients may have nothing to send.
    silences = [(played.silence(i), name) for i, name in enumerate(played.clients) if name.endswith("eager")]
    longest, who = max(silences, default=(0, ""))
    silence = f"{show_seconds(longest / 1000)} outside a PAUSE, client {who}"
    bounds = played.bounds
    place = f"{played.rest:.2f} of the way from soft to hard (mean of the last quarter)"
    rows = [
        ["limits", f"{show_bytes(bounds.soft)} soft, {show_bytes(bounds.hard)} hard"],
        ["slowed after", _after(played.first(State.THROTTLE, State.PAUSE))],
        ["paused after", _after(played.first(State.PAUSE))],
        ["at rest after", _after(played.rest_ms)],
        ["place", place if bounds.soft < bounds.hard else "soft and hard are equal"],
        ["PAUSEs", str(pauses(sample.factor for sample in played.samples))],
        ["longest silence", silence if who else "no client is eager"],
        ["beyond hard", show_bytes(played.beyond)],
    ]
    console().print(table(["", "outcome"], rows))


def _after(ms: int | None) -> str:
    return "not within this time" if ms is None else show_seconds(ms / 1000)


# ---- a quota ---------------------------------------------------------------------------------------------------

FORMS: Final = ("KIP-13", "Kafka's sampled rate", "Kafka's token bucket", "KIP-599 diff's rate", "KIP-599 v15's rate")
_MOST_REQUESTS: Final = 100_000  # requests of one pattern: more would take minutes
_MOST_WORK: Final = 10_000_000  # requests times samples, because a model sums up all samples at each request
_SECONDS: Final = r"(\d{1,9}(?:\.\d+)?)"
_REQUEST: Final = re.compile(rf"([^@]+)@{_SECONDS}(?:\.\.{_SECONDS}/{_SECONDS})?")


class Request(NamedTuple):
    """A request for an amount, in bytes or mutations, at a time in ms since the start."""

    amount: float
    ms: int


class Outcome(NamedTuple):
    """The seconds by which a request is delayed; if it is refused, the seconds after which the client may retry."""

    seconds: float
    is_refused: bool = False

    def __str__(self) -> str:
        if self.is_refused:
            return f"refused for {show_seconds(self.seconds, 3)}"
        return f"delayed by {show_seconds(self.seconds, 3)}" if self.seconds else "admitted"


def quota(
    requests: Annotated[
        list[str], typer.Argument(metavar="AMOUNT@SECONDS...", help="560@0, or many: 15K@0..3/0.5 (from, to, step).")
    ],
    rate: Annotated[str, typer.Option(help="The quota per second: 5, or 2M.")],
    samples: Annotated[
        str | None, typer.Option(help="quota.window.num, or controller.quota.window.num; Kafka's default is 11.")
    ] = None,
    burst: Annotated[
        str | None, typer.Option(help="Instead of --samples: controller_mutations_burst of KIP-599's version 15.")
    ] = None,
    window: Annotated[str, typer.Option(help="quota.window.size.seconds, as a duration.")] = "1s",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|svg", help="Draw it too; needs matplotlib.")] = None,
) -> None:
    """Show what a quota does to requests, in each of the forms that Kafka and the KIPs have.

    Each request arrives at its time, even if an earlier one was throttled.
    KIP-13 and Kafka's sampled rate (PRODUCE, FETCH) take every request and delay its client.
    Kafka's token bucket (CONTROLLER_MUTATION) and KIP-599's rates refuse a request until an earlier one is paid for.
    The revision diff's rate fills past windows up to the quota; version 15's spreads a request over all of them.
    Kafka uses neither of these two. In the long run both can let through more than their rate.
    """
    check_plot("simulate quota", plot)
    window_ms = ms(parsed("--window", window, parse_duration))
    patterns = [parsed("AMOUNT@SECONDS", text, parse_requests) for text in requests]
    arriving = sorted(chain.from_iterable(patterns), key=lambda request: request.ms)
    limit = parsed("--rate", rate, parse_quantity)
    number = _samples(samples, burst, limit, window_ms)
    if (work := len(arriving) * number) > _MOST_WORK:
        what = f"{work:,} requests times samples would take too long; {_MOST_WORK:,} is the most"
        raise typer.BadParameter(f"{what}; give fewer requests, or fewer samples")
    outcomes = run(arriving, limit, number, window_ms)
    rows = [
        [show_seconds(request.ms / 1000, 3), show_number(request.amount), *map(str, forms)]
        for request, forms in zip(arriving, outcomes, strict=True)
    ]
    console().print(table(["at", "amount", *FORMS], rows))
    if plot is not None:
        from quotahost.cli.lab.drawing import draw_outcomes

        throttled = {form: [o.seconds for o in of] for form, of in zip(FORMS, zip(*outcomes, strict=True), strict=True)}
        with writing(plot):
            draw_outcomes([request.ms / 1000 for request in arriving], throttled, plot)


def parse_requests(text: str) -> list[Request]:
    """Parse ``AMOUNT@SECONDS``, one request, or ``AMOUNT@FROM..TO/STEP``, many requests, the last at TO or before.

    Raises ValueError if the text has another form, or stands for more than 100,000 requests.
    """
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise ValueError("is not a request; write AMOUNT@SECONDS or AMOUNT@FROM..TO/STEP, such as 15K@0..3/0.5")
    amount = parse_quantity(match[1])
    start, stop, step = (round(float(s) * 1000) if s else 0 for s in match.groups()[1:])
    if match[3] is None:
        return [Request(amount, start)]
    if step < 1 or stop < start or (stop - start) // step >= _MOST_REQUESTS:
        raise ValueError("has no requests or too many; FROM must not exceed TO, and STEP must be 0.001 or more")
    return [Request(amount, at) for at in range(start, stop + 1, step)]


def _samples(samples: str | None, burst: str | None, rate: float, window_ms: int) -> int:
    if burst is None:
        return parsed("--samples", samples or "11", parse_count)
    if samples is not None:
        raise typer.BadParameter("can't be combined with --samples", param_hint="--burst")
    return parsed("--burst", burst, lambda text: samples_of_burst(rate, parse_quantity(text), window_ms))


def run(requests: Sequence[Request], rate: float, samples: int, window_ms: int) -> list[tuple[Outcome, ...]]:
    """The outcome of each request under each of FORMS, in order of time; no requests came before.

    ``rate`` is the quota in bytes/s or mutations/s, which is measured over ``samples`` samples of ``window_ms`` each.
    """
    kafka, bucket = SampledRate(samples, window_ms), TokenBucket(rate, samples, window_ms)
    spread = RevisionDiffRate(rate, samples, window_ms), Version15Rate(rate, samples, window_ms)
    span_ms = samples * window_ms
    in_span, produced = deque[Request](), 0.0
    outcomes: list[tuple[Outcome, ...]] = []
    for request in requests:
        now = span_ms + request.ms  # one span after 0: then the bucket is full and a window begins
        in_span.append(request)
        produced += request.amount
        # The loop never empties the deque, because the present request is in it.
        while in_span[0].ms <= request.ms - span_ms:
            produced -= in_span.popleft().amount
        kafka.record(request.amount, now)
        outcomes.append((
            Outcome(simple_delay_s(produced, rate * span_ms / 1000, rate)),
            # Kafka's cast to int is left out: it wraps above 24.8 days, and this shows waits of any length.
            Outcome(kafka.throttle_ms(rate, now) / 1000),
            Outcome(0.0) if bucket.admit(request.amount, now) else Outcome(bucket.throttle_ms(now) / 1000, True),
            *(Outcome(0.0) if r.admit(request.amount, now) else Outcome(r.throttle_s(now), True) for r in spread),
        ))  # fmt: skip
    return outcomes
