"""``replay`` plays settings over the history: how full volumes would have been, and who would have been held back.

1. Two hosts go through the same times, one ``step`` apart. The host "then" has the settings of that time, and sees each
   volume as it was recorded. The host "new" has the new settings, and sees each volume as full as it would have become
   by this host's own factors (``Growth``).
2. If the factor source is ``local``, each broker has its own pair of hosts. Otherwise all brokers of a cluster decide
   in the same way, so the cluster has one pair.
3. A client is held back if it wants more than its quota times the factor. The records of usage have its demand; if a
   record has none, the client would use any rate. Nobody measures the demand of a paused client, so its last demand
   counts until its next record.
4. Budgets are not played: ``judge_budgets`` compares their recorded bytes with their limits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, exp, inf
from typing import Final, NamedTuple

from quotahost.base.text import bounded, printable
from quotahost.cli.lab.curves import Bucket, BudgetUse, ClientUse, Curve, Report
from quotahost.cli.lab.host import Host, Key, quiet
from quotahost.model import Factor, Limit, LimitType, QuotaType, State, Volume
from quotahost.model.budgets import Budget, as_volume
from quotahost.model.volumes import ByteLimits, byte_limits
from quotahost.settings.broker import Settings
from quotahost.settings.storage import match

_MOST_STEPS: Final = 20_000
_QUESTIONS: Final = 4_000_000  # calls of the policy by one host: more would take minutes
_LEAST_STEPS: Final = 1_000
_SILENT: Final = 3  # steps, or times between readings: after so long without a reading a volume is unknown
_LEAST_SHARE: Final = 0.05  # below this share too few bytes came in to tell how many would have come in
_MOST_NAMED: Final = 5  # budgets in a note
_MEMORY: Final = 300.0  # seconds at full share: the demand is a mean over about this time
Limits = tuple[Limit | None, Limit | None]  # soft and hard


# ---- results ----


@dataclass(slots=True)
class StateTimes:
    """The seconds with a factor of 1 (``open_s``), 0 (``pause_s``) or between; the lowest factor; and the PAUSEs."""

    open_s: float = 0.0
    throttle_s: float = 0.0
    pause_s: float = 0.0
    lowest: float = 1.0
    first_pause: float | None = None
    pauses: int = 0
    paused: bool = False  # whether the last factor was 0

    def add(self, at: float, factor: float, seconds: float) -> None:
        state = Factor(factor).state
        span = f"{state.lower()}_s"
        setattr(self, span, getattr(self, span) + seconds)
        if state is State.PAUSE and not self.paused:
            self.pauses += 1
            self.first_pause = at if self.first_pause is None else self.first_pause
        self.lowest, self.paused = min(self.lowest, factor), state is State.PAUSE

    @property
    def held(self) -> tuple[float, float]:
        """The sort key that puts the worst first: the seconds in PAUSE, then the seconds in THROTTLE."""
        return self.pause_s, self.throttle_s


class FactorPoint(NamedTuple):
    """A change of the factor: the factors then and with the new settings, from the time ``at`` on."""

    at: float
    then: float
    new: float


class UsePoint(NamedTuple):
    """Bytes consumed at a time: as recorded (``then``) and as they would have been (``new``), and the new limits."""

    at: float
    then: int
    new: int
    capacity: int
    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class ReplayedClient:
    """One producer whose use brokers published. Its times count a factor only while the factor held it back, else 1."""

    cluster: str
    user: str
    client: str
    brokers: tuple[str, ...]  # the brokers that it wrote to
    rate: float  # bytes/s on all brokers together, as a mean over the time in which it wrote
    then: StateTimes
    new: StateTimes


@dataclass(frozen=True, slots=True)
class BudgetTimes:
    """The seconds in which a budget slowed its writers or turned them back, and those in which it was used up."""

    held_s: float
    used_up_s: float


@dataclass(frozen=True, slots=True)
class ReplayedBudget:
    """The result for one budget in one cluster."""

    cluster: str
    budget: str
    sizes: tuple[int, int]  # the size in bytes, then and new
    peak: int  # the most bytes that were used
    peak_at: float
    unknown_s: float  # seconds for which the history has no bytes
    then: BudgetTimes
    #: None if a new limit is higher and the old ones held writers back: what they would have written is unknown.
    new: BudgetTimes | None


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of the settings, from the first to the last reading."""

    since: float
    until: float
    step: float  # seconds between two decisions
    factors: tuple[ReplayedFactor, ...]
    volumes: tuple[ReplayedVolume, ...]  # those that the new settings hold back longest come first
    clients: tuple[ReplayedClient, ...]  # only clients that are held back, then or new, in the same order
    notes: tuple[str, ...]  # what the replay can't tell
    budgets: tuple[ReplayedBudget, ...] = ()  # from ``judge_budgets``

    @property
    def several(self) -> bool:
        return len({factor.cluster for factor in self.factors}) > 1

    def whose(self, factor: ReplayedFactor) -> str:
        """``broker 1``, after the cluster's name if there are several; ``cluster c`` if all brokers have the factor."""
        cluster, broker = f"cluster {printable(factor.cluster)}", f"broker {printable(factor.broker)}"
        if not factor.broker:
            return cluster
        return f"{cluster}, {broker}" if self.several else broker


class Table(NamedTuple):
    """One table: heads and rows. ``what`` names the kind of rows, and ``more`` counts the rows that are left out."""

    heads: tuple[str, ...]
    rows: list[list[str]]
    what: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that a replay compares."""

    new: Settings
    then: Settings  # without limits, because each reading has its own limits
    windows: tuple[int, int] = (11, 1000)  # ``quota.window.num``, and the length of a window in ms


def play(report: Report, plan: Plan) -> Replay:
    """Play the settings of the plan over the readings of the report.

    Raises PluginError if a policy can't be built; SettingsError if one of its properties is wrong.
    """
    since, until = report.since, report.until
    now = since
    factors = tuple(_factors(report, plan, lambda: now))
    steps = max(_LEAST_STEPS, min(_MOST_STEPS, _QUESTIONS // len(report.curves)))
    step = max(plan.new.factor_interval.total_seconds(), (until - since) / steps)
    # The mean time between two readings, of the volume with the most frequent readings.
    several = [curve for curve in report.curves if len(curve.buckets) > 1]
    apart = min(((c.latest.at - c.buckets[0].at) / (len(c.buckets) - 1) for c in several), default=0.0)
    silent = max(plan.new.validity.total_seconds(), _SILENT * step, _SILENT * apart)
    with quiet():
        last = ceil((until - since) / step)
        for number in range(last + 1):
            now = since + number * step
            for factor in factors:
                factor.step(now, step if number < last else 0.0, silent)
    volumes = [volume for factor in factors for volume in factor.volumes if volume.points]
    volumes.sort(key=lambda v: (v.new.held, v.peaks[1] / max(1, v.capacity)), reverse=True)
    clients = [replayed_client(client, _points(client, factors), until) for client in report.clients]
    held = [client for client in clients if any(client.then.held + client.new.held)]
    held.sort(key=lambda client: client.new.held, reverse=True)
    notes = tuple(_notes(plan, report, factors))
    return Replay(since, until, step, factors, tuple(volumes), tuple(held), notes)


def _factors(report: Report, plan: Plan, clock: Callable[[], float]) -> Iterator[ReplayedFactor]:
    storage = plan.new.static.storage
    # Only volume names are matched, because the history doesn't tell which log directory lies on which volume.
    own = match(storage.overrides, sorted({curve.name.volume for curve in report.curves}), {}).limits
    volumes: dict[tuple[str, str], list[ReplayedVolume]] = {}
    for curve in report.curves:
        soft, hard = own.get(curve.name.volume, (None, None))
        limits = soft or storage.soft_limit, hard or storage.hard_limit
        broker = curve.name.broker if plan.new.factor_source == "local" else ""
        volumes.setdefault((curve.name.cluster, broker), []).append(ReplayedVolume(curve, limits))
    for cluster, broker in sorted(volumes):
        then, new = (Host(settings, plan.windows, clock) for settings in (plan.then, plan.new))
        yield ReplayedFactor(cluster, broker, volumes[cluster, broker], then, new)


def _points(client: ClientUse, factors: Sequence[ReplayedFactor]) -> Sequence[FactorPoint]:
    """The factor of the client's cluster; if each broker has its own factor, the worst one of the client's brokers."""
    brokers = {use.broker for use in client.uses}
    concerned = [factor for factor in factors if factor.cluster == client.cluster and factor.broker in ("", *brokers)]
    return min(concerned, key=lambda f: (f.new.open_s, f.then.open_s)).points if concerned else ()


def _notes(plan: Plan, report: Report, factors: Sequence[ReplayedFactor]) -> Iterator[str]:
    if not plan.new.factor_source:
        yield "these settings name no factor.source, so no volume would have slowed anybody"
    elif plan.new.shadow.factor:
        yield "the factor is in shadow in these settings: it is shown, and nobody would have been slowed"
    elif QuotaType.PRODUCE not in plan.new.factor_quota_types:
        yield "factor.quota.types has no PRODUCE: the factor is shown, and no producer would have been slowed"
    if plan.then.shadow.factor:
        yield "the factor was in shadow then, so nobody was slowed by it"
    latest = [point for factor in factors for volume in factor.volumes for point in volume.points[-1:]]
    if all(point.soft is None and point.hard is None for point in latest):
        yield "these settings give no limits to any of the volumes"
    if any(host.shim.failed for factor in factors for host in factor.hosts):
        yield "the policy failed for a volume, which is left out while it fails"
    if not report.clients:
        yield "the history has no usage of that time, so it isn't known which clients would have been slowed"


# ---- volumes and their factors ----


class ReplayedFactor:
    """One factor by the recorded consumption (``then``) and by the new settings (``new``), and its volumes."""

    def __init__(self, cluster: str, broker: str, volumes: list[ReplayedVolume], then: Host, new: Host) -> None:
        """``broker`` is "" if the factor is for all brokers of the cluster."""
        self.cluster, self.broker, self.volumes, self.hosts = cluster, broker, volumes, (then, new)
        self.then, self.new = StateTimes(), StateTimes()
        self.unknown_s = 0.0  # seconds without any known volume
        self.points: list[FactorPoint] = []  # one for each change
        self._known = frozenset[Key]()

    def step(self, now: float, seconds: float, silent: float) -> None:
        then, new = self.hosts
        taken = [volume.take(now) for volume in self.volumes]
        known = [volume for volume in self.volumes if volume.known(now, silent)]
        keys = frozenset(volume.key for volume in known)
        if any(taken) or keys != self._known:
            self._known = keys
            then.know(volume.as_recorded() for volume in known)
            new.know(volume.as_would_be() for volume in known)
        if known:
            for host, times in ((then, self.then), (new, self.new)):
                host.decide()
                times.add(now, host.factor, seconds)
            for volume in known:
                volume.then.add(now, then.factor_of(volume.key), seconds)
                volume.new.add(now, new.factor_of(volume.key), seconds)
            point = FactorPoint(now, then.factor, new.factor)
            if not self.points or self.points[-1][1:] != point[1:]:
                self.points.append(point)
        else:
            self.unknown_s += seconds
        for volume in self.volumes:
            volume.then_s += then.share_of(volume.key) * seconds
            volume.new_s += new.share_of(volume.key) * seconds


class ReplayedVolume:
    """One volume, up to the present time of the replay."""

    def __init__(self, curve: Curve, limits: Limits) -> None:
        self.name, self._buckets, self._limits = curve.name, curve.buckets, limits
        self.key: Key = curve.name.broker, curve.name.volume
        self._taken, self._since = 0, 0.0
        self.growth = Growth(curve.buckets[0].last)
        # The times are of this volume's own factor. Another volume may have a smaller one, which holds clients back.
        self.then, self.new = StateTimes(), StateTimes()
        # The clients' share, summed over the seconds since the last reading: 10 s at 0.5 are 5 s at full share.
        self.then_s = self.new_s = 0.0
        self.points: list[UsePoint] = []  # one for each reading

    @property
    def capacity(self) -> int:
        return self.points[-1].capacity

    @property
    def peaks(self) -> tuple[int, int]:
        """The most bytes consumed, as recorded and as they would have been."""
        return max(point.then for point in self.points), max(point.new for point in self.points)

    @property
    def full_at(self) -> float | None:
        """The first time at which the volume would have been full, but was not full as recorded; None if never."""
        return next((point.at for point in self.points if point.then < point.capacity <= point.new), None)

    def take(self, now: float) -> bool:
        """Go on to the latest reading at this time; return False if there is no new reading."""
        before = self._taken
        self._taken = bisect_right(self._buckets, now, lo=before, key=lambda bucket: bucket.at)
        if self._taken == before:
            return False
        latest = self._bucket
        self.growth.add(latest.last, now - self._since, self.then_s, self.new_s)
        self._since, self.then_s, self.new_s = now, 0.0, 0.0
        new = self.as_would_be()
        limits = byte_limits(new, new.soft, new.hard)
        levels = (limits.soft, limits.hard) if limits else (None, None)
        self.points.append(UsePoint(latest.at, latest.last, new.consumed, latest.capacity, *levels))
        return True

    def known(self, now: float, silent: float) -> bool:
        return self._taken > 0 and now - self._bucket.at <= silent

    def as_recorded(self) -> Volume:
        latest = self._bucket
        levels = latest.soft, latest.hard
        soft, hard = (None if level is None else Limit(LimitType.CONSUMED_BYTES, level) for level in levels)
        return Volume(*self.key, latest.capacity, latest.last, soft, hard)

    def as_would_be(self) -> Volume:
        return Volume(*self.key, self._bucket.capacity, int(self.growth.used), *self._limits)

    @property
    def _bucket(self) -> Bucket:
        return self._buckets[self._taken - 1]


class Growth:
    """The consumption of one volume as it would have been with the new settings."""

    def __init__(self, used: int) -> None:
        self.used = float(used)  # bytes
        self.estimated = False  # whether ``used`` has estimated bytes for a time in which clients were paused then
        self._then = used
        self._gained = self._open_s = 0.0

    def add(self, used: int, seconds: float, then_s: float, new_s: float) -> None:
        """Take the next reading: the recorded bytes, ``seconds`` after the last reading.

        ``then_s`` are the clients' seconds at full share in this time as recorded, ``new_s`` with the new settings.
        """
        more, self._then = used - self._then, used
        if then_s < _LEAST_SHARE * seconds:
            # The recorded growth came from writers that no factor stops: a reassignment, or exempt clients. The bytes
            # of the clients that were paused then are missing, and are estimated.
            missed = self._gained / self._open_s * max(0.0, new_s - then_s) if self._open_s else 0.0
            self.estimated = self.estimated or missed >= 1
            self.used += more + missed
        else:
            self.used += more * (new_s / then_s if more > 0 and new_s != then_s else 1.0)
            kept = exp(-then_s / _MEMORY)
            self._gained, self._open_s = self._gained * kept + max(0, more), self._open_s * kept + then_s
        self.used = max(0.0, self.used)


# ---- clients ----


def replayed_client(client: ClientUse, factors: Sequence[FactorPoint], until: float) -> ReplayedClient:
    """The seconds for which these factors held a client back; ``until`` is the end of the replay."""
    then, new = StateTimes(), StateTimes()
    begins = [point.at for point in factors]
    ends = [*begins[1:], inf]
    # One part for each time: the uses on all brokers.
    parts = [(at, list(uses)) for at, uses in groupby(client.uses, key=lambda use: use.at)]
    for (at, uses), (following, _) in pairwise([*parts, (until, [])]):
        end = min(at + client.width, following)
        last = bisect_right(begins, end)
        if last and factors[last - 1].then <= 0:  # the client was paused at the end, so its demand counts further
            end, last = following, bisect_right(begins, following)
        wanted = sum(inf if use.demand is None else use.demand for use in uses)
        quota = max(use.quota for use in uses)
        for index in range(max(0, bisect_right(begins, at) - 1), last):
            begin, point = max(at, begins[index]), factors[index]
            length = min(end, ends[index]) - begin
            if length > 0:
                for times, factor in ((then, point.then), (new, point.new)):
                    times.add(begin, factor if wanted > quota * factor else 1.0, length)
    rate = sum(use.rate for use in client.uses) / len(parts)
    brokers = tuple(sorted({use.broker for use in client.uses}))
    return ReplayedClient(client.cluster, client.user, client.client, brokers, rate, then, new)


# ---- budgets of storage ----

# Budgets are not played as volumes are: the history has means of ten minutes, and within ten minutes a budget may stop
# its writers and let them go on. So no policy is asked. A replay tells only facts that hold for every policy: for how
# long the bytes were beyond the soft limit and the hard limit, with limits that are computed as in a broker.

#: For each budget's name, the budget then and the new budget, each with its ``budget.soft.share``.
Declared = Mapping[str, tuple[tuple[Budget, float], tuple[Budget, float]]]


def judge_budgets(
    uses: Sequence[BudgetUse], declared: Declared, seconds: float
) -> tuple[list[ReplayedBudget], list[str]]:
    """Judge budgets over ``seconds``: results, those that held writers back longest first, and notes on the others."""
    # The history has only one sum for each budget's name, and no bytes of single topics.
    others = [name for name, each in declared.items() if len({(b.replicas, frozenset(b.topics)) for b, _ in each}) > 1]
    lacking = declared.keys() - others - {use.budget for use in uses}
    found = [_judged(use, *declared[use.budget], seconds) for use in uses if use.budget not in others]
    found.sort(key=lambda budget: (budget.new or budget.then).held_s, reverse=True)
    left_out = {"the history has no bytes of them": lacking, "other topics or replicas counted then": others}
    return found, [
        f"budgets not judged, because {why}: {', '.join(bounded(sorted(names), _MOST_NAMED, 'budgets'))}"
        for why, names in left_out.items()
        if names
    ]


def _judged(use: BudgetUse, then: tuple[Budget, float], new: tuple[Budget, float], seconds: float) -> ReplayedBudget:
    (before, was), (after, would_be) = (_beyond(use, *of) for of in (then, new))
    is_hidden = was.held_s > 0 and (after.soft > before.soft or after.hard > before.hard)
    at, most = max(use.parts, key=lambda part: part[1])
    unknown_s = max(0.0, seconds - use.width * len(use.parts))
    sizes = then[0].bytes, new[0].bytes
    return ReplayedBudget(use.cluster, use.budget, sizes, most, at, unknown_s, was, None if is_hidden else would_be)


def _beyond(use: BudgetUse, budget: Budget, soft_share: float) -> tuple[ByteLimits, BudgetTimes]:
    volume = as_volume(budget, 0, frozenset(), soft_share)
    limits = byte_limits(volume, volume.soft, volume.hard)
    assert limits is not None
    held, used_up = (
        use.width * sum(breaches(used) for _, used in use.parts)
        for breaches in (limits.breaches_soft, limits.breaches_hard)
    )
    return limits, BudgetTimes(held, used_up)
