"""The standby factor source: built when it may be needed, read while it is, and closed when it isn't.

Any factor source can stand by. Building and closing one may block on the network, so each happens on a thread of its
own and the host thread never waits for it. A failure of the standby must not become a failure of ``cluster-volumes``:
the record may still hold. So a failure is counted and logged, and reported as an unknown state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from quotahost.api import Context
from quotahost.api.context import LoadedPlugin
from quotahost.broker.plugins.factor_sources.cluster_volumes.standby_metrics import Counted, StandbyMetrics
from quotahost.model import ClusterVolumes, Factor
from quotahost.model.volumes import as_answer

_RETRY: Final = 5.0  # seconds between tries to build it
_CLOSE_WITHIN: Final = 2.0  # seconds


class StandbyInstance:
    """One standby source from its building to its close, both on a thread of its own."""

    def __init__(self, context: Context[object], name: str, counted: Counted) -> None:
        """Build it; ``context`` is that of ``cluster-volumes``."""
        self._context, self.name = context, name
        self._properties = context.settings.plugin.get(name, {})
        self.metrics = StandbyMetrics(context.metrics, counted)
        self.loaded: LoadedPlugin | None = None  # until it is built
        self.error: BaseException | None = None  # why it can't be built
        self.ready = False  # until it has answered once without waiting for anything
        self._end = threading.Event()
        self.thread = context.start_thread(f"{context.name}-standby", self._run)

    def is_for(self, name: str | None) -> bool:
        """Whether it was built for this name and the ``plugin.NAME.*`` that are in force."""
        return name == self.name and self._properties == self._context.settings.plugin.get(self.name, {})

    def end(self) -> None:
        """Let it close itself, and withdraw its numbers at once."""
        self.metrics.withdraw()
        self._end.set()

    def read(self) -> ClusterVolumes | Factor:
        """The answer of the source, or that it is being built; raises what stopped it from either."""
        if self.error:
            raise self.error
        if self.loaded is None:
            return _being_built(self.name)
        # The host hands a live change to its own plugins only, and the standby is none of them.
        self.loaded.context.settings = self._context.settings
        answer = as_answer(self.loaded.plugin.read(), f"factor source {self.name}")
        if answer is None:
            return ClusterVolumes((), waiting=f"factor source {self.name} doesn't know")
        self.ready = self.ready or isinstance(answer, Factor) or not answer.waiting
        return answer

    def _run(self) -> None:
        try:
            self.loaded = self._context.factor_source(self.name, self.metrics)
        except BaseException as error:  # SystemExit of a plugin is a failure like any other
            self.error = error
            return
        self._end.wait()
        if callable(close := getattr(self.loaded.plugin, "close", None)):
            close()


class Standby:
    """Keeps an instance of ``factor.source.second`` while it is needed."""

    def __init__(self, context: Context[object], clock: Callable[[], float]) -> None:
        """Nothing is built yet. ``clock`` monotonic, in seconds."""
        self._context, self._clock = context, clock
        self._counted: Counted = {}
        self._instance: StandbyInstance | None = None
        self._closing: list[StandbyInstance] = []
        self._try_at = clock()
        self._logged: set[type[BaseException]] = set()

    @property
    def name(self) -> str | None:
        """Its entry point name, None if there is to be none."""
        return self._context.settings.factor_source_second

    @property
    def ready(self) -> bool:
        """Whether it has answered without waiting for anything since it was built."""
        return self._instance is not None and self._instance.ready

    def keep(self, needed: bool) -> None:
        """Build the source if it is needed and isn't there, else close it; build it anew if its properties changed."""
        instance, name = self._instance, self.name
        # The next failover is a new one, whose failures are logged again.
        if not needed:
            self._logged.clear()
        if instance and not (needed and instance.is_for(name)):
            self._end(instance)
        if needed and name and self._instance is None and self._clock() >= self._try_at:
            self._instance = StandbyInstance(self._context, name, self._counted)

    def read(self, answers: bool) -> ClusterVolumes | Factor:
        """The answer of the source; an unknown state if it fails, a waiting one while it is being built.

        ``answers`` if the standby answers now, and not the record.
        """
        instance = self._instance
        if instance is None:
            return self._unknown() if self._logged else _being_built(self.name)
        instance.metrics.answers = answers
        try:
            answer = instance.read()
        except BaseException as error:  # SystemExit of a plugin is a failure like any other
            self._failed(instance, error)
            return self._unknown()
        # "Being built" is an answer as well, and no sign that the source works.
        if self._logged and instance.loaded:
            self._context.log.warning("factor source %s works again", instance.name)
            self._logged.clear()
        return answer

    def close(self) -> None:
        """Close the source and wait for that for up to two seconds; one that hangs is left behind."""
        if self._instance:
            self._end(self._instance)
        for instance in self._closing:
            instance.thread.join(_CLOSE_WITHIN)

    def _failed(self, instance: StandbyInstance, error: BaseException) -> None:
        """Count the failure and log it once for each kind; a source that can't be built is tried again later."""
        self._context.metrics.count("FactorSource", instance.name, "Failures")
        if type(error) not in self._logged:
            self._logged.add(type(error))
            text = "the standby factor source %s fails; when it should answer, fallback.action holds"
            self._context.log.error(text, instance.name, exc_info=error)
        # A source that was built and fails to read is read again at once, like any factor source.
        if instance.error:
            self._end(instance)
            self._try_at = self._clock() + _RETRY

    def _end(self, instance: StandbyInstance) -> None:
        instance.end()
        self._instance = None
        # Those that have ended are dropped, so that going back and forth for months doesn't let the list grow.
        self._closing = [each for each in [*self._closing, instance] if each.thread.is_alive()]

    def _unknown(self) -> ClusterVolumes:
        return ClusterVolumes((), (f"the standby factor source {self.name} fails",))


def _being_built(name: str | None) -> ClusterVolumes:
    return ClusterVolumes((), waiting=f"factor source {name} is being built")
