"""The kit for plugin authors: plugins that keep the contract pass, and each way to break it is caught."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from fractions import Fraction
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from pydantic import BaseModel

from quotahost.api import Context, Role
from quotahost.broker.plugins.factor_sources.direct import Fixed
from quotahost.broker.plugins.suppliers.client_quotas import ClientQuotas
from quotahost.broker.plugins.suppliers.static import Static
from quotahost.model import (
    Client,
    ClientQuotaChange,
    ClusterVolumes,
    Factor,
    Limit,
    LimitType,
    Quota,
    QuotaType,
    Scope,
    Volume,
)
from quotahost.testing import (
    CLIENT_QUOTAS,
    FakeHost,
    SettingsError,
    check_factor_source,
    check_policy,
    check_supplier,
    check_task,
)

CAROL = Client("carol", "batch")
QuotaFunction = Callable[[Any, Client, QuotaType], Any]


def supplier(quota: QuotaFunction, **more: Any) -> type:
    """A supplier's class of a function of (the plugin, client, quota type)."""

    def init(self: Any, context: Context) -> None:
        self.context, self.calls = context, 0

    return type("Sample", (), {"__init__": init, "quota": quota, **more})


def source(read: Callable[[Any], Any], **more: Any) -> type:
    return type("Sample", (), {"__init__": lambda self, context: None, "read": read, **more})


def policy(factor: Callable[[Volume], Any]) -> type:
    return type(
        "Sample", (), {"__init__": lambda self, context: None, "quota_factor": lambda self, volume: factor(volume)}
    )


def task(run: Callable[[Any], Any], period: Any = timedelta(seconds=1), **more: Any) -> type:
    return type("Sample", (), {"__init__": lambda self, context: None, "run": run, "period": period, **more})


def nothing(*_: Any) -> None:
    return None


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def counting(plugin: Any, *_: Any) -> Quota:
    plugin.calls += 1
    return Quota(plugin.calls)


def by_name(plugin: Any, client: Client, quota_type: QuotaType) -> Quota:
    return Quota(1000.0, Scope.group(client.client_id))


# ---- sound ones ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [Static, "static", EntryPoint("static", "quotahost.broker.plugins.suppliers.static:Static", "quotahost.suppliers")],
)
def test_a_sound_supplier_passes_by_class_name_or_entry_point(entry: Any) -> None:
    given = {"static.produce": "1M", "static.scope": "user"}
    check_supplier(entry, given, reconfigured={"static.produce": "2M"})


def test_a_sound_task_passes_and_runs_on_one_thread_of_its_own() -> None:
    ran: list[threading.Thread] = []

    def noting(*_: Any) -> None:
        ran.append(threading.current_thread())

    check_task(task(noting, close=noting))
    assert len(ran) == 4  # run three times, closed once
    assert len(set(ran)) == 1
    assert ran[0] is not threading.current_thread()


# ---- what a broker's start would refuse ----------------------------------------------------------


class Demanding:
    """Needs a property."""

    class Section(BaseModel):
        rate: float

    def __init__(self, context: Context[Section]) -> None:
        self.context = context

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        return Quota(self.context.section.rate)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, "plugin.demanding.rate"),
        ({"plugin.demanding.rate": "fast"}, "plugin.demanding.rate=fast"),
        ({"plugin.demanding.rate": "1", "plugin.demanding.rat": "1"}, "unknown property"),
    ],
)
def test_properties_are_validated_as_at_a_brokers_start(properties: dict[str, str], words: str) -> None:
    with pytest.raises(AssertionError, match=r"would not start.*contract 1 of") as failure:
        check_supplier(Demanding, properties)
    assert words in str(failure.value)
    with pytest.raises(SettingsError, match="demanding"):
        FakeHost(Role.SUPPLIER, Demanding, properties)


@pytest.mark.parametrize(
    "entry",
    [
        raising(RuntimeError("no such file")),
        raising(SystemExit(3)),
        type("Lacking", (), {"__init__": nothing}),
        "no-such-plugin",
    ],
)
def test_what_cannot_be_built_is_caught(entry: Any) -> None:
    with pytest.raises(AssertionError, match=r"would not start: supplier .*contract 1 of"):
        check_supplier(entry)


# ---- suppliers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quota", "words", "number"),
    [
        *((raising(error), f"raised {type(error).__name__}", 5)
          for error in (KeyError("alice"), SystemExit(1), TimeoutError("late"))),
        *((lambda *_, answer=answer: answer, "a supplier answers a Quota or None", 6)
          for answer in (1000.0, "1M", False)),
        (lambda *_: Quota(float("nan")), "raised ValueError", 5),
        (lambda *_: Quota(-1.0), "raised ValueError", 5),
        (lambda *_: time.sleep(0.02), "must answer from memory", 3),
        (counting, "without a call of answers_changed", 10),
        (by_name, "a group scope, and only that, needs a non-empty name", 5),
        (lambda p, c, t: Quota(float(c.client_id)) if ":" in c.client_id else None, "raised ValueError", 5),
        (lambda p, c, t: 0 if c == CAROL else None, "principal 'carol', client-id 'batch', PRODUCE", 6),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_caught_also_for_one_client_alone(quota: QuotaFunction, words: str, number: int) -> None:
    with pytest.raises(AssertionError, match=rf"(?s){words}.*\(contract {number} of quotahost.api\)"):
        check_supplier(supplier(quota), clients=[CAROL])


class Listening:
    """Gives alice a rate that each client quota changes; announces it for ``announces``, or not at all for None."""

    announces: tuple[str | None, ...] | None = ()

    def __init__(self, context: Context) -> None:
        self.context, self.rate = context, 1.0

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        return Quota(self.rate) if client.principal == "alice" else None

    def client_quota_changed(self, change: ClientQuotaChange) -> None:
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


def ticking(plugin: Any) -> None:
    plugin.calls += 1


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        *((supplier(nothing, **{method: raising(LookupError("gone"))}),
           rf"{method}\(\) raised LookupError: gone \(contract 5")
          for method in ("client_quota_changed", "cluster_changed", "tick", "reconfigure")),
        (supplier(lambda plugin, *_: Quota(1.0 + plugin.calls), tick=ticking), r"after tick\(\).*contract 10"),
        (supplier(nothing, close=raising(OSError("busy"))), r"close\(\) raised OSError.*contract 7"),
        (supplier(lambda *_: threading.Event().wait()),
         r"quota\(\) for principal 'alice'.* did not return within 1 s \(contract 3"),
    ],
)  # fmt: skip
def test_a_listener_a_tick_or_a_close_that_fails_and_a_call_that_hangs_are_caught(
    monkeypatch: pytest.MonkeyPatch, broken: type, words: str
) -> None:
    monkeypatch.setattr(FakeHost, "patience", 1.0)
    with pytest.raises(AssertionError, match=words):
        check_supplier(broken)


# ---- the end -------------------------------------------------------------------------------------


def test_a_thread_left_behind_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeHost, "patience", 1.0)
    stop = threading.Event()

    def init(self: Any, context: Context) -> None:
        threading.Thread(target=stop.wait, name="forgotten", daemon=True).start()

    try:
        with pytest.raises(AssertionError, match=r"the thread 'forgotten' still runs \(contract 7"):
            check_supplier(supplier(nothing, __init__=init))
    finally:
        stop.set()


# ---- factor sources, policies, tasks -------------------------------------------------------------


VOLUMES = ClusterVolumes((Volume("1", "/", 2, 1),), ("broker 2 is silent",))


@pytest.mark.proves("proposal-035.factor-alone")
@pytest.mark.parametrize(
    ("read", "types", "problem"),
    [
        *((lambda self, answer=answer: answer, None, "") for answer in (None, 0, 0.5, 1.0, Factor(0.5), VOLUMES)),
        *((lambda self, answer=answer: answer, None, "a factor source answers.*contract 6")
          for answer in ("0.5", True, float("nan"))),
        (lambda self: 1.5, None, "a factor source answers .* from 0.0 to 1.0.*contract 6"),
        (lambda self: Factor(1.5), None, "raised ValueError.*contract 5"),
        (lambda self: ClusterVolumes(("data",)), None, "raised ValueError.*contract 5"),  # type: ignore[arg-type]
        (lambda self: ClusterVolumes((), (1,)), None, "raised ValueError.*contract 5"),  # type: ignore[arg-type]
        (raising(ConnectionError("refused")), None, "raised ConnectionError.*contract 5"),
        *((lambda self: 0.5, types, "a collection of QuotaType.*contract 14") for types in ("PRODUCE", ("produce",))),
        *((lambda self, answer=answer: answer, (QuotaType.FETCH,), "a factor above 0.*contract 14")
          for answer in (0, ClusterVolumes(()))),
    ],
)  # fmt: skip
def test_a_factor_source_may_answer_these_types_and_a_wrong_one_is_caught(
    read: Callable[[Any], Any], types: Any, problem: str
) -> None:
    with pytest.raises(AssertionError, match=problem) if problem else nullcontext():
        check_factor_source(source(read) if types is None else source(read, quota_types=types))


@pytest.mark.proves("proposal-035.policy")
@pytest.mark.parametrize(
    ("factor", "words", "number"),
    [
        (lambda v: 1 - v.consumed / v.capacity, "must be a number from 0.0 to 1.0", 6),  # overfull: below 0
        (lambda v: None, "must be a number", 6),
        (lambda v: v.consumed / max(v.capacity, v.consumed), "for the emptier", 6),
        (lambda v: 1 / 0, "raised ZeroDivisionError", 5),
    ],
)
def test_a_wrong_policy_is_caught(factor: Callable[[Volume], Any], words: str, number: int) -> None:
    special = Volume("9", "/special", 10, 5)
    judged: list[Volume] = []
    check_policy(policy(lambda v: judged.append(v) or 1.0), volumes=[special])
    assert special in judged
    with pytest.raises(AssertionError, match=rf"{words}.*contract {number}"):
        check_policy(policy(factor))


SOFT, HARD = Limit(LimitType.MIN_FREE_PERCENTAGE, 20), Limit(LimitType.MIN_FREE_PERCENTAGE, 10)


def with_limits(**instead: Any) -> type:
    """A sound policy that can be asked for its limits, with methods replaced; None takes one away."""

    def used(volume: Volume) -> Fraction:
        return Fraction(volume.consumed, volume.capacity)

    def factor(self: Any, volume: Volume) -> float:
        return float(min(Fraction(1), max(Fraction(0), 10 * (Fraction(9, 10) - used(volume)))))

    methods = {
        "__init__": lambda self, context: None, "quota_factor": factor,
        "soft_limit": lambda self, volume: SOFT, "hard_limit": lambda self, volume: HARD,
        "breaches_soft_limit": lambda self, volume: used(volume) > Fraction(8, 10),
        "breaches_hard_limit": lambda self, volume: used(volume) >= Fraction(9, 10),
    }  # fmt: skip
    return type("Sample", (), {name: method for name, method in (methods | instead).items() if method})


@pytest.mark.proves("proposal-035.policy-limits")
@pytest.mark.parametrize(
    ("instead", "words", "number"),
    [
        ({"hard_limit": None}, r"lacks hard_limit\(\)", 12),
        ({"breaches_soft_limit": lambda self, v: False}, "breaches its hard limit, but not its soft one", 12),
        (dict.fromkeys(("breaches_soft_limit", "breaches_hard_limit"), lambda self, v: False), "doesn't breach", 12),
        ({"breaches_soft_limit": lambda self, v: True, "breaches_hard_limit": lambda self, v: True}, "not 0", 12),
        ({"soft_limit": lambda self, v: HARD, "hard_limit": lambda self, v: SOFT}, "before its soft one", 12),
        ({"soft_limit": lambda self, v: 0.8}, "a Limit or None", 6),
        ({"breaches_hard_limit": lambda self, v: 1}, "True or False", 6),
        ({"hard_limit": lambda self, v: 1 / 0}, "raised ZeroDivisionError", 5),
        ({"factor_in_force": lambda self, f: 1 / 0}, r"factor_in_force\(\) raised ZeroDivisionError", 5),
    ],
)
def test_limits_that_do_not_fit_the_factors_are_caught(instead: dict[str, Any], words: str, number: int) -> None:
    check_policy(with_limits())
    check_policy(with_limits(soft_limit=lambda self, volume: None, breaches_soft_limit=lambda self, volume: True))
    with pytest.raises(AssertionError, match=rf"{words}.*contract {number}"):
        check_policy(with_limits(**instead))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (task(raising(OSError("full"))), r"run\(\) raised OSError: full \(contract 5"),
        (task(nothing, period=timedelta()), r"its period is .*contract 1"),
        (task(nothing, period=5), r"its period is 5.*contract 1"),
        (task(lambda self: threading.Event().wait()), r"run\(\) did not return within 1 s \(contract 4"),
    ],
)
def test_a_wrong_task_is_caught(broken: type, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_task(broken, within=1.0)


# ---- the fake host -------------------------------------------------------------------------------


def test_the_fake_host_hands_on_changes_and_remembers_announcements() -> None:
    with FakeHost(Role.SUPPLIER, ClientQuotas, node_id=7) as host:
        assert host.context.node_id == 7
        assert host.quota("alice", "app", QuotaType.PRODUCE) is None
        host.client_quota(CLIENT_QUOTAS[0])
        assert host.quota("alice", "app", QuotaType.PRODUCE) == Quota(1_000_000.0)
        assert host.announced == [("alice", "app")]


def test_a_live_change_goes_to_reconfigure_or_builds_the_plugin_anew() -> None:
    with FakeHost(Role.SUPPLIER, Demanding, {"plugin.demanding.rate": "1"}) as host:
        first = host.plugin
        host.reconfigure({"plugin.demanding.rate": "2"})
        assert host.plugin is not first
        assert host.quota("a", "b", QuotaType.FETCH) == Quota(2.0)
        with pytest.raises(SettingsError):
            host.reconfigure({"plugin.demanding.rate": "fast"})
        assert host.quota("a", "b", QuotaType.FETCH) == Quota(2.0)
    with FakeHost(Role.FACTOR_SOURCE, Fixed) as fixed:
        before = fixed.plugin
        fixed.reconfigure({"plugin.fixed.factor": "0.25"})
        assert fixed.plugin is before
        assert fixed.plugin.read().value == 0.25
