"""Whose records count."""

from unittest.mock import MagicMock

import pytest

from quotahost.pipeline import queries
from quotahost.pipeline.clock import KafkaClock
from quotahost.pipeline.options import Options


@pytest.mark.parametrize(("usage_cluster", "users"), [(None, {"1", "2"}), ("other", None)])
def test_a_broker_that_is_down_counts_on_where_its_cluster_can_be_asked(
    usage_cluster: str | None, users: set[str] | None
) -> None:
    made = queries.Queries(
        MagicMock(), Options(bootstrap="a:1", checkpoint="/c", cluster=usage_cluster), "c", KafkaClock()
    )
    assert made.register(["1", "2"])
    assert not made.register(["1"]), "there is no new one"
    assert made.users() == users
