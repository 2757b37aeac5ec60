"""What of its topics one query has read and refused nothing of, so that nobody looks for refusals there again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from quotahost.pipeline.offsets import Offsets, idle, offsets

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
