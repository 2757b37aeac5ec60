"""The factor source ``load``: a broker whose threads have no time left slows who produces and fetches until they have.

1. Every ``plugin.load.interval`` it reads what Kafka counts of the idle time of request handlers and of network threads
   (``Broker.load``), and takes the difference from the last time.
2. The *pressure* is the busy share divided by the busy share that the target leaves, of whichever of the two is nearer
   to its target: 1 at the target, above 1 beyond it.
3. ``Law`` makes a factor of the pressure. It is for PRODUCE and FETCH of this broker alone, and never 0. It multiplies
   the quotas, so that greedy clients are slowed in proportion to them, and who uses a small part of a quota isn't.

The law is x = l / p^2: x is the factor, l the limit to which the tap has led the last ones, p the mean of the pressure
over Kafka's windows, 10 s at least. docs/adr/0029-the-load-by-the-mean-over-the-windows.md says why it is stable, and
how it begins and ends; ``harness/loop/load.py`` plays it against Kafka's own arithmetic.
"""

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from operator import mul
from statistics import fmean
from typing import ClassVar, Final, Self

from pydantic import Field, model_validator

from quotahost.api import Context
from quotahost.model import Factor, QuotaType
from quotahost.model.use import Load
from quotahost.settings import sections
from quotahost.throttling import QuotaWindows, Tap, quota_windows
from quotahost.units import Duration

POWER: Final = 2.0
STANDING: Final = 3  # intervals with a pressure above 1, before the law begins
FREE: Final = 3  # intervals with a pressure below 1 at whose ends nobody is held back, before it ends
_LOOKED_AT: Final = 50  # scopes of clients; those that are held back come first
_NEAR: Final = 0.9  # of a limit: a client at its limit swings around it, since Kafka measures in samples
_CALM: Final = 10.0  # seconds over which the pressure is averaged at least
_SOME: Final = 1e-3  # a mean pressure of 0 can't be divided by
_LACKING: Final = 120  # seconds for which Kafka may have no counters: it makes them after its callback, and stops first
_MS, _NS = 1000, 1_000_000_000  # in a second


class Law:
    """From the pressure to the factor, one step for each interval."""

    def __init__(self, windows: QuotaWindows, max_mute_ms: int, least: float) -> None:
        """``least`` is the smallest factor, above 0; the others are as for the tap, which is played here, too."""
        self._tap, self._windows = Tap(windows.number, windows.size * _MS, max_mute_ms), windows
        kafkas = (windows.number + 1) * windows.size
        self._window, self._least = max(kafkas, _CALM), least
        #: What of the past has limits that the mean pressure answers to: each answers to a limit over Kafka's windows.
        self._share = 1 - kafkas / self._window
        self.factor = 1.0  # what it was last
        #: Pressure, limit at the end, and seconds of the intervals since the overload began.
        self._past: deque[tuple[float, float, float]] = deque()
        self._free = 0  # intervals in a row with a pressure below 1, at whose ends nobody was held back

    def configure(self, max_mute_ms: int, least: float) -> None:
        """``max.mute``, by which the tap in the broker goes from now on, too, and the smallest factor."""
        self._tap.configure(self._windows.number, self._windows.size * _MS, max_mute_ms)
        self._least = least

    def step(
        self, pressure: float, seconds: float, now_ms: int, held: Callable[[], bool], enforced: bool = True
    ) -> float:
        """The factor from now on, by the pressure of the last interval, its length and its end (monotonic).

        ``held`` tells whether the factor holds anybody back now; asked only where the overload may have ended. One that
        is in shadow, and not ``enforced``, leaves limits whole: the pressure that stays then doesn't call for less and
        less.
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
    """Answers the factor, and which threads lack time."""

    class Section(sections.Section):
        """The properties under ``plugin.load.``."""

        handlers_idle: float = Field(
            30.0, ge=0, le=90,
            description="percent of their time that request handlers (num.io.threads) shall be idle; 0 ignores them",
        )  # fmt: skip
        network_idle: float = Field(
            30.0, ge=0, le=90, description="the same for the network threads (num.network.threads)"
        )
        least: float = Field(0.05, ge=0.01, le=1, description="the smallest factor, whatever the load")
        interval: Duration = Field(
            timedelta(seconds=1), ge=timedelta(milliseconds=250), le=timedelta(seconds=10),
            description="over which time the load is measured",
        )  # fmt: skip

        @model_validator(mode="after")
        def _has_a_target(self) -> Self:
            if not self.handlers_idle and not self.network_idle:
                raise ValueError("set handlers-idle or network-idle above 0, or take load out of factor.source")
            return self

    quota_types: ClassVar = (QuotaType.PRODUCE, QuotaType.FETCH)

    def __init__(self, context: Context[Section]) -> None:
        self._context = context
        context.closing.callback(context.metrics.forget, "Load", "")
        self._known_ns = -1  # when all counters were known last, or else the first read
        self._begin()

    def _begin(self) -> None:
        self._law = Law(quota_windows(self._context.broker.properties()), *self._bounds())
        self._last: Load | None = None
        self._factor = Factor(1.0)

    def reconfigure(self, section: Section) -> None:
        """The law goes on from the factor in force: one that began anew would let everybody go for a moment."""

    def read(self) -> Factor:
        """The factor by the last interval that is over. Raises, and begins anew, if Kafka's counters can't be read."""
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
        # Threads that never waited have not begun: a broker opens its listeners at the end of its start.
        network = [{name: idle for name, idle in before.network_idle_ns.items() if idle > 0}, now.network_idle_ns]
        pressures: list[tuple[float, str]] = []
        unknown: list[str] = []
        for attribute, target, threads, (was_ns, is_ns) in (
            ("HandlersIdle", section.handlers_idle, "request handlers", handlers),
            ("NetworkIdle", section.network_idle, "network threads", network),
        ):
            shares = [((is_ns[name] - was_ns[name]) / elapsed, name) for name in was_ns.keys() & is_ns.keys()]
            if shares:
                share, name = min(shares)
                idle = min(1.0, max(0.0, share))  # Kafka reads its clocks apart
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
            raise LookupError(f"this Kafka doesn't tell how busy its {' and its '.join(unknown)} are")
        if not pressures:
            return Factor(1.0)
        pressure, cause = max(pressures)
        enforced = not self._context.settings.shadow.factor
        factor = self._law.step(pressure, elapsed / _NS, now.at_ns * _MS // _NS, self._holds_back, enforced)
        return Factor(factor, cause if factor < 1 else "")

    def _holds_back(self) -> bool:
        """Whether anybody who produces or fetches is near a limit below the quota."""
        # Not by ``bound``: that counts delays of the last minute, too.
        return any(
            use.quota_type in self.quota_types and use.limit is not None and use.rate >= _NEAR * use.limit
            and (use.quota is None or use.limit < use.quota)
            for use in self._context.broker.look(_LOOKED_AT).uses
        )  # fmt: skip
