"""What is done with each batch of refused records: write them as dead letters, if there can be any."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from quotahost.pipeline.offsets import under_way
from quotahost.pipeline.sifted import Sifted
from quotahost.pipeline.sink import write

log = logging.getLogger("quotahost.pipeline")


class Letters:
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

    def __call__(self, letters: DataFrame, batch: int) -> None:
        """A batch of ``sql/refused.sql``, for ``foreachBatch``."""
        if not self._none():
            write(letters, self._topic, self._client)

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
