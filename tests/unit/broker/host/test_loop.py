"""The host between a scripted shim and real plugins: what ends in the table, and when."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import NEWCOMER, Batch, Event
from quotahost.broker.host.new_clients import RETRY
from quotahost.model import Client
from tests.fakes.packages import distribute
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim, node_of

PLUGINS = """
    import threading
    from datetime import timedelta
    from pydantic import BaseModel, field_validator
    from quotahost.model import Factor, Quota

    STATE = {}

    class Base:
        def __init__(self, context):
            self.context = context
            STATE.setdefault("built", []).append(context.name)
        def close(self):
            STATE.setdefault("closed", []).append(self.context.name)

    class Supplier(Base):
        def quota(self, client, quota_type):
            answer = STATE.get("answer", Quota(5.0))
            return answer(client) if callable(answer) else answer

    class Ticker(Base):
        ticks = 0

        def quota(self, client, quota_type):
            return None
        def tick(self):
            self.ticks += 1
            if self.ticks == 2:
                raise SystemExit("a plugin's, not the host's")
            self.context.answers_changed("alice")

    class Checked(Base):
        class Section(BaseModel):
            share: float = 0.5

            @field_validator("share")
            @classmethod
            def count(cls, value):
                STATE.setdefault("validated", []).append(value)
                return value
        def quota(self, client, quota_type):
            return Quota(self.context.section.share)

    class Adaptable(Checked):
        def reconfigure(self, section):
            STATE["reconfigured"] = section.share
        def quota(self, client, quota_type):
            return None

    class Disky(Base):
        def __init__(self, context):
            super().__init__(context)
            self.disks = context.disks
        def read(self):
            STATE["volumes"] = self.disks.known().volumes
            STATE["looking"] = [t.name for t in threading.enumerate()].count("quotahost-disks")
            return Factor(1.0)
        def run(self):
            assert self.disks.latest()[1] is not None
            STATE["ran"].set()
        period = timedelta(hours=1)
"""


OTHERS = ("ticker", "checked", "adaptable")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    groups = {
        "quotahost.suppliers": {"mine": "mine:Supplier"} | {name: f"mine:{name.title()}" for name in OTHERS},
        "quotahost.factor_sources": {"disky": "mine:Disky"},
        "quotahost.tasks": {"disky": "mine:Disky"},
    }
    distribute(tmp_path, "mine", groups, {"mine": PLUGINS})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    module = __import__("mine")
    made: dict[str, Any] = module.STATE
    return made


def run(shim: FakeShim, clock: Clock | None = None) -> FakeShim:
    Host(shim, clock or Clock()).run()
    return shim


@pytest.mark.proves("proposal-035.supplier")
def test_the_first_supplier_that_answers_gives_the_quota() -> None:
    shim = FakeShim({"supplier": "client-quotas,static", "static.produce": "2M"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "7000000.0")
    shim.arrive(("alice", "a"), ("bob", "b"))
    run(shim)
    assert shim.rate("alice", "a") == 7e6
    assert shim.rate("bob", "b") == 2e6
    assert shim.rate("bob", "b", quota_type=1) is None


def test_a_wrong_property_or_plugin_is_refused_and_nothing_serves() -> None:
    for given in ({"static.produce": "fast"}, {"supplier": "nobody"}):
        shim = FakeShim(given)
        shim.arrive(("alice", "a"))
        run(shim)
        assert shim.refused
        assert shim.table == {}


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_a_failing_supplier_is_counted_and_asked_again(state: dict[str, Any], error: type[BaseException]) -> None:
    def fail(client: object) -> None:
        raise error

    clock = Clock()
    state["answer"] = fail
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))

    def heal() -> None:
        assert shim.code("alice", "a") == NEWCOMER
        assert shim.failed.count("mine") == 4
        del state["answer"]
        clock.now += RETRY

    shim.script.append(heal)
    shim.idle()
    run(shim, clock)
    assert shim.rate("alice", "a") == 5.0


@pytest.mark.parametrize("answer", [float("nan"), 0, -1.0, "fast", True, object()])
def test_an_answer_of_another_type_is_the_suppliers_failure(state: dict[str, Any], answer: object) -> None:
    state["answer"] = answer
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    run(shim)
    assert shim.code("alice", "a") == NEWCOMER


def test_a_swapped_supplier_is_built_before_the_old_one_closes_and_hears_all_quotas(state: dict[str, Any]) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "9.0")
    shim.arrive(("alice", "a"))
    shim.reconfigure(supplier="client-quotas")
    shim.idle()
    run(shim)
    assert shim.rate("alice", "a") == 9.0
    assert state["closed"] == ["mine"]


def test_a_live_change_validates_a_plugins_own_properties_once(state: dict[str, Any]) -> None:
    shim = FakeShim({"supplier": "mine"})
    change = {"supplier": "adaptable,checked"}
    for share in ("0.1", "0.2"):
        change |= {f"plugin.{name}.share": share for name in ("checked", "adaptable")}
        shim.validate("1", **change)
        shim.reconfigure(**change)
    shim.arrive(("alice", "a"))
    run(shim)
    assert shim.verdicts["1"] is None
    assert state["validated"] == [0.1, 0.1, 0.2, 0.2]
    assert state["reconfigured"] == 0.2
    assert shim.rate("alice", "a") == 0.2


def test_each_answer_says_which_supplier_gave_it_or_why_the_client_is_exempt(state: dict[str, Any]) -> None:
    excluded = "static.excluded.principal.name.list"
    given = {"supplier": "mine,static", "static.produce": "1M", excluded: "User:root", "kafka.sasl.username": "own"}
    shim = FakeShim(given, node_of(1, "kafka"))
    state["answer"] = None
    shim.arrive(("alice", "a"), ("root", "a"), ("kafka", "a"), ("own", "a"), ("ANONYMOUS", "1"))
    run(shim)
    sources = {client.principal: names for client, names in shim.sources.items()}
    assert sources["root"] == ["excluded"] * 4
    assert sources["kafka"] == ["broker"] * 4
    assert sources["own"] == ["plugin"] * 4
    assert sources["alice"] == sources["ANONYMOUS"] == ["static", "", "", ""]


@pytest.mark.parametrize(
    ("given", "has_fence", "times"),
    [
        ({"factor.source": "fixed"}, False, 1),
        ({"factor.source": "fixed", "factor.scope": "topics"}, False, 1),
        ({"factor.source": "fixed"}, True, 0),
        ({"factor.source": "fixed", "shadow": "all"}, False, 0),
        ({"factor.source": "fixed", "shadow": "factor"}, False, 0),
        ({}, False, 0),
    ],
)
def test_a_pause_that_no_fence_can_hold_is_warned_of_once_soon_after_the_start(
    caplog: pytest.LogCaptureFixture, given: dict[str, str], has_fence: bool, times: int
) -> None:
    clock = Clock()
    shim = FakeShim({"supplier": "static", **given})
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    shim.idle(4)  # a broker makes its authorizer, and so the fence, after its callback
    shim.script.append(lambda: setattr(shim, "has_fence", has_fence))
    shim.idle(20)
    run(shim, clock)
    assert caplog.text.count("QuotaFence") == times
    assert caplog.text.count("factor.scope=topics needs the fence") == ("factor.scope" in given)


def test_the_plugins_share_one_monitor_of_the_disks_that_ends_after_them(state: dict[str, Any], tmp_path: Path) -> None:
    state["ran"] = threading.Event()
    given = {"supplier": "static", "factor.source": "disky", "tasks": "disky", "factor.interval": "100ms"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)})
    shim.script.append(lambda: state["ran"].wait(60) and None)
    shim.reconfigure(**{"static.storage.overrides": f"{tmp_path} hard=5", "volumes.period": "1s"})
    clock = Clock()
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    run(shim, clock)
    assert [volume.broker for volume in state["volumes"]] == ["1"]
    assert state["looking"] == 1
    assert "quotahost-disks" not in [thread.name for thread in threading.enumerate()]


def test_an_event_that_cannot_be_handled_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim({"static.produce": "5M"})
    good = "cluster", ("id-1", "1", "2")
    shim.script.append(Batch([Client("alice", "app")], [Event("client-quota", ("NO_TYPE",)), Event(*good)]))
    shim.script.append(Batch([], [Event("validate", ("7", "odd")), Event("reconfigure", ("odd",))]))
    Host(shim).run()
    assert shim.table[Client("alice", "app")][0][1] == 5_000_000
    assert shim.shown["Host", "", "EventErrors"] == 3
    assert shim.shown["Host", "", "ConfigRefused"] == 1
    assert "the host failed at the change" in str(shim.verdicts["7"])
    assert sum("can't be handled" in each.getMessage() for each in caplog.records) == 1  # logged once, not in a flood


@pytest.fixture
def fault_handler(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Enables Python's faulthandler, as a plugin may."""
    with (tmp_path / "faults").open("w") as file:
        yield lambda: faulthandler.enable(file)
        faulthandler.disable()


def test_a_faulthandler_before_the_plugins_ends_it(state: dict[str, Any], fault_handler: Callable[[], None]) -> None:
    fault_handler()
    shim = run(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "Python's faulthandler was enabled by Python's start: it takes the JVM's handler" in shim.refused
    assert "built" not in state
    assert not faulthandler.is_enabled()


def test_a_plugin_that_enables_faulthandler_ends_it(state: dict[str, Any], fault_handler: Callable[[], None]) -> None:
    module = __import__("mine")
    module.Supplier.close = lambda self: None
    module.Supplier.__init__ = lambda self, context: fault_handler()
    shim = run(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "faulthandler was enabled by a plugin" in shim.refused
    assert not faulthandler.is_enabled()


def test_a_faulthandler_that_is_enabled_later_is_disabled_again_with_one_line(
    state: dict[str, Any], fault_handler: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    shim, clock = FakeShim({"supplier": "mine"}), Clock()
    enabled: list[bool] = []
    for _ in range(3):
        shim.script += [fault_handler, lambda: setattr(clock, "now", clock.now + 2)]
        shim.idle()
        shim.script.append(lambda: enabled.append(faulthandler.is_enabled()))
    run(shim, clock)
    assert enabled == [False] * 3
    assert caplog.text.count("a plugin has enabled Python's faulthandler, which is disabled again") == 1


@pytest.mark.usefixtures("state")
def test_a_supplier_ticks_once_a_second_and_its_failure_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shim = Clock(0.0), FakeShim({"supplier": "ticker"})
    resolved_again: list[tuple[float, str | None]] = []

    def ask_again(principal: str | None, client_id: str | None) -> None:
        resolved_again.append((clock.now, principal))

    monkeypatch.setattr(shim, "ask_again", ask_again)
    shim.on_take = lambda: setattr(clock, "now", clock.now + 0.25)
    shim.idle(16)
    Host(shim, clock).run()
    # At 0.25 everyone is resolved again anyway, at 1.25 the supplier fails.
    assert [at for at, principal in resolved_again if principal == "alice"] == [2.25, 3.25]
    assert shim.failed == ["ticker"]
