"""Tests the one rule for all readers: each reader of a volume finds its own broker's factor, to the last bit.

The readers are the broker itself, another broker by the snapshot, and a broker by the pipeline's record. A plain model
replaces the pipeline's SQL here; ``tests/pipeline/test_cluster.py`` holds the SQL to the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import rollup as pipeline
from quotahost.broker.host.volume_evaluation import Judged, affected
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.broker.plugins.policies.setpoint import Setpoint
from quotahost.model import Limit, Volume
from quotahost.pipeline.cluster import Rules
from quotahost.records import cluster_volumes
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.snapshot import Snapshot, decode, encode
from tests.fakes.plugin_context import limited
from tests.unit.records.strategies import LONG, maybe, sizes

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
#: The soft and the hard limit in a broker's own settings.
Node = tuple[Limit | None, Limit | None]
Policy = Callable[[Node], Limits]
NOTHING: Node = (None, None)


def by_limits(node: Node) -> Limits:
    return Limits(limited("limits", *node))


def by_setpoint(node: Node) -> Limits:
    return Setpoint(limited("setpoint", *node, Setpoint.Section()), map(float, count()).__next__)


@st.composite
def looks(draw: st.DrawFn) -> tuple[Node, list[Volume]]:
    """A broker's settings, and one of its volumes at three looks; the volume may have limits of its own."""
    node, capacity = (draw(maybe), draw(maybe)), draw(sizes)
    own = draw(maybe), draw(maybe)
    # The places are around the limits, because the factor is neither 1 nor 0 there.
    places = [limit.consumed_at(capacity) for limit in (*own, *node) if limit]
    near = st.builds(lambda at, by: min(LONG, max(0, at + by)), st.sampled_from([0, *places]), st.integers(-5, 5))
    between = st.integers(min(places, default=0), min(LONG, max(places, default=LONG)))
    consumed = draw(st.lists(st.one_of(near, between, sizes), min_size=3, max_size=3))
    return node, [Volume("1", "/d", capacity, each, *own) for each in consumed]


def as_published(node: Node, volumes: list[Volume]) -> Snapshot:
    broker = volumes[0].broker
    snapshot = Snapshot(broker, NOW, tuple(volumes), *node, cluster="c")
    return decode(broker.encode(), encode(snapshot))


def rolled_up(*snapshots: Snapshot) -> ClusterRecord:
    """The pipeline's record of these brokers, as a broker reads it."""
    told = [(each.broker.encode(), encode(each)) for each in snapshots]
    records = [pipeline.Record("t", 0, number, NOW, *each) for number, each in enumerate(told)]
    brokers = pipeline.state(records, timedelta(minutes=10))
    (record,) = pipeline.rollup(brokers, Rules("c"), 1, 1, round(NOW.timestamp() * 1000))
    return cluster_volumes.decode(b"c", cluster_volumes.encode(record))


@pytest.mark.proves("proposal-035.percent")
@pytest.mark.parametrize("policy", [by_limits, by_setpoint])
@given(seen=looks(), same=st.booleans())
def test_every_reader_finds_the_brokers_own_factor(policy: Policy, seen: tuple[Node, list[Volume]], same: bool) -> None:
    node, volumes = seen
    # Other brokers have the same limits, or none of their own.
    reader = node if same else NOTHING
    own, by_snapshot, by_record = policy(node), policy(reader), policy(reader)
    for volume in volumes:
        expected = own.quota_factor(volume)
        published = as_published(node, [volume])
        (of_snapshot,) = published.volumes
        (of_record,) = rolled_up(published).volumes
        assert by_snapshot.quota_factor(of_snapshot) == expected
        assert by_record.quota_factor(of_record) == expected


some_topics = st.none() | st.frozensets(st.sampled_from(["x", "y", "z"]))


@st.composite
def brokers(draw: st.DrawFn) -> tuple[Node, list[Volume]]:
    """Volumes of brokers of one cluster with the same settings; some brokers publish a volume's topics, some don't."""
    node, _ = draw(looks())
    volume = st.builds(Volume, st.just(""), st.just("/d"), st.integers(0, 100), st.integers(0, 100), maybe, maybe)
    told = draw(st.lists(st.tuples(volume, some_topics), min_size=1, max_size=5))
    return node, [replace(each, broker=str(n), topics=topics) for n, (each, topics) in enumerate(told)]


@given(brokers(), st.booleans())
def test_no_reader_leaves_out_a_topic_of_a_volume(cluster: tuple[Node, list[Volume]], same: bool) -> None:
    """Snapshots give the same affected topics; the pipeline's record may give more or all, never fewer."""
    node, volumes = cluster
    policy = by_limits(node)
    snapshots = [as_published(node, [volume]) for volume in volumes]
    reader = by_limits(node if same else NOTHING)
    own = affected_by(policy, volumes)
    assert affected_by(reader, [each for snapshot in snapshots for each in snapshot.volumes]) == own
    record = affected_by(reader, rolled_up(*snapshots).volumes)
    assert own is None or record is None or own <= record


def affected_by(policy: Limits, volumes: Iterable[Volume]) -> frozenset[str] | None:
    """The topics whose writers the factor is for; None if the factor is for all clients."""
    found = affected(Judged(each, policy.quota_factor(each)) for each in volumes)
    return None if found is None else frozenset(found.places)
