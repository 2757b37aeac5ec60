"""The host between a scripted shim and real plugins: what ends in the table, and when."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quotahost.broker.host.messages import Batch, Event
from quotahost.model import Client
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim, serve


def test_a_swapped_supplier_is_built_before_the_old_one_closes_and_hears_all_quotas(mine: Any) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "9.0")
    shim.arrive(("alice", "a"))
    shim.reconfigure(supplier="client-quotas")
    serve(shim)
    assert shim.rate("alice", "a") == 9.0
    assert mine.CLOSED == [0.5]


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
    serve(shim, clock)
    assert caplog.text.count("QuotaFence") == times
    assert caplog.text.count("factor.scope=topics needs the fence") == ("factor.scope" in given)


def test_the_plugins_share_one_monitor_of_the_disks_that_ends_after_them(mine: Any, tmp_path: Path) -> None:
    mine.SEEN["ran"] = threading.Event()
    given = {"supplier": "static", "factor.source": "disky", "tasks": "disky", "factor.interval": "100ms"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)})
    shim.script.append(lambda: mine.SEEN["ran"].wait(60) and None)
    shim.reconfigure(**{"static.storage.overrides": f"{tmp_path} hard=5", "volumes.period": "1s"})
    clock = Clock()
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    serve(shim, clock)
    assert [volume.broker for volume in mine.SEEN["volumes"]] == ["1"]
    assert mine.SEEN["looking"] == 1
    assert "quotahost-disks" not in [thread.name for thread in threading.enumerate()]


def test_an_event_that_cannot_be_handled_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim({"static.produce": "5M"})
    good = "cluster", ("id-1", "1", "2")
    shim.script.append(Batch([Client("alice", "app")], [Event("client-quota", ("NO_TYPE",)), Event(*good)]))
    shim.script.append(Batch([], [Event("reconfigure", ("7", "odd"))]))
    serve(shim)
    assert shim.table[Client("alice", "app")][0][1] == 5_000_000
    assert shim.shown["Host", "", "EventErrors"] == 2
    assert shim.shown["Host", "", "ConfigRefused"] == 1
    assert "the host failed at the change" in str(shim.verdicts["7"])
    assert sum("can't be handled" in each.getMessage() for each in caplog.records) == 1  # logged once, not in a flood


@pytest.fixture
def fault_handler(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Enables Python's faulthandler, as a plugin may."""
    with (tmp_path / "faults").open("w") as file:
        yield lambda: faulthandler.enable(file)
        faulthandler.disable()


def test_a_faulthandler_before_the_plugins_ends_it(mine: Any, fault_handler: Callable[[], None]) -> None:
    fault_handler()
    shim = serve(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "Python's faulthandler was enabled by Python's start: it takes the JVM's handler" in shim.refused
    assert mine.BUILT == []
    assert not faulthandler.is_enabled()


def test_a_plugin_that_enables_faulthandler_ends_it(mine: Any, fault_handler: Callable[[], None]) -> None:
    mine.Supplier.close = lambda self: None
    mine.Supplier.__init__ = lambda self, context: fault_handler()
    shim = serve(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "faulthandler was enabled by a plugin" in shim.refused
    assert not faulthandler.is_enabled()


def test_a_faulthandler_that_is_enabled_later_is_disabled_again_with_one_line(
    mine: Any, fault_handler: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    shim, clock = FakeShim({"supplier": "mine"}), Clock()
    enabled: list[bool] = []
    for _ in range(3):
        shim.script += [fault_handler, lambda: setattr(clock, "now", clock.now + 2)]
        shim.idle()
        shim.script.append(lambda: enabled.append(faulthandler.is_enabled()))
    serve(shim, clock)
    assert enabled == [False] * 3
    assert caplog.text.count("a plugin has enabled Python's faulthandler, which is disabled again") == 1


@pytest.mark.usefixtures("mine")
def test_a_supplier_ticks_once_a_second_and_its_failure_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shim = Clock(0.0), FakeShim({"supplier": "ticker"})
    resolved_again: list[tuple[float, str | None]] = []

    def ask_again(principal: str | None, client_id: str | None) -> None:
        resolved_again.append((clock.now, principal))

    monkeypatch.setattr(shim, "ask_again", ask_again)
    shim.on_take = lambda: setattr(clock, "now", clock.now + 0.25)
    shim.idle(15)
    serve(shim, clock)
    # At 0.25 everyone is resolved again anyway, at 1.25 the supplier fails.
    assert [at for at, principal in resolved_again if principal == "alice"] == [2.25, 3.25]
    assert shim.failed == ["ticker"]
