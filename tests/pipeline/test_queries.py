"""How much each query reads at once, and whose records count."""

from unittest.mock import MagicMock

import pytest

from quotahost.pipeline import history, queries, shares
from quotahost.pipeline.clock import KafkaClock
from quotahost.pipeline.options import Options


@pytest.mark.parametrize("part", [*history.OF_SNAPSHOTS, *history.OF_USAGE])
def test_a_batch_of_the_history_has_what_came_in_its_five_minutes(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """With as many records as a batch of the others it would fall behind for ever."""
    spark = MagicMock()
    reader = spark.readStream
    for method in (reader.format, reader.options, reader.option):
        method.return_value = reader
    for module, name in ((queries, "parse"), (shares, "parse"), (history, "append")):
        monkeypatch.setattr(module, name, lambda records, *_: records)
    options = Options(bootstrap="a:1", checkpoint="/c", batch=1000)
    queries.Queries(spark, options, "c", KafkaClock()).record(part, "/h")
    read = dict(call.args for call in reader.option.call_args_list)
    assert read["maxOffsetsPerTrigger"] == 10_000


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
