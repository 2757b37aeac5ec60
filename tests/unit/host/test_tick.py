"""Suppliers whose answers depend on the time hear of it from the host, once a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quotahost.host.loop import Host
from quotahost.host.messages import Batch
from tests.fakes.packages import distribute

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


class FakeShim:
    """Takes nothing so many times, a quarter of a second each, then closes; remembers what it was asked."""

    def __init__(self, rounds: int) -> None:
        self.now, self._left = 0.0, rounds
        self.asked: list[tuple[float, tuple[Any, ...]]] = []
        self.failed: list[str] = []

    def properties(self) -> dict[str, str]:
        return {"client.quota.callback.supplier": "ticker"}

    def broker(self) -> dict[str, str]:
        return {"node.id": "1"}

    def closing(self) -> bool:
        self._left -= 1
        return self._left < 0

    def take(self, timeout: float) -> Batch:
        self.now += 0.25
        return Batch(())

    def known(self, *whom: Any) -> Batch:
        self.asked.append((self.now, whom))
        return Batch(())

    def plugin_failed(self, name: str) -> None:
        self.failed.append(name)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def test_a_supplier_ticks_once_a_second_and_its_failure_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribute(tmp_path, "ticker", {"quotahost.suppliers": {"ticker": "ticker_module:Ticker"}},
               {"ticker_module": TICKER})  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
    shim = FakeShim(rounds=16)
    Host(shim, clock=lambda: shim.now).run()
    asked = [at for at, whom in shim.asked if whom == ("alice", None)]
    assert asked == [2.25, 3.25]  # at 0.25 everyone is asked for anyway, at 1.25 it failed
    assert shim.failed == ["ticker"]
