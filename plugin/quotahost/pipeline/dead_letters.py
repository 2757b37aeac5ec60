"""What is done with each batch of refused records: write them as dead letters, if there can be any."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from quotahost.pipeline.spark.offsets import Offsets, idle, offsets, under_way
from quotahost.pipeline.spark.sinks import write

# TODO(merge) What of its topics one query has read and refused nothing of, so that nobody looks for
#   refusals there again.


log = logging.getLogger("quotahost.pipeline")


class DeadLetters:
    """Takes the refused records, batch by batch; where all was seen to be good, they are not even read.

    To read and judge each record again, for letters that hardly ever are, took as much time as the volumes do.
    """

    NAME = "refused"

    def __init__(
        self, spark: SparkSession, topic: str, client: Mapping[str, str], sifted: Collection[Sifted]
    ) -> None:
        """``spark`` runs the query; ``client`` is Kafka's, in Java's names; ``sifted``: what other queries know."""
        # A batch's own session is a copy, which doesn't know the query.
        self._streams, self._topic, self._sifted = spark.streams, topic, sifted
        self._client = client
        self._told_unable = False

    def __call__(self, dead_letters: DataFrame, batch: int) -> None:
        """A batch of ``sql/refused.sql``, for ``foreachBatch``."""
        if not self._none():
            write(dead_letters, self._topic, self._client)

    def _none(self) -> bool:
        try:
            query = next(each for each in self._streams.active if each.name == self.NAME)
            since, until = under_way(query)
        except (Py4JError, StopIteration) as problem:
            if not self._told_unable:
                log.info("it isn't told what a batch reads, refusals are looked for in all: %s", problem)
            self._told_unable = True
            return False
        return all(each.clean(since, until) for each in self._sifted)


_COUNT: Final = "refused"


_PATIENCE: Final = 30.0  # seconds without news of a query that is to read on


def counted(parsed: DataFrame, error: str = "error") -> DataFrame:
    """The same rows; a query's progress tells in how many of a batch ``error``, an SQL expression, is not null."""
    return parsed.observe(_COUNT, expr(f"count({error})").alias(_COUNT))


def refused(progress: Mapping[str, Any]) -> int | None:
    """How many a batch had of those that are ``counted``; None where it doesn't tell."""
    told = progress["observedMetrics"].get(_COUNT)
    return None if told is None else int(told[_COUNT])


class Sifted:
    """Of each partition the last stretch in which a query has seen every record and refused none.

    What isn't known counts as refused: the stretch begins anew where the query's batches don't follow each other, or
    don't tell.
    """

    def __init__(self, *topics: str, patience: float = _PATIENCE) -> None:
        """Nothing of these topics is read yet. ``patience``: seconds."""
        self._topics, self._patience = topics, patience
        self._news = threading.Condition()
        self._begin: dict[tuple[str, str], int] = {}
        self._end: dict[tuple[str, str], int] = {}
        self._last: tuple[object, ...] = ()
        self._closed = False

    def told(self, progress: Mapping[str, Any]) -> None:
        """A batch of the query whose rows were ``counted``, as Spark tells it, in their order; maybe again."""
        if idle(progress):
            self._note(progress, "endOffset", clean=True)  # it tells where it stands
            return
        batch = progress["runId"], progress["batchId"]
        if batch != self._last:
            self._last = batch
            self._note(progress, "startOffset", clean=refused(progress) == 0)

    def _note(self, progress: Mapping[str, Any], start: str, clean: bool) -> None:
        with self._news:
            known = dict(self._begin), dict(self._end)
            for source in progress["sources"]:
                self._read(offsets(source[start]), offsets(source["endOffset"]), clean)
            if known != (self._begin, self._end):
                self._news.notify_all()

    def _read(self, start: Offsets, end: Offsets, clean: bool) -> None:
        for at, until in end.items():
            since = start.get(at, 0)
            if not clean:
                self._begin[at] = until
            elif since != self._end.get(at):
                self._begin[at] = since
            self._end[at] = until

    def clean(self, since: Offsets, until: Offsets) -> bool:
        """Whether between these nothing of its topics is refused; waits while the query is yet to read a part of it."""
        ends = {at: offset for at, offset in until.items() if at[0] in self._topics}
        with self._news:
            while not self._closed and all(since.get(at, 0) >= self._begin.get(at, 0) for at in ends):
                if all(self._end.get(at, 0) >= offset for at, offset in ends.items()):
                    return True
                if not self._news.wait(self._patience):
                    break
        return False

    def close(self) -> None:
        """Nobody needs to wait any more."""
        with self._news:
            self._closed = True
            self._news.notify_all()
