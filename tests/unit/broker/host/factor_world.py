"""A factor loop with a source and a policy that a test controls."""

from types import SimpleNamespace
from typing import Any

from quotahost.api import Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.factor import FactorLoop, PauseMemory
from quotahost.broker.host.messages import Scoped
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.model import ClusterVolumes, Factor, QuotaType, Volume
from tests.fakes.plugin_context import Clock, context, settings
from tests.fakes.shim import FakeShim

VALIDITY, GRACE = 60, 30
TIMES = {"validity": "60s", "startup__grace": "30s", "factor__interval": "1s"}
FULL = Volume("1", "/full", 100, 100)
HALF = Volume("2", "/half", 100, 50)
EMPTY = Volume("3", "/empty", 100, 0)


class Policy:
    """Returns the free share of a volume, and raises for the volumes named in ``fails``."""

    def __init__(self) -> None:
        self.fails: set[str] = set()
        self.asked = 0

    def quota_factor(self, volume: Volume) -> float:
        self.asked += 1
        if volume.name in self.fails:
            raise RuntimeError("no idea")
        return 1 - volume.consumed / volume.capacity


class World:
    """A factor loop whose source returns what a test sets, and a clock that each step advances by a second."""

    def __init__(
        self, fence: bool = False, before: Scoped | None = None, memory: PauseMemory | None = None,
        policy: Any = None, shim: Any = None, **given: str,
    ) -> None:  # fmt: skip
        """``before`` is the factor that the previous host has left; None at a broker's start."""
        self.clock = Clock()
        last = before or Scoped(Factor(1.0))
        self.shim = shim or FakeShim(has_fence=fence, last=last, second_life=before is not None)
        self.memory = memory or PauseMemory([])
        self.loop = FactorLoop(self.shim, Guard(self.shim), self.clock, self.memory)
        self.settings = settings(factor__source="mine", **TIMES | given)
        self.policy: Any = policy or Policy()
        self.answer: Any = None
        self.has_source = True
        self.typed: dict[str, Any] = {}

    def read(self) -> Any:
        return self.answer() if callable(self.answer) else self.answer

    def step(self, answer: Any = ..., seconds: float = 1) -> float:
        """The factor in force after the source has returned ``answer`` for ``seconds``."""
        if answer is not ...:
            self.answer = answer
        roles: list[tuple[Role, Any]] = [(Role.FACTOR_SOURCE, self)] if self.has_source else []
        plugins = PluginSet(
            [LoadedPlugin(role, plugin, context()) for role, plugin in [*roles, (Role.POLICY, self.policy)]]
            + [LoadedPlugin(Role.FACTOR_SOURCE, plugin, context(name=name)) for name, plugin in self.typed.items()]
        )
        for _ in range(int(seconds)):
            self.clock.now += 1
            self.loop.step(plugins, self.settings)
        return self.factor

    @property
    def factor(self) -> float:
        return self.shim.last.factor.value

    @property
    def cause(self) -> str:
        return self.shim.last.factor.cause

    def number(self, attribute: str) -> float:
        return self.shim.shown["Factor", "", attribute]

    def shown(self, type: str) -> dict[str, dict[str, float]]:
        """The metrics of this type, by name and attribute."""
        found: dict[str, dict[str, float]] = {}
        for (kind, name, attribute), value in self.shim.shown.items():
            if kind == type:
                found.setdefault(name, {})[attribute] = value
        return found

    def causes(self) -> dict[str, float]:
        return {name: numbers["Factor"] for name, numbers in self.shown("Cause").items()}


def cluster(*volumes: Volume, unknown: tuple[str, ...] = (), waiting: str = "") -> ClusterVolumes:
    return ClusterVolumes(volumes, unknown, waiting)


def typed(answer: Any, *quota_types: QuotaType) -> Any:
    """A source for single quota types that returns this answer; a function is called for the answer."""
    return SimpleNamespace(read=answer if callable(answer) else lambda: answer, quota_types=quota_types)
