"""The registered brokers of the cluster, as DescribeCluster lists them (KIP-1073 adds the fenced ones).

With them a factor source distinguishes a broker that is missing from one that was taken out of the cluster, and the
supplier ``cluster-quota`` divides quotas by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quotahost.api import Context
from quotahost.kafka.cluster_poll import ClusterPoll

_PERIOD: Final = 5.0  # seconds
_OF_VALIDITY: Final = 10  # a broker that stops must be seen as fenced long before its snapshot is stale


class RegisteredBrokers(ClusterPoll):
    """Hands on the registered brokers whenever the cluster answers; ``answered`` says whether it ever did."""

    def __init__(self, context: Context[object], register: Callable[[Mapping[str, bool]], None]) -> None:
        """``register`` is called on the poll's thread with the id of each broker and whether it is fenced."""

        def ask() -> None:
            register({str(broker): fenced for broker, fenced in context.broker.registered().items()})

        def period() -> float:
            return min(_PERIOD, context.settings.validity.total_seconds() / _OF_VALIDITY)

        failure = "the cluster doesn't say which brokers are registered; the last answer holds: %s"
        super().__init__(context, f"{context.name}-registered-brokers", ask, period, failure)
