"""Plugins that were built before another one failed: they are closed, so that no thread of theirs is left behind."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from quotahost.api import Role
from quotahost.api.context import no_disks
from quotahost.broker.discovery import PluginError
from quotahost.broker.host.plugins import Builder, Guard, PluginSet
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.testing.broker import FakeBroker
from tests.fakes.packages import distribute
from tests.fakes.shim import FakeShim

CODE = """
    from datetime import timedelta

    CLOSED = []

    class Supplier:
        def __init__(self, context): pass
        def quota(self, client, quota_type): return None
        def close(self): CLOSED.append("supplier")

    class Task:
        period = timedelta(seconds=1)
        def __init__(self, context): pass
        def run(self): raise AssertionError("it was never started")
        def close(self): CLOSED.append("task")

    class Broken:
        period = timedelta(seconds=1)
        def __init__(self, context): raise RuntimeError("no licence")
        def run(self): pass
"""


def settings(supplier: str, tasks: str) -> Settings:
    return Settings.from_properties({f"{PREFIX}supplier": supplier, f"{PREFIX}tasks": tasks})


def test_what_was_built_before_a_plugin_that_fails_is_closed_and_what_was_there_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suppliers = {"kept": "closing:Supplier", "fresh": "closing:Supplier"}
    tasks = {"good": "closing:Task", "broken": "closing:Broken"}
    distribute(tmp_path, "acme", {Role.SUPPLIER.group: suppliers, Role.TASK.group: tasks}, {"closing": CODE})
    monkeypatch.syspath_prepend(str(tmp_path))
    builder = Builder(FakeBroker(), FakeBroker(), lambda *_: None, no_disks, Guard(FakeShim()))
    before = settings("kept", "")
    old = builder.build(before, builder.validate(before), PluginSet(()))
    after = settings("kept,fresh", "good,broken")
    with pytest.raises(PluginError, match="no licence"):
        builder.build(after, builder.validate(after), old)
    assert importlib.import_module("closing").CLOSED == ["task", "supplier"]
