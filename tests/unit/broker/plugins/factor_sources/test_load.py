"""Tests the source ``load``: its law on a model of a broker and of Kafka's windows, and its factors from counters."""

import random
from collections.abc import Callable, Iterator
from itertools import count
from statistics import mean
from typing import Final

import pytest

from harness.loop.load import HANDLERS, TARGET, Modelled, play
from quotahost.api import Role
from quotahost.broker.plugins.factor_sources.load import Law, LoadSource
from quotahost.model import Factor, LimitedBy, Load
from quotahost.settings.declaration import SettingsError
from quotahost.testing import FakeHost
from quotahost.throttling import QuotaWindows
from tests.unit.cli.top.uses import look
from tests.unit.cli.top.uses import slowed as use

S: Final = 1_000_000_000  # ns
BEGIN, END = 20, 240  # when the overload begins and ends, in seconds
LEAST = 0.05
WINDOWS = [QuotaWindows(11, 1), QuotaWindows(2, 1)]

#: The number of greedy clients, what each wants, its quota, and within how many seconds the clients come.
OVERLOADS = {
    "quotas equal what the threads can do": (4, 2.0, 0.5, 0),
    "quotas are ten times what the threads can do": (4, 2.0, 5.0, 0),
    "clients want little more than the target leaves": (4, 0.45, 0.7, 0),
    "one client could use all threads": (4, 5.0, 2.0, 0),
    "thirty clients come one after another": (30, 0.2, 0.1, 5),
}


@pytest.mark.parametrize("windows", WINDOWS, ids=["11 windows", "2 windows"])
@pytest.mark.parametrize("overload", OVERLOADS.values(), ids=OVERLOADS)
def test_an_overload_is_held_at_the_target(windows: QuotaWindows, overload: tuple[int, float, float, int]) -> None:
    number, wants, quota, spread = overload
    chance, clients = random.Random(3), [Modelled(wants=0.1, quota=2.0)]  # this client uses little of its quota

    def since(begin: float) -> Callable[[int], bool]:
        return lambda now_ms: begin * 1000 <= now_ms < END * 1000

    clients += [Modelled(wants, quota, since(BEGIN + chance.uniform(0, spread))) for _ in range(number)]
    outcome = play(clients, END + 20, windows, Law(windows, 30_000, LEAST))
    settled = slice(BEGIN + 100 if windows.number > 2 else BEGIN + 40, END)
    limits, idle = outcome.limits[settled], outcome.idle[settled]
    assert mean(idle) == pytest.approx(TARGET, abs=0.02)
    assert max(limits) <= 1.1 * min(limits)
    if windows.number == 2:  # with 11, Kafka's own bursts recur every 12 s at any factor
        assert all(abs(share - TARGET) < 0.15 for share in idle)
    assert set(outcome.factors[END + 5 :]) == {1.0}
    # The tap moves the limits to 1 within Kafka's windows; meanwhile the limits hold nobody back.
    assert set(outcome.limits[END + 5 + windows.number :]) == {1.0}


@pytest.mark.parametrize("windows", WINDOWS, ids=["11 windows", "2 windows"])
def test_normal_traffic_with_bursts_is_never_slowed(windows: QuotaWindows) -> None:
    chance = random.Random(5)
    # The load is half of what the target allows; about every minute, a burst takes all threads for two seconds.
    bursts = {at + chance.randrange(30) + second for at in range(0, 600, 60) for second in range(2)}
    burst = Modelled(wants=3 * HANDLERS, quota=100.0, sends=lambda now_ms: now_ms // 1000 in bursts)
    steady = [Modelled(0.35 * (1 - TARGET), 2.0) for _ in range(3)]
    law = Law(windows, 30_000, LEAST)
    assert set(play([burst, *steady], 600, windows, law).factors) == {1.0}


def test_the_factor_never_falls_below_the_least_one() -> None:
    law, now_ms = Law(WINDOWS[1], 30_000, LEAST), count(0, 1000)

    def factors(pressure: float, seconds: int) -> list[float]:
        return [law.step(pressure, 1.0, next(now_ms), lambda: False) for _ in range(seconds)]

    overload = 1 / (1 - TARGET)
    begun = factors(overload, 100)
    assert begun[-1] == LEAST
    assert begun[:2] == [1.0, 1.0]  # a short overload changes nothing
    assert begun[2] < 1
    factors(0.1, 30)
    assert factors(overload, 100) == begun, "an earlier overload leaves no trace"


@pytest.fixture
def host() -> Iterator[FakeHost[LoadSource]]:
    with FakeHost(Role.FACTOR_SOURCE, LoadSource, {"plugin.load.network-idle": "20"}, name="load") as made:
        yield made


class Counters:
    """The counters of a broker, which the source reads each second."""

    def __init__(self, host: FakeHost[LoadSource]) -> None:
        self._host, self._load = host, Load(7 * S, 3 * S, {"CLIENTS": 4 * S, "BROKERS": 0}, 0)
        host.broker.loaded = self._load
        host.plugin.read()

    def pass_second(self, handlers: float, network: float) -> Factor:
        """Let a second with these idle shares pass, and return the source's factor at its end."""
        was = self._load
        idle_ns = {"CLIENTS": was.network_idle_ns["CLIENTS"] + int(network * S), "BROKERS": was.at_ns + S}
        self._load = Load(was.at_ns + S, was.handlers_idle_ns + int(handlers * S), idle_ns, 3)
        self._host.broker.loaded = self._load
        return self._host.plugin.read()


def test_a_live_max_mute_is_in_force_from_the_next_second_on() -> None:
    def factors(before: str, then: str) -> list[float]:
        with FakeHost(Role.FACTOR_SOURCE, LoadSource, {"max.mute": before}, name="load") as made:
            counters = Counters(made)
            made.reconfigure({"max.mute": then})
            return [counters.pass_second(0.04, 0.5).value for _ in range(20)]

    assert factors("1s", "5m") == factors("5m", "5m") != factors("1s", "1s")


def test_a_live_target_lets_nobody_go_before_it_is_followed(host: FakeHost[LoadSource]) -> None:
    counters = Counters(host)
    before = [counters.pass_second(0.04, 0.5) for _ in range(10)][-1]
    host.reconfigure({"plugin.load.network-idle": "20", "plugin.load.handlers-idle": "60", "plugin.load.least": "0.5"})
    assert 0.5 == counters.pass_second(0.04, 0.5).value > before.value


def test_in_shadow_it_asks_for_no_more_than_at_first_as_nobody_is_slowed(host: FakeHost[LoadSource]) -> None:
    counters, network = Counters(host), {"plugin.load.network-idle": "20"}
    host.reconfigure({**network, "shadow": "factor"})
    begun = [counters.pass_second(0.0, 0.5).value for _ in range(60)]
    assert begun[2:] == [pytest.approx(0.49)] * 58
    host.reconfigure(network)
    assert counters.pass_second(0.0, 0.5).value == pytest.approx(0.49), "after shadow, limits fall from full quotas"
    assert counters.pass_second(0.0, 0.5).value < 0.49


def test_the_cause_names_the_threads_that_lack_time(host: FakeHost[LoadSource]) -> None:
    counters = Counters(host)
    handlers = [counters.pass_second(0.04, 0.5) for _ in range(4)][-1]
    assert handlers.value < 1
    assert handlers.cause == "this broker's request handlers are 4 % idle (target 30 %)"
    network = counters.pass_second(0.5, 0.04)
    assert network.cause == "this broker's network threads of CLIENTS are 4 % idle (target 20 %)"
    shown = [host.broker.number("Load", name) for name in ("HandlersIdle", "NetworkIdle", "Queued")]
    assert shown == [0.5, pytest.approx(0.04), 3]


def test_the_end_is_seen_once_nobody_is_held_back(host: FakeHost[LoadSource]) -> None:
    counters = Counters(host)
    for _ in range(10):
        counters.pass_second(0.0, 0.5)
    host.broker.looked = look(uses=[use(rate=480.0)])
    held = "this broker's request handlers are 90 % idle (target 30 %) with this factor"
    assert [counters.pass_second(0.9, 0.9).cause for _ in range(4)] == [held] * 4  # the cause of a factor below 1
    # The factor holds back neither a client at its own quota, nor a client that was delayed and has stopped.
    host.broker.looked = look(uses=[use(rate=990.0, limit=1000.0), use(rate=300.0, bound=LimitedBy.FACTOR)])
    idle = [0.9, 0.9, *[0.0] * 10, 0.9, 0.9, 0.9]
    assert [counters.pass_second(each, each) == Factor(1.0) for each in idle] == [False] * 14 + [True]


def read(host: FakeHost[LoadSource], second: int, handlers: bool = True, network: bool = True) -> Factor:
    """The source's factor in this second of idle threads; each counter may be missing."""
    idle = second * S
    host.broker.loaded = Load(idle, idle if handlers else -1, {"CLIENTS": idle} if network else {}, -1)
    return host.plugin.read()


@pytest.mark.parametrize(("lacking", "counter"), [("request handlers", "handlers"), ("network threads", "network")])
def test_a_lacking_counter_fails_where_it_has_a_target(host: FakeHost[LoadSource], lacking: str, counter: str) -> None:
    assert read(host, 400) == read(host, 500) == read(host, 619, **{counter: False}) == Factor(1.0)
    with pytest.raises(LookupError, match=f"how busy its {lacking} are"):
        read(host, 622, **{counter: False})
    targets = {"plugin.load.handlers-idle": "20", "plugin.load.network-idle": "20"}
    host.reconfigure(targets | {f"plugin.load.{counter}-idle": "0"})
    for second in (623, 624):
        assert read(host, second, **{counter: False}) == Factor(1.0), "a counter without a target isn't needed"


def test_a_broker_that_takes_long_to_open_its_listeners_is_not_busy(host: FakeHost[LoadSource]) -> None:
    for second in range(11):
        host.broker.loaded = Load(second * S, second % 10 * S, {"CLIENTS": 0}, 0)
        assert host.plugin.read() == Factor(1.0)
    assert host.broker.number("Load", "HandlersIdle") == 1.0, "the broker's own handlers begin to count in second 10"


def test_without_any_target_it_is_refused() -> None:
    no_target = {"plugin.load.handlers-idle": "0", "plugin.load.network-idle": "0"}
    with pytest.raises(SettingsError, match="above 0, or remove load from"):
        FakeHost(Role.FACTOR_SOURCE, LoadSource, no_target, name="load")
