"""Whether brokers enforce what is declared, as far as a client may see it."""

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from quotahost.cli.quotas.client_quotas import not_enforced
from quotahost.cli.quotas.plan import CLUSTER


class Cluster:
    """A connection to a cluster of one broker, which answers so when it is asked for its configuration."""

    def __init__(self, error_code: int) -> None:
        self._error_code = error_code

    def brokers(self) -> list[int]:
        return [1]

    def ask(self, request: Any, node: int | None = None) -> Any:
        return Answer(results=[Answer(error_code=self._error_code, configs=[])])


@pytest.mark.parametrize(
    ("error_code", "told"),
    [
        (0, "broker 1: cluster-wide quotas are not enforced; add cluster-quota to client.quota.callback.supplier"),
        (31, "broker 1: whether it enforces what is set here can't be seen; give the principal DescribeConfigs on the"),
    ],
)
def test_a_broker_that_may_not_be_asked_is_not_said_to_enforce_nothing(error_code: int, told: str) -> None:
    (warning,) = not_enforced(Cluster(error_code), [CLUSTER])  # type: ignore[arg-type]
    assert warning.startswith(told)
