"""Whose turn it is to answer: the cluster's records, or the second factor source while none come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quotahost.api import Context


@dataclass(frozen=True, slots=True)
class Heard:
    """What has been heard of the records.

    Attributes:
        age: of the newest record in seconds, None if there is none.
        answered: the topic has been read, or there is none.
        patient: the newest record leaves out brokers that are not missed yet.
    """

    age: float | None
    answered: bool
    patient: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether the records are overdue, whether the second source answers, and whether it must be there for that."""

    overdue: bool
    by_second: bool
    second_wanted: bool


class Turns:
    """Goes to the second source when records are overdue, and back; says so, counts it and shows who answers.

    Back only to a record that leaves nobody out: a pipeline that has just started may not have heard of all brokers.
    """

    def __init__(self, context: Context[object], clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._context, self._clock, self._started = context, clock, clock()
        self._second: str | None = None
        self._by_second = False
        self._count(context.name, 0)
        self._show()

    def now(self, heard: Heard, second: str | None) -> Turn:
        """Whose turn it is; ``second`` is the second source's name, None if there is to be none."""
        validity = self._context.settings.validity.total_seconds()
        overdue = self._silent(heard, validity)
        fresh = heard.age is not None and heard.age <= validity
        back = fresh and not heard.patient
        by_second = second is not None and (overdue or (self._by_second and not back))
        if second != self._second:
            self._rename(second)
        if by_second != self._by_second:
            self._switch(by_second, heard)
        wanted = second is not None and (by_second or self._silent(heard, validity / 2))
        return Turn(overdue, by_second, wanted)

    def _silent(self, heard: Heard, seconds: float) -> bool:
        """Whether no record has come for so long, or none is there; while the topic is read, time is given."""
        if heard.age is not None and heard.age <= seconds:
            return False
        return heard.answered or self._clock() - self._started > seconds

    def _switch(self, by_second: bool, heard: Heard) -> None:
        self._by_second = by_second
        log, topic = self._context.log, self._context.settings.cluster_volumes_topic
        if by_second:
            silence = f"for validity ({self._context.settings.validity.total_seconds():g} s)"
            since = "ever" if heard.age is None else silence
            log.warning(
                "no record of this cluster in %s %s: factor source %s answers", topic, since, self._second
            )
        else:
            log.info("factor source %s answers again", self._context.name)
        self._count((self._second if by_second else None) or self._context.name, 1)
        self._show()

    def _rename(self, second: str | None) -> None:
        if self._second is not None:
            self._context.metrics.forget("FactorSource", self._second)
        self._second = second
        if second is not None:
            self._context.metrics.count("FactorSource", second, "Failures", 0)
            self._count(second, 0)
        self._show()

    def _show(self) -> None:
        gauge = self._context.metrics.gauge
        gauge("FactorSource", self._context.name, "Answers", float(not self._by_second))
        if self._second is not None:
            gauge("FactorSource", self._second, "Answers", float(self._by_second))

    def _count(self, name: str, by: int) -> None:
        self._context.metrics.count("FactorSource", name, "Switches", by)
