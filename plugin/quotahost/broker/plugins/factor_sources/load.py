"""The factor source ``load`` slows producers and consumers while this broker's threads have too little idle time.

1. Every ``plugin.load.interval`` the source reads Kafka's counters of the idle time of request handlers and network
   threads (``Broker.load``), and subtracts the previous values.
2. The source computes the *pressure*: the busy share divided by the busy share that the target leaves. The pressure is
   1 at the target and above 1 beyond it. The larger pressure of both kinds of threads counts.
3. ``Law`` makes a factor from the pressure. The factor applies only to PRODUCE and FETCH of this broker and is never 0.
   It multiplies the quotas: greedy clients slow down in proportion; clients that use a small part of a quota don't.

The law is x = l / p^2: x is the factor, l is the limit to which the tap has led the last factors, and p is the mean of
the pressure over Kafka's windows, at least over 10 s. docs/adr/0029-the-load-by-the-mean-over-the-windows.md explains
why the law is stable, and how it starts and ends. ``harness/loop/load.py`` runs it against Kafka's own arithmetic.
"""

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from operator import mul
from statistics import fmean
from typing import ClassVar, Final, Self

from pydantic import Field, model_validator

from quotahost.api import Context
from quotahost.model import Factor, Load, QuotaType
from quotahost.model.use import near_limit
from quotahost.settings import sections
from quotahost.throttling import QuotaWindows, Tap, quota_windows
from quotahost.units import Duration

POWER: Final = 2.0
STANDING: Final = 3  # the law starts after so many intervals with a pressure above 1
FREE: Final = 3  # the law ends after so many intervals with a pressure below 1 and no client held back at their ends
_LOOKED_AT: Final = 50  # scopes to look at; scopes that are held back come first
_CALM: Final = 10.0  # seconds: the shortest time over which the pressure is averaged
_SOME: Final = 1e-3  # replaces a mean pressure of 0, which can't be a divisor
_LACKING: Final = 120  # seconds; while the broker starts or stops, the callback runs without Kafka's counters
_MS, _NS = 1000, 1_000_000_000  # in a second


class Law:
    """Computes the factor from the pressure, one step per interval."""

    def __init__(self, windows: QuotaWindows, max_mute_ms: int, least: float) -> None:
        """``least`` is the smallest factor, above 0; the other arguments are for a tap that the law computes itself."""
        self._tap, self._windows = Tap(windows.number, windows.size * _MS, max_mute_ms), windows
        kafkas = (windows.number + 1) * windows.size
        self._window, self._least = max(kafkas, _CALM), least
        #: The mean pressure reacts to the limits of this last share of the past, the last 10 s less Kafka's windows,
        #: because each single pressure reacts to the limits over Kafka's windows.
        self._share = 1 - kafkas / self._window
        self.factor = 1.0  # the last factor
        #: Pressure, limit at the end, and length in seconds of each interval since the overload started.
        self._past: deque[tuple[float, float, float]] = deque()
        self._free = 0  # consecutive intervals with a pressure below 1 and no client held back at their ends

    def configure(self, max_mute_ms: int, least: float) -> None:
        """Apply a new ``max.mute``, which the broker's tap uses from now on, too, and a new smallest factor."""
        self._tap.configure(self._windows.number, self._windows.size * _MS, max_mute_ms)
        self._least = least

    def step(
        self, pressure: float, seconds: float, now_ms: int, held: Callable[[], bool], enforced: bool = True
    ) -> float:
        """The new factor, from the pressure of the last interval, its length and its end (monotonic).

        ``held`` returns whether the factor holds a client back now; it is called only if the overload may have ended.
        If the factor is in shadow and so not ``enforced``, it lowers no limit. The pressure stays then, which must not
        make the factor smaller and smaller.
        """
        self._tap.step(self.factor if enforced else 1.0, False, now_ms)
        self._free = self._free + 1 if self.factor < 1 and pressure < 1 and not held() else 0
        if self._free >= FREE or (self.factor == 1 and pressure < 1):
            self._past.clear()
            self.factor = 1.0
            return 1.0
        self._past.append((pressure, self._tap.value, seconds))
        while len(self._past) > STANDING and sum(span for *_, span in self._past) - self._past[0][2] >= self._window:
            self._past.popleft()
        if len(self._past) >= STANDING:
            pressures, limits, lengths = zip(*self._past, strict=True)
            pressure = sum(map(mul, pressures, lengths)) / sum(lengths)
            recent = limits[-max(1, round(self._share * len(limits))) :]
            self.factor = min(1.0, max(self._least, fmean(recent) * max(pressure, _SOME) ** -POWER))
        return self.factor


class LoadSource:
    """Answers the factor, and names the threads that lack idle time as its cause."""

    class Section(sections.Section):
        """The properties under ``plugin.load.``."""

        handlers_idle: float = Field(
            30.0, ge=0, le=90,
            description="percent of their time that request handlers (num.io.threads) should be idle; 0 ignores them",
        )  # fmt: skip
        network_idle: float = Field(
            30.0, ge=0, le=90, description="the same for the network threads (num.network.threads)"
        )
        least: float = Field(0.05, ge=0.01, le=1, description="the smallest factor, whatever the load")
        interval: Duration = Field(
            timedelta(seconds=1), ge=timedelta(milliseconds=250), le=timedelta(seconds=10),
            description="length of the interval over which the load is measured",
        )  # fmt: skip

        @model_validator(mode="after")
        def _has_a_target(self) -> Self:
            if not self.handlers_idle and not self.network_idle:
                raise ValueError("set handlers-idle or network-idle above 0, or remove load from factor.source")
            return self

    quota_types: ClassVar = (QuotaType.PRODUCE, QuotaType.FETCH)

    def __init__(self, context: Context[Section]) -> None:
        self._context = context
        context.closing.callback(context.metrics.forget, "Load", "")
        self._known_ns = -1  # the last time when all counters were known, else the time of the first read
        self._begin()

    def _begin(self) -> None:
        self._law = Law(quota_windows(self._context.broker.properties()), *self._bounds())
        self._last: Load | None = None
        self._factor = Factor(1.0)

    def reconfigure(self, section: Section) -> None:
        """Keep the law and its factor in force: a new law would start at factor 1 and free all clients for a moment."""

    def read(self) -> Factor:
        """The factor after the last whole interval. Restarts the law and raises if Kafka's counters can't be read."""
        self._law.configure(*self._bounds())
        try:
            load = self._context.broker.load()
            self._known_ns = load.at_ns if self._known_ns < 0 else self._known_ns
            if self._last is None:
                self._last = load
            elif load.at_ns - self._last.at_ns >= self._context.section.interval.total_seconds() * _NS:
                before, self._last = self._last, load
                self._factor = self._judge(before, load)
        except BaseException:
            self._begin()
            raise
        return self._factor

    def _bounds(self) -> tuple[int, float]:
        return int(self._context.settings.max_mute.total_seconds() * _MS), self._context.section.least

    def _judge(self, before: Load, now: Load) -> Factor:
        elapsed, section, metrics = now.at_ns - before.at_ns, self._context.section, self._context.metrics
        handlers = [{"": load.handlers_idle_ns} if load.handlers_idle_ns >= 0 else {} for load in (before, now)]
        # Network threads that were never idle have not started: a broker opens its listeners at the end of its start.
        network = [{name: idle for name, idle in before.network_idle_ns.items() if idle > 0}, now.network_idle_ns]
        pressures: list[tuple[float, str]] = []
        unknown: list[str] = []
        for attribute, target, threads, (was_ns, is_ns) in (
            ("HandlersIdle", section.handlers_idle, "request handlers", handlers),
            ("NetworkIdle", section.network_idle, "network threads", network),
        ):
            shares = [((is_ns[name] - was_ns[name]) / elapsed, name) for name in was_ns.keys() & is_ns.keys()]
            share, name = min(shares, default=(-1.0, ""))
            # A counter that fell is another one: the broker's own pool of handlers starts after its controller's pool.
            if share >= 0:
                idle = min(1.0, share)  # Kafka reads the clocks at different times
                metrics.gauge("Load", "", attribute, idle)
                if target:
                    whose = f"{threads} of {name}" if name else threads
                    cause = f"this broker's {whose} are {idle * 100:.0f} % idle (target {target:g} %)"
                    pressures.append(((1 - idle) / (1 - target / 100), cause))
            elif target:
                unknown.append(threads)
        if now.queued >= 0:
            metrics.gauge("Load", "", "Queued", now.queued)
        if not unknown:
            self._known_ns = now.at_ns
        elif now.at_ns - self._known_ns >= _LACKING * _NS:
            raise LookupError(f"this Kafka has no counters of how busy its {' and its '.join(unknown)} are")
        if not pressures:
            return Factor(1.0)
        pressure, cause = max(pressures)
        enforced = not self._context.settings.shadow.factor
        factor = self._law.step(pressure, elapsed / _NS, now.at_ns * _MS // _NS, self._holds_back, enforced)
        cause += " with this factor" if pressure < 1 and enforced else ""  # otherwise it would seem to be no cause
        return Factor(factor, cause if factor < 1 else "")

    def _holds_back(self) -> bool:
        """Whether a client that produces or fetches is near a limit below its quota."""
        # ``bound`` doesn't tell that, because it includes delays of the last minute.
        return any(
            use.quota_type in self.quota_types and use.limit is not None and near_limit(use.rate, use.limit)
            and (use.quota is None or use.limit < use.quota)
            for use in self._context.broker.look(_LOOKED_AT).uses
        )  # fmt: skip
