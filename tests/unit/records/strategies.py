"""Hypothesis strategies for records of all kinds, as they may be written."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from quotahost.model import Client, ClientUse, Limit, LimitedBy, LimitType, QuotaType, State, Volume, VolumeUse
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.records.cluster_volumes import ClusterRecord, OfflineDir, VolumeTrend
from quotahost.records.look import Answered, BrokerLook
from quotahost.records.quotas import DEFAULT, MAX_NAMES, ClusterQuota, Entity
from quotahost.records.shares import Share, Shares
from quotahost.records.snapshot import Snapshot
from quotahost.records.usage import Usage, Used
from quotahost.records.watch import MOST_SECONDS, VolumeOf, Watch

LONG = 2**63 - 1
BYTES = LimitType.CONSUMED_BYTES, LimitType.MIN_FREE_BYTES


def some(items: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=most).map(tuple)


def limits_of(percents: st.SearchStrategy[float]) -> st.SearchStrategy[Limit]:
    of_bytes = st.builds(Limit, st.sampled_from(BYTES), sizes)
    return of_bytes | st.builds(Limit, st.just(LimitType.MIN_FREE_PERCENTAGE), percents)


names = st.text(st.characters(codec="utf-8"), max_size=20)
sizes = st.integers(0, LONG) | st.integers(0, 100) | st.sampled_from([0, 1, 2**53 - 1, 2**53 + 1, LONG])
finite = st.floats(allow_nan=False, allow_infinity=False)
rates = st.floats(0, allow_infinity=False)
times = st.datetimes(datetime(1001, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))
limits = limits_of(st.floats(0, 100) | st.integers(0, 100) | st.sampled_from([0.5, 1 / 3, 1e-9, 99.999]))
maybe = st.none() | limits
topics = st.none() | st.frozensets(st.from_regex("[A-Za-z0-9._-]{1,249}", fullmatch=True), max_size=3)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    broker = draw(names)
    own = st.builds(Volume, st.just(broker), names, sizes, sizes, maybe, maybe, topics)
    volumes = draw(st.lists(own, max_size=4, unique_by=lambda volume: volume.name))
    limited = (draw(maybe), draw(maybe), draw(some(names)))
    return Snapshot(broker, draw(times), tuple(volumes), *limited, draw(names), draw(st.none() | sizes))


whole = st.none() | limits_of(st.integers(0, 100))
trends = st.builds(
    VolumeTrend, st.builds(Volume, names, names, sizes, sizes, whole, whole), st.none() | finite, st.none() | finite
)
clusters = st.builds(
    ClusterRecord, names.filter(bool), sizes, sizes, times, st.none() | times, sizes, sizes, sizes, some(names),
    some(names), sizes, some(st.builds(OfflineDir, names, names)), sizes, st.integers(0, 10**30),
    st.integers(0, 10**30), st.none() | st.floats(0, 1), some(trends), some(trends),
    st.fixed_dictionaries({kind: some(trends) for kind in LimitType}), sizes, topics,
)  # fmt: skip

above_0 = st.floats(0, exclude_min=True, allow_infinity=False)
to_the_ms = st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)


def of_clients(kind: Any, *more: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    each = st.builds(kind, names, names, st.sampled_from([QuotaType.PRODUCE, QuotaType.FETCH]), rates, *more)
    return st.lists(each, max_size=4, unique_by=lambda one: one.key).map(tuple)


usages = st.builds(Usage, names, to_the_ms, of_clients(Used, st.none() | rates, above_0, st.none() | rates), names)
shares = st.builds(Shares, names, sizes, sizes, to_the_ms, of_clients(Share, above_0), names)

uses = st.builds(
    ClientUse, st.sampled_from(QuotaType), names, names, names, finite, st.none() | finite, st.none() | finite, finite,
    st.sampled_from(LimitedBy), finite, names, names,
)  # fmt: skip
bytes_used = st.integers(0, 2**53)
levels = st.none() | st.floats(0, 1e18)
opened = st.builds(
    MeasuredVolume, names, bytes_used, bytes_used, some(names, 2), finite, finite,
    some(st.builds(TopicUse, names, bytes_used, finite)), some(names, 2),
)  # fmt: skip
clients = st.builds(Client, names, names)
counts = st.integers(0, 10**6)
looks = st.builds(
    BrokerLook, names, st.sampled_from(State), finite, finite, names, st.sampled_from(["open", "closed", "none"]),
    st.integers(-1, 10), counts, counts, some(uses, 4), some(st.builds(Answered, names, some(names)), 4), names,
    st.booleans(), some(st.builds(VolumeUse, names, bytes_used, bytes_used, levels, levels, levels), 2),
    some(st.tuples(clients, names), 2), some(opened, 2),
)  # fmt: skip
watches = st.builds(
    Watch, names.filter(bool), st.integers(0, MOST_SECONDS), st.none() | clients,
    st.none() | st.builds(VolumeOf, names, names),
)  # fmt: skip

odd_names = names | st.sampled_from(
    ["<default>", "a/b", "clients/", "users/x", "%41", "~*+ ", "\x00", "\U0001f989", MAX_NAMES * "x"]
)
users = odd_names.filter(bool)
entities = (
    st.builds(Entity, users, st.none() | odd_names) | st.builds(Entity, st.none(), users) | st.just(DEFAULT)
).filter(lambda entity: sum(len(name.encode()) for name in entity if name) <= MAX_NAMES)
cluster_rates = st.none() | st.floats(0, exclude_min=True)
quotas = st.builds(ClusterQuota, cluster_rates, cluster_rates)
