"""Suppliers whose answers depend on the time: the host calls their ``tick`` once a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.broker.host.loop import Host
from tests.fakes.packages import distribute
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim

TICKER = """
    class Ticker:
        ticks = 0

        def __init__(self, context):
            self.context = context

        def quota(self, client, quota_type):
            return None

        def tick(self):
            Ticker.ticks += 1
            if Ticker.ticks == 2:
                raise SystemExit("a plugin's, not the host's")
            self.context.answers_changed("alice")
"""


def test_a_supplier_ticks_once_a_second_and_its_failure_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribute(tmp_path, "ticker", {"quotahost.suppliers": {"ticker": "ticker_module:Ticker"}},
               {"ticker_module": TICKER})  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
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
