"""Tests the kit for plugin authors: plugins that keep the contract pass, and each breach of the contract is caught."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from quotahost.api import Context, Role
from quotahost.broker.plugins.factor_sources.direct import Fixed
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.broker.plugins.suppliers.from_properties import Static
from quotahost.model import Client, ClusterVolumes, Factor, Limit, LimitType, Quota, QuotaType, Scope, Volume
from quotahost.settings.declaration import SettingsError
from quotahost.testing import FakeBroker, FakeHost, check_factor_source, check_policy, check_supplier, check_task

CAROL = Client("carol", "batch")
SPECIAL = Volume("9", "/special", 10, 5, Limit(LimitType.CONSUMED_BYTES, 4), Limit(LimitType.MIN_FREE_PERCENTAGE, 10))
PROMETHEUS = {f"plugin.prometheus.{name}": text for name, text in (
    ("url", "http://127.0.0.1:1"), ("capacity", "size"), ("available", "avail"), ("interval", "100ms"))}  # fmt: skip
SETPOINT = {
    "static.storage.soft.min-free-percent": "0.2", "static.storage.hard.min-free-percent": "0.05",
    "plugin.setpoint.memory": "5m",
}  # fmt: skip


def plugin(**attributes: Any) -> type:
    """A plugin's class with these methods and values; each method gets the plugin and the host's arguments."""
    return type("Sample", (), {"__init__": lambda self, context: None, "calls": 0} | attributes)


def task(run: Callable[[Any], Any], period: Any = timedelta(seconds=1), **more: Any) -> type:
    return plugin(run=run, period=period, **more)


def giving(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


async def late(*_: Any) -> None: ...


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def hanging(*_: Any) -> None:
    threading.Event().wait()


def counting(plugin: Any, *_: Any) -> Quota:
    plugin.calls += 1
    return Quota(plugin.calls)


def learning(plugin: Any, *_: Any) -> Quota:
    """Raises until it knows its answers."""
    plugin.calls += 1
    if plugin.calls == 1:
        raise LookupError("nobody has answered yet")
    return Quota(1.0)


PERCENT = LimitType.MIN_FREE_PERCENTAGE
LIMITED = {"static.storage.soft.min-free-percent": "0.2", "static.storage.hard.min-free-percent": "0.1"}
check_limited = partial(check_policy, properties=LIMITED)


def with_limits(**instead: Any) -> type:
    """A correct policy that returns its limits, with methods replaced; None removes a method."""
    return type("Sample", (Limits,), instead)


# ---- plugins that keep the contract ----


@pytest.mark.proves("proposal-035.factor-alone")
@pytest.mark.parametrize(
    ("check", "entry", "given", "changed"),
    [
        *((check_supplier, entry, {"static.produce": "1M", "static.scope": "user"}, {"static.produce": "2M"})
          for entry in (Static, "static")),
        (partial(check_supplier, clients=[Client("alice", "clientA")]), "overrides",
         {"plugin.overrides.quota.producer.default": "2M", "plugin.overrides.quota.consumer.override": "clientA:4M"},
         {"plugin.overrides.quota.producer.override": "clientA:1M"}),
        (partial(check_supplier, clients=[Client("bob", "terraform")]), "controller-mutation",
         {"plugin.controller-mutation.users": "alice:10", "plugin.controller-mutation.client-ids": "terraform:20"},
         {"plugin.controller-mutation.users": "alice:1"}),
        (check_supplier, plugin(quota=learning), {}, None),
        # A factor source may return each of these types.
        *((check_factor_source, plugin(read=giving(answer)), {}, None) for answer in (
            None, 0, 0.5, 1.0, Factor(0.5), ClusterVolumes((Volume("1", "/", 2, 1),), ("broker 2 is silent",)))),
        (check_factor_source, "log-dirs", {"plugin.log-dirs.interval": "1s"}, {"plugin.log-dirs.interval": "2s"}),
        (check_factor_source, "load", {"plugin.load.least": "0.1"}, {"plugin.load.least": "1"}),
        (check_factor_source, "prometheus", PROMETHEUS, PROMETHEUS | {"plugin.prometheus.expected": "kafka-1"}),
        (partial(check_policy, volumes=[SPECIAL]), "limits",
         {"static.storage.soft.min-free-percent": "0.1", "static.storage.hard.min-free-bytes": "1G"}, None),
        (check_policy, "setpoint", SETPOINT, SETPOINT | {"plugin.setpoint.memory": "PT1H"}),
    ],
)  # fmt: skip
def test_what_keeps_the_contract_passes_by_class_or_name(
    check: Callable[..., None], entry: Any, given: dict[str, str], changed: dict[str, str] | None
) -> None:
    check(entry, given, reconfigured=changed)


def test_a_sound_task_passes_and_runs_on_one_thread_of_its_own() -> None:
    ran: list[threading.Thread] = []

    def noting(*_: Any) -> None:
        ran.append(threading.current_thread())

    check_task(task(noting, close=noting))
    assert len(ran) == 3  # run twice, closed once
    assert len(set(ran)) == 1
    assert ran[0] is not threading.current_thread()


def test_a_policy_whose_limits_fit_its_factors_passes_and_is_asked_for_the_volumes_given() -> None:
    check_limited(with_limits())
    check_limited(with_limits(soft_limit=lambda self, volume: None, breaches_soft_limit=lambda self, volume: True))
    judged: list[Volume] = []
    check_policy(plugin(quota_factor=lambda self, volume: judged.append(volume) or 1.0), volumes=[SPECIAL])
    assert SPECIAL in judged
    # The check judges volumes of one name apart if their own limits differ.
    limits = [Limit(LimitType.CONSUMED_BYTES, level) for level in (300, 900)]
    own = [Volume("1", "/own", 1000, used, hard=hard) for used, hard in zip((400, 500), limits, strict=True)]
    check_policy(plugin(quota_factor=lambda self, v: float(not v.hard or v.consumed < v.hard.level)), volumes=own)


# ---- plugins that break the contract ----


class Demanding:
    """Requires a property."""

    class Section(BaseModel):
        rate: float

    def __init__(self, context: Context[Section]) -> None:
        self.context = context

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        return Quota(self.context.section.rate)


SOFT, HARD = Limit(PERCENT, 20), Limit(PERCENT, 10)
BOTH_BREACHES = ("breaches_soft_limit", "breaches_hard_limit")
SUPPLIERS: list[tuple[Any, str, int]] = [
    *((entry, "would not start: supplier ", 1) for entry in (
        raising(RuntimeError("no such file")), raising(SystemExit(3)), plugin(), "no-such-plugin")),
    (Demanding, r"would not start: .*plugin\.demanding\.rate: is required", 1),
    # It would be asked without end.
    (plugin(__init__=lambda self, context: setattr(self, "announce", context.answers_changed),
            quota=lambda self, *_: self.announce()), r"quota\(\) must not call answers_changed", 10),
    *((plugin(quota=quota), words, number) for quota, words, number in (
        *((raising(error), f"raised {type(error).__name__}", 5)
          for error in (KeyError("alice"), SystemExit(1), TimeoutError("late"))),
        *((giving(answer), "a supplier answers a Quota or None", 6) for answer in (1000.0, "1M", False)),
        (lambda *_: time.sleep(0.02), "must answer from memory", 3),
        (hanging, r"quota\(\) for principal 'alice'.* did not return within 1 s", 3),
        (counting, "without a call of answers_changed", 10),
        *((lambda p, c, t, scope=scope: Quota(1 + len(c.principal + c.client_id), scope), "others who share it", 6)
          for scope in (Scope.USER, Scope.CLIENT_ID, Scope.BROKER, Scope.group("g"))),
        (lambda p, c, t: Quota(1e3, Scope.group(c.client_id)), "a group scope, and only that, needs a non-empty", 5),
        (lambda p, c, t: Quota(float(c.client_id)) if ":" in c.client_id else None, "raised ValueError", 5),
        (lambda p, c, t: 0 if c == CAROL else None, "principal 'carol', client-id 'batch', PRODUCE", 6))),
    *((plugin(quota=giving(None), **{method: lambda *_: time.sleep(0.02)}), rf"{method}.*must answer from memory", 3)
      for method in ("distinct_client_ids", "tick")),
    *((plugin(quota=giving(None), **{method: raising(LookupError("gone"))}),
       rf"{method}\(\) raised LookupError: gone", 5)
      for method in ("client_quota_changed", "cluster_changed", "tick", "reconfigure")),
    (plugin(quota=lambda plugin, *_: Quota(1.0 + plugin.calls), tick=counting), r"after tick\(\)", 10),
    (plugin(quota=giving(None), close=raising(OSError("busy"))), r"close\(\) raised OSError", 7),
    (plugin(quota=giving(None),
            __init__=lambda *_: threading.Thread(target=hanging, name="forgotten", daemon=True).start()),
     "the thread 'forgotten' still runs", 7),
]  # fmt: skip
SOURCES: list[tuple[Any, str, int]] = [
    *((plugin(read=giving(answer)), "answers ClusterVolumes, a Factor, a number from 0.0 to 1.0 or None, not", 6)
      for answer in ("0.5", True, float("nan"), 1.5, [0.5])),
    (plugin(read=lambda self: time.sleep(0.02)), r"read\(\) took .* must answer from memory", 3),
    (plugin(read=raising(ConnectionError("refused"))), "raised ConnectionError", 5),
    (plugin(read=giving(None), __init__=lambda _, c: setattr(_, "x", c.start_thread("x", raising(OSError("x"))))),
     "a thread of the plugin raised, and has ended for good", 5),
    *((plugin(read=giving(0.5), quota_types=types), "a collection of QuotaType", 14)
      for types in ("PRODUCE", ("produce",), (), None)),
    *((plugin(read=giving(answer), quota_types=(QuotaType.FETCH,)), "a factor above 0", 14)
      for answer in (0, ClusterVolumes(()))),
]  # fmt: skip
POLICIES: list[tuple[Any, str, int]] = [
    *((plugin(quota_factor=factor), words, number) for factor, words, number in (
        (lambda self, v: 1 - v.consumed / v.capacity, "must be a number from 0.0 to 1.0", 6),  # overfull: below 0
        (giving(None), "must be a number", 6),
        (lambda self, v: time.sleep(0.02), "must answer from memory", 3),
        (lambda self, v: v.consumed / max(v.capacity, v.consumed), "for the emptier", 6),
        (lambda self, v: float(not v.soft or v.consumed < v.hard.level), "raised AttributeError", 5),  # only a soft one
        (raising(ZeroDivisionError()), "raised ZeroDivisionError", 5))),
    *((with_limits(**instead), words, number) for instead, words, number in (
        ({"hard_limit": None, "breaches_soft_limit": None}, r"lacks hard_limit\(\), breaches_soft_limit\(\)", 12),
        ({"breaches_soft_limit": giving(False)}, "breaches its hard limit, but not its soft one", 12),
        (dict.fromkeys(BOTH_BREACHES, giving(False)), "doesn't breach", 12),
        (dict.fromkeys(BOTH_BREACHES, giving(True)), "not 0", 12),
        ({"soft_limit": giving(HARD), "hard_limit": giving(SOFT)}, "before its soft one", 12),
        ({"hard_limit": giving(Limit(PERCENT, 1))}, "but its factor is 0", 12),
        ({"soft_limit": giving(None), "hard_limit": giving(Limit(PERCENT, 26))}, "but its factor is 1", 12),
        ({"soft_limit": giving(Limit(PERCENT, 60))}, r"breaches_soft_limit\(\) is False", 12),
        ({"soft_limit": giving(0.8)}, "a Limit or None", 6),
        ({"breaches_hard_limit": giving(1)}, "True or False", 6),
        ({"hard_limit": raising(ZeroDivisionError())}, "raised ZeroDivisionError", 5),
        ({"factor_in_force": raising(ZeroDivisionError())}, r"factor_in_force\(\) raised ZeroDivisionError", 5))),
]  # fmt: skip
TASKS: list[tuple[Any, str, int]] = [
    (task(raising(OSError("full"))), r"run\(\) raised OSError: full", 5),
    (task(giving(None), period=5), "its period is 5", 1),
    *((task(run), r"its run\(\) is async def or has a yield", 1) for run in (late, lambda self: (yield))),
    (task(giving(None), reconfigure=late), r"its reconfigure\(\) is async def", 1),
    (task(hanging), r"run\(\) did not return within 1 s", 4),
    *((task(lambda self, show=show: getattr(self.metrics, show)("Sample", "", "Number", "many"),
            __init__=lambda self, context: setattr(self, "metrics", context.metrics)),
       r"run\(\) raised ValueError: could not convert", 5) for show in ("gauge", "count")),
]  # fmt: skip


@pytest.mark.proves("proposal-035.policy", "proposal-035.policy-limits")
@pytest.mark.parametrize(
    ("check", "broken", "words", "number"),
    [
        *((partial(check_supplier, clients=[CAROL]), *each) for each in SUPPLIERS),
        *((check_factor_source, *each) for each in SOURCES),
        *((check_limited, *each) for each in POLICIES),
        *((check_task, *each) for each in TASKS),
    ],
)
def test_what_breaks_the_contract_is_caught_with_its_number(
    monkeypatch: pytest.MonkeyPatch, check: Callable[..., None], broken: Any, words: str, number: int
) -> None:
    # The check waits 1 s for plugins that hang or never know their answers; others may be slow on a busy machine.
    if number == 5 or "did not return" in words or "still runs" in words:
        monkeypatch.setattr(FakeHost, "patience", 1.0)
        check = partial(check, within=1.0) if check is check_task else check
    with pytest.raises(AssertionError, match=rf"(?s){words}.*\(contract {number} of quotahost.api\)"):
        check(broken)


@pytest.mark.parametrize("check", [check_supplier, check_factor_source, check_policy, check_task])
def test_a_check_takes_a_broker_for_a_plugin_that_asks_one(check: Callable[..., None]) -> None:
    class Asks:
        period = timedelta(seconds=1)

        def __init__(self, context: Context) -> None:
            assert context.broker.properties() == {"log.dirs": "/data/1"}

        quota = read = quota_factor = run = lambda self, *_: 1.0 if check is check_policy else None

    check(Asks, broker=FakeBroker({"log.dirs": "/data/1"}))


class Listening:
    """Gives alice a rate that each client quota changes; announces the change for ``announces``, if it isn't None."""

    announces: tuple[str | None, ...] | None = ()

    def __init__(self, context: Context) -> None:
        self.context, self.rate = context, 1.0

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        return Quota(self.rate) if client.principal == "alice" else None

    def client_quota_changed(self, change: object) -> None:
        self.rate += 1
        if self.announces is not None:
            self.context.answers_changed(*self.announces)


@pytest.mark.parametrize(
    ("announces", "problem"),
    [
        *((enough, "") for enough in ((), ("alice",), ("alice", None))),
        *((not_enough, r"after client_quota_changed\(\).*contract 10")
          for not_enough in (None, ("bob",), ("alice", "other"))),
        ((Client("alice", "app"),), r"takes names or None.*contract 9"),
    ],
)  # fmt: skip
def test_a_change_must_be_announced_for_those_concerned(
    monkeypatch: pytest.MonkeyPatch, announces: tuple[Any, ...] | None, problem: str
) -> None:
    monkeypatch.setattr(Listening, "announces", announces)
    with pytest.raises(AssertionError, match=problem) if problem else nullcontext():
        check_supplier(Listening)


# ---- the fake host ----


def test_a_live_change_goes_to_reconfigure_or_builds_the_plugin_anew() -> None:
    with FakeHost(Role.SUPPLIER, Demanding, {"plugin.demanding.rate": "1"}, node_id=7) as host:
        assert host.context.node_id == 7
        first = host.plugin
        host.reconfigure({"plugin.demanding.rate": "2"})
        assert host.plugin is not first
        assert host.quota("a", "b", QuotaType.FETCH) == Quota(2.0)
        with pytest.raises(SettingsError):
            host.reconfigure({"plugin.demanding.rate": "fast"})
        with pytest.raises(TypeError, match=r"plugin\.demanding\.rate=3\.0: write a property as text"):
            host.reconfigure({"plugin.demanding.rate": 3.0})  # type: ignore[dict-item]
        assert host.quota("a", "b", QuotaType.FETCH) == Quota(2.0)
    with FakeHost(Role.FACTOR_SOURCE, Fixed) as fixed:
        before = fixed.plugin
        fixed.reconfigure({"plugin.fixed.factor": "0.25"})
        assert fixed.plugin is before
        assert fixed.plugin.read().value == 0.25
