"""``quotahost simulate``: the same requests under the four forms of a quota, side by side."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from quotahost.cli.console import console, table
from quotahost.throttling.burst_rate import BurstRate
from quotahost.throttling.sampled_rate import SampledRate, simple_delay_s
from quotahost.throttling.token_bucket import TokenBucket
from quotahost.units.parse import parse_count, parse_duration, parse_quantity
from quotahost.units.show import show_number

# TODO(merge) Requests as ``quotahost simulate`` is given them: ``560@0``, ``15K@0..3/0.5``.


FORMS: Final = ("KIP-13", "Kafka's sampled rate", "token bucket", "KIP-599 v15's rate")


_MOST_SAMPLES: Final = 100_000


class Outcome(NamedTuple):
    """For how many seconds a request is throttled; a form that admits may refuse it for that long instead."""

    seconds: float
    is_refused: bool = False

    def __str__(self) -> str:
        """In an operator's words."""
        if self.is_refused:
            return f"refused for {self.seconds:,.3f} s"
        return f"delayed by {self.seconds:,.3f} s" if self.seconds else "admitted"


def simulate(
    requests: Annotated[
        list[str],
        typer.Argument(metavar="AMOUNT@SECONDS...", help="560@0, or many: 15K@0..3/0.5 (from, to, step)."),
    ],
    rate: Annotated[str, typer.Option(help="The quota a second: 5, or 2M.")],
    samples: Annotated[str, typer.Option(help="quota.window.num, or controller.quota.window.num.")] = "11",
    window: Annotated[str, typer.Option(help="quota.window.size.seconds, as a duration.")] = "1s",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw it too; needs matplotlib.")
    ] = None,
) -> None:
    """Show how each request fares under each form; times are those of arrival, whatever was throttled before.

    KIP-13 and Kafka's sampled rate (PRODUCE, FETCH) take every request and delay its client. The token bucket
    (CONTROLLER_MUTATION) and version 15 of KIP-599 refuse a request while an earlier one is not made up for. Version
    15 doesn't hold its rate in the long run, and Kafka didn't keep it.
    """
    try:
        size_ms = int(parse_duration(window).total_seconds() * 1000)
        asked = sorted((r for text in requests for r in parse_requests(text)), key=lambda r: r.ms)
        outcomes = run(asked, parse_quantity(rate), parse_count(samples), size_ms)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from None
    rows = [
        [f"{r.ms / 1000:g} s", show_number(r.amount), *map(str, each)]
        for r, each in zip(asked, outcomes, strict=True)
    ]
    console().print(table(["at", "amount", *FORMS], rows))
    if plot is not None:
        _draw(asked, outcomes, plot)


def run(requests: Sequence[Request], rate: float, samples: int, window_ms: int) -> list[tuple[Outcome, ...]]:
    """The outcome of each request, in order of time, under each of FORMS; nothing has been recorded before.

    Raises:
        ValueError: more than 100,000 samples.
    """
    if samples > _MOST_SAMPLES:
        raise ValueError(f"{samples:,} samples are too many; take {_MOST_SAMPLES:,} at most")
    kafka, bucket = SampledRate(samples, window_ms), TokenBucket(rate, samples, window_ms)
    burst, span_ms = BurstRate(rate, samples, window_ms), samples * window_ms
    held, produced = deque[Request](), 0.0
    outcomes: list[tuple[Outcome, ...]] = []
    for request in requests:
        now = span_ms + request.ms  # so late after 0 the bucket is full at first, and a window begins
        held.append(request)
        produced += request.amount
        while held[0].ms <= request.ms - span_ms:
            produced -= held.popleft().amount
        kafka.record(request.amount, now)
        outcomes.append((
            Outcome(simple_delay_s(produced, rate * span_ms / 1000, rate)),
            Outcome(kafka.throttle_ms(rate, now, cast=False) / 1000),
            Outcome(0.0) if bucket.admit(request.amount, now) else Outcome(bucket.throttle_ms(now) / 1000, True),
            Outcome(0.0) if burst.admit(request.amount, now) else Outcome(burst.throttle_s(now), True),
        ))  # fmt: skip
    return outcomes


def _draw(requests: Sequence[Request], outcomes: Sequence[tuple[Outcome, ...]], file: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise typer.BadParameter("--plot needs matplotlib; pip install matplotlib") from None
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="seconds", ylabel="throttled for, in seconds")
    for form, each in zip(FORMS, zip(*outcomes, strict=True), strict=True):
        axes.plot([r.ms / 1000 for r in requests], [o.seconds for o in each], marker=".", label=form)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=120)


_SECONDS: Final = r"(\d+(?:\.\d+)?)"


_REQUEST: Final = re.compile(rf"([^@]+)@{_SECONDS}(?:\.\.{_SECONDS}/{_SECONDS})?")


_MOST: Final = 100_000


class Request(NamedTuple):
    """So many bytes or mutations, at a time in ms since the start."""

    amount: float
    ms: int


def parse_requests(text: str) -> list[Request]:
    """``AMOUNT@SECONDS`` is one request, ``AMOUNT@FROM..TO/STEP`` are many, the last at TO or before.

    Raises:
        ValueError: it is neither, or they are more than 100,000.
    """
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is no request; write AMOUNT@SECONDS or AMOUNT@FROM..TO/STEP, such as 15K@0..3/0.5"
        )
    amount = parse_quantity(match[1])
    start, stop, step = (round(float(s) * 1000) if s else 0 for s in match.groups()[1:])
    if match[3] is None:
        return [Request(amount, start)]
    if step < 1 or stop < start or (stop - start) // step >= _MOST:
        raise ValueError(
            f"{text!r} has no or too many requests; FROM must not exceed TO, and STEP be 0.001 or more"
        )
    return [Request(amount, ms) for ms in range(start, stop + 1, step)]
