"""Tests cluster-wide quotas: which quotas a broker takes from their topic, and the supplier ``cluster-quota``.

The supplier gives a client its share of the quota, and announces changes of quotas, shares and brokers.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.api import Role
from quotahost.broker.plugins.cluster_quota import quotas as quotas_module
from quotahost.broker.plugins.cluster_quota import shares as module
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.broker.plugins.cluster_quota.shares import ClusterQuota as Supplier
from quotahost.broker.plugins.cluster_quota.shares import GivenRates
from quotahost.model import QuotaType, Scope
from quotahost.records.quotas import Entity, LatestQuotas
from quotahost.records.shares import Share, Shares, encode
from quotahost.records.usage import ClientKey
from quotahost.settings.declaration import SettingsError
from quotahost.testing.broker import FakeBroker
from quotahost.testing.host import FakeHost
from quotahost.throttling import SampledRate
from tests.fakes.plugin_context import Clock, context, settings
from tests.fakes.quotas import Set, change, follower, quota, remove, set_quotas
from tests.unit.cli.top.uses import use

PRODUCE, FETCH = QuotaType.PRODUCE, QuotaType.FETCH


# ---- the quotas of the topic, which a broker takes, keeps, finds and forgets ----


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def quotas(broker: FakeBroker) -> ClusterQuotas:
    return ClusterQuotas(context(broker, "cluster-quota"))


def produced(quotas: ClusterQuotas, user: str, client_id: str = "") -> float | None:
    return quotas.rate(user, client_id, PRODUCE)


def test_nobody_has_a_quota_until_the_topic_is_read_and_that_is_told_after_a_while(
    quotas: ClusterQuotas, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    quotas.record(b"users/alice", b'{"version":1,"produce":5}', False)
    for follower(quotas).starting in (True, False, False):
        quotas.show()
    unread = "topic __quotahost_quotas can't be read so far: no client has a cluster-wide quota on this broker"
    assert caplog.messages == [unread]
    assert (produced(quotas, "alice"), broker.number("ClusterQuotas", "Read")) == (None, 0)
    quotas.caught_up()
    follower(quotas).has_read = True
    quotas.show()
    assert (produced(quotas, "alice"), broker.number("ClusterQuotas", "Read")) == (5, 1)
    assert broker.number("ClusterQuotas", "Entities") == 1


def test_a_topic_that_is_read_again_is_what_it_is_now(broker: FakeBroker, caplog: pytest.LogCaptureFixture) -> None:
    announced = set[Entity]()
    quotas = ClusterQuotas(
        context(broker, "cluster-quota"),
        changed=lambda principal=None, client_id=None: announced.add(Entity(principal, client_id)),
    )
    set_quotas(quotas, quota("alice", None, 1.0), quota("bob", None, 2.0), quota("carol", "app", 3.0))
    announced.clear()
    follower(quotas).begins()
    for name in (b"users/bob", b"users/dave"):
        follower(quotas).take(name, b'{"version":1,"produce":2}', False)
    assert produced(quotas, "alice") == 1.0
    quotas.caught_up()
    assert [produced(quotas, name, "app") for name in ("alice", "bob", "carol", "dave")] == [None, 2.0, None, 2.0]
    assert announced == {Entity("alice", None), Entity("carol", "app"), Entity("dave", None)}
    assert quotas.distinct_client_ids("carol") == frozenset()
    gone = "topic __quotahost_quotas was read again: 2 of 3 cluster-wide quotas are no longer in it"
    assert caplog.messages == [gone]


def test_its_memory_is_bounded(quotas: ClusterQuotas, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LatestQuotas, "most_octets", 1000)
    set_quotas(quotas, quota("a", None, 1.0), quota("b", None, 1.0))
    remove(quotas, "a")
    for length, expected in ((990, None), (970, 1.0)):
        change(quotas, quota("f" * length, None, 1.0))
        assert produced(quotas, "f" * length) == expected
    assert broker.number("Refused", "Records", "size") == 1


@pytest.mark.parametrize(
    ("given", "principal", "distinct"),
    [
        ([quota(None, "app", 1.0)], "bob", {"app"}),
        ([quota("alice", "app", 1.0)], "alice", {"app"}),
        ([quota("alice", "app", 1.0)], "bob", set()),
        ([quota(None, "app", 1.0), quota("alice", "b", None, 1.0)], "alice", {"app", "b"}),
        ([quota("alice", None, None, 1.0)], "alice", None),
        ([quota("alice", None, None, 1.0)], "bob", set()),
        ([quota(None, None, 1.0), quota("alice", None, math.inf)], "alice", set()),
        ([quota(None, None, 1.0)], "bob", None),
    ],
)
def test_a_share_of_a_cluster_wide_quota_is_each_clients_own(
    quotas: ClusterQuotas, given: list[Set], principal: str, distinct: set[str] | None
) -> None:
    set_quotas(quotas, *given)
    assert quotas.distinct_client_ids(principal) == distinct


# ---- the supplier ----

SUPPLIER = {"supplier": "cluster-quota"}
QUOTAS = (
    quota(None, None, 1e6),
    quota("alice", None, 2e6, 9e6),
    quota("free", None, math.inf),
    quota(None, "app", 3e6),
    quota("alice", "app", 4e6),
)


class World:
    def __init__(self, **more: str) -> None:
        self.broker = FakeBroker({"process.roles": "broker,controller"}, brokers={1: False, 2: True, 3: False})
        self.host = FakeHost(Role.SUPPLIER, Supplier, SUPPLIER | more, name="cluster-quota", broker=self.broker)
        self.plugin: Supplier = self.host.plugin
        self.quotas, self.sequence = self.plugin._quotas, 0
        set_quotas(self.quotas, *QUOTAS)

    def rate(self, user: str, client_id: str = "", kind: QuotaType = PRODUCE) -> float | None:
        quota = self.host.quota(user, client_id, kind)
        assert quota is not None
        assert quota.scope == Scope.CLIENT
        return quota.rate

    def shares(self, share: float, key: bytes = b"1", cluster: str = "", run: int = 1) -> None:
        """Pass a record with alice's share, and let the supplier look."""
        listed = (Share("alice", "app", PRODUCE, share, 4e6),)
        self.sequence += 1
        value = encode(Shares(key.decode(), run, self.sequence, datetime.now(UTC), listed, cluster))
        follower(self.plugin).take(key, value, True)
        self.plugin.look()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    eventually(lambda: made.broker.number("Shares", "Brokers") == 3)
    assert made.plugin._looks
    made.plugin._looks.close()  # the supplier looks only when a test calls it
    made.plugin.look()
    yield made
    made.host.close()


def test_a_share_is_given_and_announced_for_its_client_alone_and_goes_with_the_supplier(world: World) -> None:
    assert world.host.quota("bob", "app", FETCH) is None, "bob has no cluster-wide quota: the next supplier decides"
    assert world.host.quota("alice", "app", QuotaType.REQUEST) is None
    assert (world.rate("free", "app"), world.rate("alice", "app", FETCH)) == (None, 3e6)
    world.host.announced.clear()
    assert [world.broker.number("Shares", name) for name in ("Age", "Stale")] == [None, 1], "no shares have arrived yet"
    world.shares(3.5e6)
    assert world.host.announced == [("alice", "app")]
    assert world.rate("alice", "app") == 3.5e6
    assert world.rate("alice", "else") == 2e6 / 3
    assert world.broker.number("Shares", "Clients") == 1
    assert world.broker.number("Shares", "Stale") == 0
    world.host.context.closing.close()
    assert not {"Shares", "ClusterQuotas"} & {type for type, *_ in world.broker.shown}


def test_shares_of_other_brokers_and_clusters_and_malformed_records_are_ignored(world: World) -> None:
    world.host.cluster(1, 2, 3, cluster_id="mine")
    world.shares(3.5e6, key=b"2")
    world.shares(3.5e6, cluster="theirs")
    follower(world.plugin).take(b"1", b"nonsense", True)
    assert world.rate("alice", "app") == pytest.approx(4e6 / 3)
    assert [world.broker.number("Refused", "Records", reason) for reason in ("cluster", "json")] == [1, 1]
    world.shares(3.5e6, cluster="mine")
    assert world.rate("alice", "app") == 3.5e6


def test_shares_that_stop_and_come_back_are_logged_once_each(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world.shares(3.5e6)
    world.plugin.record(b"1", None, True)
    world.broker.usages = ConnectionError("not now")
    with pytest.raises(ConnectionError):
        world.plugin.look()
    assert world.rate("alice", "app") == 3.5e6, "while the usage is unknown, no client's share changes"
    world.broker.usages = []
    for _ in range(2):
        world.plugin.look()
    assert world.rate("alice", "app") == pytest.approx(4e6 / 3), "a tombstone removes the shares"
    world.shares(3.5e6)
    assert caplog.messages == [
        "no fresh shares from the pipeline: each broker gives 1/3 of each quota",
        "fresh shares arrive again",
    ]


def test_more_brokers_are_announced_for_all_clients_and_a_quota_for_its_own(world: World) -> None:
    world.host.announced.clear()
    world.host.cluster(1, 2, 3, 4)
    assert world.host.announced == [(None, None)]
    assert world.rate("alice", "app") == 1e6
    change(world.quotas, quota("alice", "app", 8e6))
    assert (world.host.announced[1:], world.rate("alice", "app")) == ([("alice", "app")], 2e6)
    world.plugin._on_registered_brokers({})
    world.host.cluster()
    assert world.rate("alice", "app") == 8e6, "an empty list still counts this broker"


def test_on_a_controller_nothing_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (module, quotas_module):
        monkeypatch.setattr(each, "Follower", lambda *_, **__: pytest.fail("a follower starts on a controller"))
    broker = FakeBroker({"process.roles": "controller"})
    with FakeHost(Role.SUPPLIER, Supplier, SUPPLIER, name="cluster-quota", broker=broker) as host:
        assert host.quota("alice", "app", PRODUCE) is None
        assert host.plugin.distinct_client_ids("alice") == frozenset()


@pytest.mark.parametrize("kind", ["produce", "fetch"])
@pytest.mark.parametrize("name", ["default", "users", "client-ids", "clients"])
def test_a_property_of_earlier_versions_is_refused_with_what_to_do(kind: str, name: str) -> None:
    with pytest.raises(SettingsError) as refused:
        World(**{f"plugin.cluster-quota.{kind}.{name}": "1M"})
    assert f"{kind}.{name}: was removed: cluster-wide quotas are records of __quotahost_quotas" in str(refused.value)
    assert "`quotahost quotas import-properties FILE --bootstrap HOST:PORT`" in str(refused.value)


def test_a_share_that_falls_mutes_no_client_for_longer_than_max_mute(world: World) -> None:
    kafka, start = SampledRate(samples=11, window_ms=1000), 1_700_000_000_000
    for ms in range(0, 12_000, 1000):
        kafka.record(1.5e6, start + ms)
        kafka.record(1.5e6, start + ms + 999)
    now = start + 11_998  # Kafka still counts the sample that began 12 s ago
    world.host.reconfigure(SUPPLIER | {"max.mute": "5s"})
    world.shares(3.5e6)
    world.broker.usages = [use(rate=kafka.measure(now), limit=3.5e6)]
    world.shares(1e6)
    rate = world.rate("alice", "app")
    assert 4.9e3 < kafka.throttle_ms(rate or 0.0, now) <= 5e3


# ---- the rate of one client: its latest share, in steps, or an equal part if there are no shares ----

KEY = ClientKey("alice", "app", PRODUCE)
QUOTA = 3e6
WINDOW, MUTE = 12.0, 30.0
STEP = WINDOW / (WINDOW + MUTE)
SETTINGS = settings(validity="60s", floor__bytes="35000", max__mute="30s")
WALL = datetime(2026, 11, 21, tzinfo=UTC)


class Client:
    def __init__(self) -> None:
        self.clock, self.quotas, self.sequence = Clock(), ClusterQuotas(context()), 0
        set_quotas(self.quotas, quota("alice", None, 3e6))
        self.rates = GivenRates(WINDOW, self.clock, Clock(WALL.timestamp()))
        self.rates.brokers = 3

    def share(self, share: float, quota: float = QUOTA, key: ClientKey = KEY) -> None:
        self.sequence += 1
        self.rates.latest.take(Shares("1", 1, self.sequence, WALL, (Share(*key, share, quota),)), True, 60)

    def look(self, rate: float | None = None, idle: float = 0.0, after: float = 0.5) -> list[ClientKey]:
        self.clock.now += after
        used = [] if rate is None else [use(rate=rate, limit=self.given, idle=idle)]
        return self.rates.look(self.quotas, used, SETTINGS)

    def active(self, share: float, rate: float) -> None:
        """Give the client this share, and let the client use this rate."""
        self.look(min(rate, 5e5))
        self.clock.now += 5
        self.share(share)
        self.look(min(rate, 5e5))
        self.look(rate)

    @property
    def given(self) -> float:
        return self.rates.rate(KEY, QUOTA)


@pytest.fixture
def client() -> Client:
    return Client()


def test_only_a_tenth_is_handed_on_at_once_and_less_when_it_has_settled(client: Client) -> None:
    client.active(2e6, 1e6)
    for share, changed in ((2.19e6, []), (2.2e6, [KEY])):
        client.share(share)
        assert client.look(1e6) == changed
    client.share(2.25e6)
    assert (client.look(1e6, after=9), client.look(1e6, after=1)) == ([], [KEY])
    assert client.given == 2.25e6


def test_that_shares_have_come_or_gone_is_handed_on_however_small_the_difference(client: Client) -> None:
    client.share(1.001e6)
    assert (client.look(5e5), client.look(5e5, after=61)) == ([KEY], [KEY])
    assert (client.given, client.rates.shared, client.look(5e5)) == (1e6, {}, [])


def test_a_client_that_is_silent_here_has_its_equal_part_and_keeps_it_for_its_first_seconds(client: Client) -> None:
    client.share(50e3)
    for rate, after in ((None, 0.5), (2e5, 0.5), (2e5, 2.4)):
        client.look(rate, after=after)
        assert client.given == 1e6, "the client keeps its equal part: the shares may not include the client yet"
    client.look(2e5, after=0.6)
    assert client.given == pytest.approx(2e5 * STEP)


#: The first share and the client's rate; the next share, its quota and its client; looks; and the rate at the end.
COURSES: dict[str, tuple[tuple[float, float], tuple[Any, ...], list[dict[str, float]], float]] = {
    "the share of a client that uses little falls immediately": ((2.9e6, 1e4), (50e3,), [{"rate": 1e4}], 50e3),
    "a client that has left has an equal part again": (
        (2.9e6, 2.9e6), (50e3,),
        [{"rate": 2.5e6, "idle": 3, "after": 3}, {"rate": 2.2e6, "idle": 4.5, "after": 1.5}], 1e6,
    ),
    "no share goes below the floor": ((2e6, 1.0), (10.0,), [{"rate": 1}], 35e3),
    "no share exceeds the quota": ((2e6, 1e5), (4e6,), [{"rate": 1e5}], 3e6),
    "a share of another quota is scaled": ((4e6, 1e5), (2e6, 6e6), [{"rate": 1e5}], 1e6),
    "a client that is no longer listed has an equal part": (
        (2e6, 1e5), (1.0, QUOTA, KEY._replace(principal="bob")), [{"rate": 1e5}], 1e6,
    ),
    # If a record's quota is invented, only the share's part of this quota counts.
    **{f"{share} of {of}": ((2e6, 1e5), (share, of), [{"rate": 1e5}, {"rate": 1e5, "after": 10}], given)
       for share, of, given in ((0.0, 5e-324, 35e3), (5e-324, 5e-324, QUOTA), (0.1, 1e-300, QUOTA))},
}  # fmt: skip


@pytest.mark.parametrize(("before", "share", "looks", "given"), COURSES.values(), ids=COURSES)
def test_what_a_client_is_given_when_its_share_has_changed(
    client: Client, before: tuple[float, float], share: tuple[Any, ...], looks: list[dict[str, float]], given: float
) -> None:
    client.active(*before)
    client.share(*share)
    for look in looks:
        client.look(**look)
    assert client.given == pytest.approx(given)


def test_an_equal_part_may_be_below_the_floor_and_goes_with_the_quota(client: Client) -> None:
    client.active(2e6, 1.0)
    client.share(10.0)
    client.rates.brokers = 1000
    client.look(1.0)
    assert client.given == 3e3
    remove(client.quotas, "alice")
    assert (client.look(1.0), client.rates.shared) == ([], {})
