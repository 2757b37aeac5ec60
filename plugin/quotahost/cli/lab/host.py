"""The lab runs a broker's host without a broker: the real policy of an operator's settings, on a simulated clock.

``world`` runs the policy in the host's own ``FactorLoop``, which also decides what applies while anything is unknown.
A replay decides only on known volumes, so its ``Host`` has only evaluation, pauses, the factor in force and the tap.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, Final, cast

from quotahost.api import Context, QuotaPolicy, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.discovery import PluginError, construct, load, plugin_settings
from quotahost.broker.host.factor import FactorInForce
from quotahost.broker.host.messages import Scoped
from quotahost.broker.host.plugins import Guard
from quotahost.broker.host.protocol import Shim
from quotahost.broker.host.volume_evaluation import Judged, VolumeEvaluation
from quotahost.model import ClusterVolumes, Factor, QuotaType, Volume
from quotahost.model.volumes import Affected, SlowedBudget
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker
from quotahost.throttling import Tap

log = logging.getLogger("quotahost.lab")
_DEFAULT: Final = "limits"
Key = tuple[str, str]  # a broker and a volume
Put = Callable[[float, Affected | None], None]


class SmallShim(FakeBroker):
    """The part of ``quotahost.broker.host.protocol.Shim`` that a host's decisions need; it keeps all metrics."""

    def __init__(self, fence: bool = True, put: Put = lambda value, affected: None) -> None:
        """The shim calls ``put`` with each new factor and the topics whose writers the factor is for."""
        super().__init__()
        self._fence, self._put = fence, put

    @property
    def failed(self) -> str:
        """The name of a plugin that has failed; "" if none has failed."""
        return next((name for type, name, _ in self.shown if type == "Plugin"), "")

    def broker(self) -> dict[str, str]:
        """Return no node id: otherwise the metrics of the broker's own volumes would cost as much as all the rest."""
        return {}

    def fence(self) -> bool:
        return self._fence

    def restarted(self) -> bool:
        return False

    def left(self, type: str) -> dict[str, dict[str, float]]:
        return {}

    def factor(self) -> Scoped:
        return Scoped(Factor(1.0))  # a new broker begins open

    def set_factor(self, new: Scoped) -> None:
        self._put(new.factor.value, new.affected)

    def set_budgets(self, budgets: Sequence[SlowedBudget]) -> None:
        """Do nothing: ``simulate`` plays a budget of storage as a volume."""

    def set_factors_of_types(self, factors: Mapping[QuotaType, Factor]) -> None:
        """Do nothing: the lab plays only disks, and no broker's busy threads."""


def policy_of(settings: Settings, node_id: int, clock: Callable[[], float]) -> LoadedPlugin[Any]:
    """Build the policy of these settings, ``limits`` if they name none. ``clock`` returns seconds.

    Raises PluginError if it can't be built, or depends on time but takes no clock; SettingsError for wrong properties.
    """
    name = settings.policy or _DEFAULT
    entry, takes_clock = _entry(name)
    broker = FakeBroker()
    section = plugin_settings(Role.POLICY, name, settings, entry)
    context = Context(name, section, settings, node_id, log, broker=broker, metrics=broker)
    return construct(Role.POLICY, partial(entry, clock=clock) if takes_clock else entry, context)


@lru_cache
def _entry(name: str) -> tuple[Any, bool]:
    """The class or function of the policy's entry point, and whether it takes an argument ``clock``."""
    entry = load(Role.POLICY, name)
    takes_clock = "clock" in inspect.signature(entry).parameters
    if getattr(entry, "depends_on_time", False) and not takes_clock:
        without = "depends on time but has no argument clock, so it can't run on simulated time; add one"
        raise PluginError(Role.POLICY, name, without)
    return entry, takes_clock


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the host's lines out of the log: they report changes of state, but no real broker changes its state."""
    quotahost = logging.getLogger("quotahost")
    before = quotahost.level
    quotahost.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        quotahost.setLevel(before)


class Host:
    """Decides on given volumes as the host of one broker does, and moves the limits to the factor by the tap."""

    factor: float  # the latest decision, 0.0 to 1.0; it has no effect while the factor is in shadow

    def __init__(self, settings: Settings, windows: tuple[int, int], clock: Callable[[], float]) -> None:
        self._settings, self._clock = settings, clock
        self.shim = SmallShim()
        self._factors: dict[Key, float] = {}
        shim = cast("Shim", self.shim)
        limits: Any = SimpleNamespace(show=self._show, show_budgets=lambda judged: None)
        self._evaluation = VolumeEvaluation(Guard(shim, clock), clock, limits)
        self._in_force = FactorInForce(shim)
        policy = policy_of(settings, 0, clock)
        self._policy = (policy.context.name, cast("QuotaPolicy", policy.plugin))
        self._tap = Tap(*windows, max_mute_ms=settings.max_mute // timedelta(milliseconds=1))
        self._share = self.factor = self._enforced = 1.0

    def know(self, volumes: Iterable[Volume]) -> None:
        """Take the volumes for the next decisions. If there is no factor source, the host ignores all volumes."""
        self._volumes = ClusterVolumes(tuple(volumes) if self._settings.factor_source else ())

    def decide(self) -> None:
        share = self._settings.pause_resume_free_share
        evaluated, _ = self._evaluation.evaluate(self._volumes, self._policy, share, self._enforced)
        self._in_force.replace(Scoped(evaluated.factor))
        self.factor = self._in_force.last.factor.value
        self._enforced = 1.0 if self._settings.shadow.factor else self.factor
        of_producers = self._enforced if QuotaType.PRODUCE in self._settings.factor_quota_types else 1.0
        held = of_producers <= 0
        self._tap.step(of_producers, held, int(self._clock() * 1000))
        self._share = 0.0 if held else self._tap.value

    def _show(self, policy: tuple[str, QuotaPolicy] | None, judged: Sequence[Judged]) -> None:
        """Keep the factors of all volumes. It replaces ``VolumeLimits``, which shows them as a broker's metrics."""
        self._factors = {(volume.broker, volume.name): factor for volume, factor, _ in judged}

    def factor_of(self, volume: Key) -> float:
        """The factor of one volume; 1 while it isn't known."""
        return self._factors.get(volume, 1.0)

    def share_of(self, volume: Key) -> float:
        """The share of their quotas that the writers to this volume get, as far as the history can tell."""
        by_topics = self._settings.factor_scope == "topics"
        return 1.0 if by_topics and self.factor_of(volume) >= 1 else self._share
