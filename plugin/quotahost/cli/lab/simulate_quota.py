"""``quotahost simulate quota``: the same requests under five forms of a quota, side by side.

Two of the models of ``quotahost.throttling`` are Kafka's, which the tests compare with Kafka itself; three are a KIP's.
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from quotahost.cli.asking import at_most, check_plot, parsed
from quotahost.cli.console import console, table, writing
from quotahost.cli.lab.traffic import ms
from quotahost.throttling import (
    RevisionDiffRate,
    SampledRate,
    TokenBucket,
    Version15Rate,
    samples_of_burst,
    simple_delay_s,
)
from quotahost.units.parse import parse_count, parse_duration, parse_quantity
from quotahost.units.show import show_number

FORMS: Final = ("KIP-13", "Kafka's sampled rate", "Kafka's token bucket", "KIP-599 diff's rate", "KIP-599 v15's rate")
_MOST: Final = 100_000  # requests of one pattern, or samples: more take minutes
_SECONDS: Final = r"(\d+(?:\.\d+)?)"
_REQUEST: Final = re.compile(rf"([^@]+)@{_SECONDS}(?:\.\.{_SECONDS}/{_SECONDS})?")


class Request(NamedTuple):
    """An amount, in bytes or mutations, at a time in ms since the start."""

    amount: float
    ms: int


class Outcome(NamedTuple):
    """For how many seconds a request is delayed, or if it is refused, after how many it may be sent again."""

    seconds: float
    is_refused: bool = False

    def __str__(self) -> str:
        if self.is_refused:
            return f"refused for {self.seconds:,.3f} s"
        return f"delayed by {self.seconds:,.3f} s" if self.seconds else "admitted"


def quota(
    requests: Annotated[
        list[str], typer.Argument(metavar="AMOUNT@SECONDS...", help="560@0, or many: 15K@0..3/0.5 (from, to, step).")
    ],
    rate: Annotated[str, typer.Option(help="The quota a second: 5, or 2M.")],
    samples: Annotated[
        str | None, typer.Option(help="quota.window.num, or controller.quota.window.num; Kafka's default is 11.")
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(help="controller_mutations_burst of KIP-599's version 15: gives samples, burst / rate."),
    ] = None,
    window: Annotated[str, typer.Option(help="quota.window.size.seconds, as a duration.")] = "1s",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|svg", help="Draw it too; needs matplotlib.")] = None,
) -> None:
    """Show how each request fares under each form; times are those of arrival, whatever was throttled before.

    KIP-13 and Kafka's sampled rate (PRODUCE, FETCH) take every request and delay its client. Kafka's token bucket
    (CONTROLLER_MUTATION) and the two rates of KIP-599 refuse a request while an earlier one is not made up for. The
    revision diff's rate fills past windows up to the quota; version 15's spreads a request evenly over all of them.
    Kafka has neither, and both can let more than their rate through in the long run.
    """
    check_plot("simulate quota", plot)
    window_ms = ms(parsed("--window", window, parse_duration))
    patterns = [parsed("AMOUNT@SECONDS", text, parse_requests) for text in requests]
    arriving = sorted(chain.from_iterable(patterns), key=lambda request: request.ms)
    limit = parsed("--rate", rate, parse_quantity)
    number = _samples(samples, burst, limit, window_ms)
    outcomes = run(arriving, limit, number, window_ms)
    rows = [
        [f"{request.ms / 1000:g} s", show_number(request.amount), *map(str, forms)]
        for request, forms in zip(arriving, outcomes, strict=True)
    ]
    console().print(table(["at", "amount", *FORMS], rows))
    if plot is not None:
        from quotahost.cli.lab.drawing import draw_outcomes

        throttled = {form: [o.seconds for o in of] for form, of in zip(FORMS, zip(*outcomes, strict=True), strict=True)}
        with writing(plot):
            draw_outcomes([request.ms / 1000 for request in arriving], throttled, plot)


def parse_requests(text: str) -> list[Request]:
    """``AMOUNT@SECONDS`` is one request, ``AMOUNT@FROM..TO/STEP`` are many, the last at TO or before.

    Raises ValueError if it is neither, or they are more than 100,000.
    """
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise ValueError("is no request; write AMOUNT@SECONDS or AMOUNT@FROM..TO/STEP, such as 15K@0..3/0.5")
    amount = parse_quantity(match[1])
    start, stop, step = (round(float(s) * 1000) if s else 0 for s in match.groups()[1:])
    if match[3] is None:
        return [Request(amount, start)]
    if step < 1 or stop < start or (stop - start) // step >= _MOST:
        raise ValueError("has no or too many requests; FROM must not exceed TO, and STEP be 0.001 or more")
    return [Request(amount, at) for at in range(start, stop + 1, step)]


def _samples(samples: str | None, burst: str | None, rate: float, window_ms: int) -> int:
    if burst is None:
        return parsed("--samples", samples or "11", lambda text: at_most(_MOST, "samples", parse_count(text)))
    if samples is not None:
        raise typer.BadParameter("--burst stands for --samples; leave one of them out", param_hint="--burst")

    def parse(text: str) -> int:
        return at_most(_MOST, "samples", samples_of_burst(rate, parse_quantity(text), window_ms))

    return parsed("--burst", burst, parse)


def run(requests: Sequence[Request], rate: float, samples: int, window_ms: int) -> list[tuple[Outcome, ...]]:
    """The outcome of each request, in order of time, under each of FORMS, with nothing recorded before.

    ``rate`` is the quota in bytes/s or mutations/s, measured over so many samples of ``window_ms`` each.
    """
    kafka, bucket = SampledRate(samples, window_ms), TokenBucket(rate, samples, window_ms)
    spread = RevisionDiffRate(rate, samples, window_ms), Version15Rate(rate, samples, window_ms)
    span_ms = samples * window_ms
    in_span, produced = deque[Request](), 0.0
    outcomes: list[tuple[Outcome, ...]] = []
    for request in requests:
        now = span_ms + request.ms  # one span after 0, so that the bucket is full and a window begins
        in_span.append(request)
        produced += request.amount
        # It never empties the deque: the request of now is in it.
        while in_span[0].ms <= request.ms - span_ms:
            produced -= in_span.popleft().amount
        kafka.record(request.amount, now)
        outcomes.append((
            Outcome(simple_delay_s(produced, rate * span_ms / 1000, rate)),
            # Without Kafka's cast to int, which wraps above 24.8 days: the wait is to be seen, however long.
            Outcome(kafka.throttle_ms(rate, now, cast=False) / 1000),
            Outcome(0.0) if bucket.admit(request.amount, now) else Outcome(bucket.throttle_ms(now) / 1000, True),
            *(Outcome(0.0) if r.admit(request.amount, now) else Outcome(r.throttle_s(now), True) for r in spread),
        ))  # fmt: skip
    return outcomes
