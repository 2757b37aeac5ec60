"""The factor source that answers in the place of another one, built while it may be needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from quotahost.api import Context, Metrics
from quotahost.api.context import LoadedPlugin
from quotahost.model import ClusterVolumes, Factor
from quotahost.plugins.factor_sources.cluster_volumes.standby_metrics import StandbyMetrics

# TODO(merge) The second factor source from its building to its close, both on a thread of their own.


_RETRY: Final = 5.0  # seconds between tries to build it


class Second:
    """``factor.source.second``: asked for, it is there some moments later; its failure is news, not an exception."""

    def __init__(self, context: Context[object], clock: Callable[[], float]) -> None:
        """Nothing is built yet. ``clock`` monotonic, in seconds."""
        self._context, self._clock = context, clock
        self._metrics = StandbyMetrics(context.metrics)
        self._life: SecondLife | None = None
        self._ending: list[SecondLife] = []
        self._try_at = clock()
        self._told: set[type[BaseException]] = set()

    @property
    def name(self) -> str | None:
        """Its entry point name, None if there is to be none."""
        name: str | None = self._context.settings.factor_source_second
        return name

    @property
    def ready(self) -> bool:
        """Whether it has answered without waiting for anything since it was built."""
        return self._life is not None and self._life.ready

    def want(self, wanted: bool) -> None:
        """Build it, if it isn't there; or close it. Neither is waited for."""
        life, name = self._life, self.name
        if not wanted:
            self._told.clear()
        if life and (not wanted or life.name != name or life.own != self._own(name)):
            self._end(life)
        if wanted and name and self._life is None and self._clock() >= self._try_at:
            self._life = SecondLife(self._context, name, self._metrics.life())

    def read(self, answers: bool) -> ClusterVolumes | Factor:
        """What it answers; that it is waited for, or that it fails. ``answers``: what it says is what holds."""
        self._metrics.answers = answers
        life = self._life
        if life is None:
            return ClusterVolumes((), (self._fails(self.name),)) if self._told else _waits(self.name)
        try:
            told = self._ask(life)
        except BaseException as error:  # a plugin's SystemExit is its failure
            self._failed(life, error)
            return ClusterVolumes((), (self._fails(life.name),))
        if self._told and life.built:
            self._context.log.warning("factor source %s works again", life.name)
            self._told.clear()
        return told

    def close(self) -> None:
        """Close it and wait for that."""
        if self._life:
            self._end(self._life)
        for life in self._ending:
            life.join()

    def _own(self, name: str | None) -> Any:
        return self._context.settings.plugin.get(name or "", {})

    def _ask(self, life: SecondLife) -> ClusterVolumes | Factor:
        if life.error:
            raise life.error
        if life.built is None:
            return _waits(life.name)
        life.built.context.settings = self._context.settings
        told = life.built.plugin.read()
        if told is None:
            return ClusterVolumes((), waiting=f"factor source {life.name} doesn't know")
        if not isinstance(told, ClusterVolumes | Factor):
            raise TypeError(f"a factor source must answer ClusterVolumes, a Factor or None, not {told!r}")
        life.ready = life.ready or isinstance(told, Factor) or not told.waiting
        return told

    def _failed(self, life: SecondLife, error: BaseException) -> None:
        """Count it, and say it once for each kind until it works; what can't be built is tried again later."""
        self._context.metrics.count("FactorSource", life.name, "Failures")
        if type(error) not in self._told:
            self._told.add(type(error))
            text = "%s; when it should answer, fallback.action holds"
            self._context.log.error(text, self._fails(life.name), exc_info=error)
        if life.error:
            self._end(life)
            self._try_at = self._clock() + _RETRY

    def _end(self, life: SecondLife) -> None:
        self._metrics.withdraw()
        life.end()
        self._life = None
        self._ending = [each for each in [*self._ending, life] if each.running]

    @staticmethod
    def _fails(name: str | None) -> str:
        return f"factor source {name}, the second, fails"


def _waits(name: str | None) -> ClusterVolumes:
    return ClusterVolumes((), waiting=f"factor source {name} is being built")


_CLOSE_WITHIN: Final = 2.0  # seconds


class SecondLife:
    """Builds the source at once, without holding whoever asks for it.

    Attributes:
        name: its entry point name.
        own: its ``plugin.NAME.*``, by which it was built.
        built: the source, once it is there.
        error: why it can't be built.
        ready: whether it has answered without waiting.
    """

    def __init__(self, context: Context[object], name: str, metrics: Metrics) -> None:
        """``context`` is the first source's."""
        self._context, self.name, self._metrics = context, name, metrics
        self.own = context.settings.plugin.get(name or "", {})
        self.built: LoadedPlugin | None = None
        self.error: BaseException | None = None
        self.ready = False
        self._stop = threading.Event()
        self._thread = context.start_thread(f"{context.name}-standby", self._run)

    def end(self) -> None:
        """Let it close itself."""
        self._stop.set()

    @property
    def running(self) -> bool:
        """Whether its thread has not ended yet."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait two seconds at most until it has; one that hangs is left behind."""
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        try:
            self.built = self._context.factor_source(self.name, self._metrics)
        except BaseException as error:  # sys.exit in a plugin is its failure
            self.error = error
            return
        self._stop.wait()
        if callable(close := getattr(self.built.plugin, "close", None)):
            close()
