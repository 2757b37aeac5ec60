"""A query whose plan is made once: a stream's batches differ in their rows only.

To understand and optimize the roll-up again takes 90 ms of each batch; with 100 brokers, of 370 in all, as measured.
Spark's public interface can't give a finished plan other rows, so this goes by Spark's own classes. Where they aren't
those of Spark 4.2, each batch is understood anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

log = logging.getLogger("quotahost.pipeline")

_ROWS: Final = "LogicalRDD"  # Spark's name for rows that are there already, as foreachBatch gets them


class PlanCache:
    """Of the last query that was built, the plan, to be laid over the next batch's rows."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self._key: tuple[Hashable, ...] | None = None
        self._rows: Any = None
        self._steps: list[Any] = []
        self._able = True

    def over(self, batch: DataFrame, build: Callable[[DataFrame], DataFrame], *key: Hashable) -> DataFrame:
        """What ``build(batch)`` gives.

        Args:
            batch: as ``foreachBatch`` gives it.
            build: the query.
            key: all that the query depends on besides the batch; when one changes, it is built anew.
        """
        if self._able:
            try:
                return self._again(batch, build, key)
            except (Py4JError, PySparkException) as problem:
                self._unable(problem)  # if it was the query's own, that is told anew
        return build(batch)

    def _again(
        self, batch: DataFrame, build: Callable[[DataFrame], DataFrame], key: tuple[Hashable, ...]
    ) -> DataFrame:
        rows = batch._jdf.queryExecution().analyzed()
        # Spark's numbers of the columns are the same as long as a stream runs.
        key = (rows.output().toString(), *key)
        if key == self._key:
            return self._laid(batch, rows)
        made = build(batch)
        self._keep(made._jdf.queryExecution().optimizedPlan())
        self._key = key
        return made

    def _keep(self, plan: Any) -> None:
        self._steps = []
        while plan.children().size() == 1:
            self._steps.insert(0, plan)
            plan = plan.children().head()
        self._rows = plan
        if plan.nodeName() != _ROWS:
            self._unable(f"{plan.nodeName()} instead of {_ROWS}")

    def _unable(self, why: object) -> None:
        self._able = False
        log.info("this Spark's plans can't be used again, each batch is understood anew: %s", why)

    def _laid(self, batch: DataFrame, rows: Any) -> DataFrame:
        jvm: Any = batch.sparkSession._jvm
        session, none = batch._jdf.sparkSession(), getattr(jvm, "scala.Option").empty()
        # The kept plan's columns have its own numbers, the new rows come in the same order.
        kept, at, sorted_by = self._rows, rows.outputPartitioning(), self._rows.outputOrdering()
        plan = kept.copy(kept.output(), rows.rdd(), at, sorted_by, False, none, session, none, none)
        sequence = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toSeq
        for step in self._steps:
            plan = step.withNewChildren(sequence([plan]))
        return ClassicDataFrame(
            getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(session, plan), batch.sparkSession
        )
