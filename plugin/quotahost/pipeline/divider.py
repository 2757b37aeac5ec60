"""What is done with each batch of usage: divide the cluster quotas, publish the shares."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame

from quotahost.pipeline.rivals import Rivals
from quotahost.pipeline.shares import arguments, shares
from quotahost.pipeline.sink import bring_forward, write

_MS: Final = timedelta(milliseconds=1)


class Divider:
    """Takes the newest usage of all brokers and publishes a record of shares for each broker.

    While a pipeline that was launched later publishes, nothing is: two would give away each quota twice.
    """

    def __init__(self, topic: str, client: Mapping[str, str], validity: timedelta, rivals: Rivals) -> None:
        """``client`` is Kafka's, in Java's names; usage older than ``validity`` counts no more."""
        self._topic, self._validity, self._rivals = topic, validity, rivals
        self._client = client

    def __call__(self, usage: DataFrame, batch: int) -> None:
        """A batch of ``sql/usage.sql``, for ``foreachBatch``."""
        if self._rivals.stands_by():
            bring_forward(usage)
            return
        now = time.time_ns() // 1_000_000
        found = shares(usage.coalesce(1), arguments(now, self._validity // _MS, self._rivals.run, batch))
        write(found, self._topic, self._client)
