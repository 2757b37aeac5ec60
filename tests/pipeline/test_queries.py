"""Whose records count."""

from unittest.mock import MagicMock

from quotahost.pipeline import queries
from quotahost.pipeline.clock import KafkaClock
from quotahost.pipeline.options import Options


def test_a_broker_that_is_down_counts_on() -> None:
    made = queries.Queries(MagicMock(), Options(bootstrap="a:1", checkpoint="/c"), "c", KafkaClock())
    assert made.register(["1", "2"])
    assert not made.register(["1"]), "there is no new one"
    assert made.users() == {"1", "2"}
