"""Caches the optimized plan of the last query and reuses it for the next batch, whose rows alone differ.

It is needed: of 10,000 brokers a snapshot is to be published within 500 ms by the median (docs/benchmarks.md). Without
it a batch takes 432 ms instead of 367 ms, and the median is 511 ms instead of 436 ms.

Spark's public interface can't give a finished plan other rows, so this module uses what is Spark's own, of Spark 4.2:

- PySpark's ``DataFrame._jdf`` and ``SparkSession._jvm``, and ``pyspark.sql.classic.dataframe``;
- ``queryExecution()`` of a Dataset, its plans, and their ``children``, ``output`` and ``withNewChildren``;
- ``LogicalRDD.copy``, for the rows of a batch, ``Dataset.ofRows``, and ``PythonUtils.toSeq``.

Where one of them is gone or has another form, the log says so once and Spark plans each batch's query anew: the records
are the same, later by the times above. A test takes the classes away. The publisher of the volumes uses this module.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from quotahost.pipeline import log

_ROWS: Final = "LogicalRDD"  # Spark's name for rows that are computed already, as foreachBatch gets them


class PlanCache:
    """Keeps the plan of one query; whatever fails in that, each batch gets the query's own answer."""

    def __init__(self) -> None:
        self._key: tuple[Hashable, ...] | None = None
        self._rows: Any = None  # the leaf of the plan, which stands for the rows of a batch
        self._steps: list[Any] = []  # the plan's other nodes, from the leaf's parent to the root
        self._usable = True

    def over(self, batch: DataFrame, build: Callable[[DataFrame], DataFrame], *key: Hashable) -> DataFrame:
        """The same rows as ``build(batch)``, of a batch as ``foreachBatch`` gets it.

        ``key`` is everything on which the query depends besides the batch; when an item changes, it is built anew.
        """
        if self._usable:
            try:
                rows = batch._jdf.queryExecution().analyzed()
                # Spark numbers the columns once for each run of a stream.
                columns_and_key = (rows.output().toString(), *key)
                if columns_and_key == self._key:
                    return self._over_kept_plan(batch, rows)
                built = build(batch)
                self._keep(built._jdf.queryExecution().optimizedPlan())
                self._key = columns_and_key
                return built
            # AttributeError: a private part of PySpark's is gone; TypeError: a Java class isn't found.
            except (Py4JError, PySparkException, AttributeError, TypeError) as problem:
                self._give_up(problem)  # an error of the query itself is raised again below
        return build(batch)

    def _keep(self, plan: Any) -> None:
        self._steps = []
        # The roll-up reads its input once, so the plan is a chain that ends at the batch's rows.
        while plan.children().size() == 1:
            self._steps.insert(0, plan)
            plan = plan.children().head()
        self._rows = plan
        if plan.nodeName() != _ROWS:
            self._give_up(f"{plan.nodeName()} instead of {_ROWS}")

    def _give_up(self, reason: object) -> None:
        self._usable = False
        log.info("this Spark's plans can't be used again, each batch is planned anew: %s", reason)

    def _over_kept_plan(self, batch: DataFrame, rows: Any) -> DataFrame:
        jvm: Any = batch.sparkSession._jvm
        session, none = batch._jdf.sparkSession(), getattr(jvm, "scala.Option").empty()
        # The kept plan's columns have numbers of their own; the new rows have their columns in the same order.
        kept, at, sorted_by = self._rows, rows.outputPartitioning(), self._rows.outputOrdering()
        # All arguments are given, as Py4J knows none of Scala's defaults.
        plan = kept.copy(kept.output(), rows.rdd(), at, sorted_by, False, none, session, none, none)
        sequence = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toSeq
        for step in self._steps:
            plan = step.withNewChildren(sequence([plan]))
        return ClassicDataFrame(
            getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(session, plan), batch.sparkSession
        )
