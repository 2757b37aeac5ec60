"""What one broker's host decides: the real policy, the real judgement, and the tap, on a clock that is set.

The shim is a small one, as in the simulator. A broker whose factor source is ``local`` has one of its own; the others
of a cluster decide alike, so one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

from quotahost.api import QuotaFactorSource, QuotaPolicy
from quotahost.broker.host.factor import FactorInForce
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.judgement import Judge
from quotahost.broker.host.scope import Scoped
from quotahost.broker.host.shim import Shim
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.model.affected import Affected
from quotahost.settings.broker import Settings
from quotahost.simulation.policies import policy
from quotahost.throttling import Tap

Key = tuple[str, str]  # a broker and a volume


class Quiet:
    """What the host needs of its shim here; a policy that fails is remembered."""

    def __init__(self) -> None:
        self.failed = False

    def fence(self) -> bool:
        """A PAUSE is held."""
        return True

    def factor(self) -> Factor:
        """A new broker begins open."""
        return Factor(1.0)

    def set_factor(self, value: float, cause: str, affected: Affected | None = None, full: bool = False) -> None:
        """``FactorInForce`` knows it."""

    def plugin_failed(self, name: str) -> None:
        """The policy raised."""
        self.failed = True

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Nobody looks."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Nobody looks."""

    def forget(self, type: str, name: str) -> None:
        """Nobody looks."""


class Factors:
    """The factor of each volume, as it was judged last (stands for ``VolumeLimits``)."""

    broker: Final = None

    def __init__(self) -> None:
        self.of: dict[Key, float] = {}

    def show(self, policy: tuple[str, QuotaPolicy] | None, judged: Sequence[tuple[Volume, float]]) -> None:
        """Keep them."""
        self.of = {(volume.broker, volume.name): factor for volume, factor in judged}


class _Known:
    """A factor source that says what it was told."""

    def __init__(self) -> None:
        self.answer = ClusterVolumes(())

    def read(self) -> ClusterVolumes:
        return self.answer


class Decider:
    """One factor, and how far limits follow it.

    Attributes:
        factor: decided on last, 0.0 to 1.0; of no effect where the factor is in shadow.
        share: by which all limits are multiplied now; 0 in a PAUSE.
        failed: whether the policy has failed for a volume.
    """

    def __init__(self, settings: Settings, windows: tuple[int, int], clock: Callable[[], float]) -> None:
        """``windows`` are ``quota.window.num`` and the length of one in ms; ``clock`` in seconds.

        Raises:
            PluginError: the policy can't be had.
            SettingsError: one of its properties is wrong.
        """
        self._settings, self._clock, self._shim = settings, clock, Quiet()
        shim = cast("Shim", self._shim)
        guard = Guard(shim, clock)
        self._factors, self._known = Factors(), _Known()
        self._judge, self._in_force = Judge(guard, self._factors, clock), FactorInForce(shim, clock)
        loaded = policy(settings, 0, clock)
        self._policy = (loaded.context.name, cast("QuotaPolicy", loaded.plugin))
        self._source = ("history", cast("QuotaFactorSource", self._known))
        self._tap = Tap(*windows, max_mute_ms=int(settings.max_mute.total_seconds() * 1000))
        self._without = settings.in_shadow.factor or not settings.factor_source
        self._by_topics = settings.factor_scope == "topics"
        self.factor, self.share = 1.0, 1.0

    @property
    def failed(self) -> bool:
        """Whether the policy has failed."""
        return self._shim.failed

    def know(self, volumes: tuple[Volume, ...]) -> None:
        """These are the newest readings."""
        self._known.answer = ClusterVolumes(volumes)

    def step(self) -> None:
        """Decide anew, and let the limits follow."""
        in_force = 1.0 if self._without else self.factor
        judgement = self._judge.judge(self._source, self._policy, self._settings, False, in_force)
        self._in_force.replace(Scoped(judgement.factor))
        self.factor = self._in_force.value if self._settings.factor_source else 1.0
        effective = 1.0 if self._without else self.factor
        held = effective <= 0
        self._tap.step(effective, held, int(self._clock() * 1000))
        self.share = 0.0 if held else self._tap.value

    def factor_of(self, volume: Key) -> float:
        """The factor of one volume; 1 while it isn't known."""
        return self._factors.of.get(volume, 1.0) if self._settings.factor_source else 1.0

    def share_of(self, volume: Key) -> float:
        """By what the limits of those who write to it are multiplied, as far as the history can tell."""
        return 1.0 if self._by_topics and self.factor_of(volume) >= 1 else self.share
