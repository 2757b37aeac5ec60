"""Which of the two answers: the pipeline's record, or the standby source while no record comes.

``ClusterVolumesSource`` asks at each read. The age of the newest record decides, and whether that record is complete:
a pipeline that is down can't say so.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from quotahost.api import Context


class Answerer(Enum):
    """The one that answers now."""

    RECORD = "the record"
    RECORD_FOR_NOW = "the record, but it is late, so the standby source is built meanwhile"
    STANDBY = "the standby source"
    NOBODY = "the record is older than validity, and no standby source is configured"

    @property
    def needs_standby(self) -> bool:
        """Whether the standby source has to be built and read."""
        return self in (Answerer.RECORD_FOR_NOW, Answerer.STANDBY)


class Failover:
    """Switches to the standby source when records are overdue, and back; logs, counts and shows each switch."""

    def __init__(self, context: Context[object], clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._context, self._clock, self._started = context, clock, clock()
        self._standby: str | None = None
        self._by_standby = False
        self._count(context.name, 0)
        self._show()

    def decide(self, age: float, topic_read: bool, complete: bool, standby: str | None) -> Answerer:
        """Decide who answers now.

        Args:
            age: of the newest record in seconds, infinite if there is none.
            topic_read: whether all that was in the topic at the start has been read, or the topic doesn't exist.
            complete: whether the newest record knows all brokers; only such a record switches back.
            standby: the standby source's name, None if there is to be none.
        """
        validity = self._context.settings.validity.total_seconds()
        overdue = self._silent(age, topic_read, validity)
        # The first record of a new pipeline may leave out brokers, and with them full disks that the standby knows.
        back = age <= validity and complete
        by_standby = standby is not None and (overdue or (self._by_standby and not back))
        if standby != self._standby:
            self._rename(standby)
        if by_standby != self._by_standby:
            self._switch(by_standby)
        if by_standby:
            return Answerer.STANDBY
        if overdue:
            return Answerer.NOBODY
        late = standby is not None and self._silent(age, topic_read, validity / 2)
        return Answerer.RECORD_FOR_NOW if late else Answerer.RECORD

    def _silent(self, age: float, topic_read: bool, seconds: float) -> bool:
        """Whether no record has come for so long. While the topic is still read, the time runs from the start."""
        # Without a record the age is infinite; a topic that was not read yet may still hold a fresh one.
        return age > seconds and (topic_read or self._clock() - self._started > seconds)

    def _switch(self, by_standby: bool) -> None:
        self._by_standby = by_standby
        log, settings = self._context.log, self._context.settings
        if by_standby:
            silence = f"within validity ({settings.validity.total_seconds():g} s)"
            text = "no record of this cluster in %s %s: factor source %s answers"
            log.warning(text, settings.cluster_volumes_topic, silence, self._standby)
        else:
            log.info("factor source %s answers again", self._context.name)
        self._count((self._standby if by_standby else None) or self._context.name, 1)
        self._show()

    def _rename(self, standby: str | None) -> None:
        metrics = self._context.metrics
        if self._standby is not None:
            # A live change may name another standby, and the old name would go on showing that it answers.
            metrics.forget("FactorSource", self._standby)
        self._standby = standby
        if standby is not None:
            metrics.count("FactorSource", standby, "Failures", 0)
            self._count(standby, 0)
        self._show()

    def _show(self) -> None:
        gauge = self._context.metrics.gauge
        gauge("FactorSource", self._context.name, "Answers", float(not self._by_standby))
        if self._standby is not None:
            gauge("FactorSource", self._standby, "Answers", float(self._by_standby))

    def _count(self, name: str, by: int) -> None:
        self._context.metrics.count("FactorSource", name, "Switches", by)
