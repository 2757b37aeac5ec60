"""Installs a package of plugins as pip would; the plugins record when they are built and closed, and what they see."""

import importlib
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.packages import distribute

PLUGINS = """
    import threading
    from datetime import timedelta
    from pydantic import BaseModel
    from quotahost.model import Factor, Quota, QuotaType

    BUILT, CLOSED, SEEN = [], [], {}

    class Supplier:
        class Section(BaseModel):
            share: float = 0.5

        def __init__(self, context):
            self.share, self.context = context.section.share, context
            BUILT.append(self.share)
        def quota(self, client, quota_type):
            return Quota(self.share)
        def close(self):
            CLOSED.append(self.share)

    class Unfit:
        period = timedelta(hours=1)

        def __init__(self, context):
            self.context = context
        def close(self):
            CLOSED.append(type(self).__name__)

    class Task(Unfit):
        def run(self): pass

    class Disky(Unfit):
        def __init__(self, context):
            self.disks = context.disks
        def quota(self, client, quota_type):
            return None
        def read(self):
            SEEN["volumes"] = self.disks.known().volumes
            SEEN["looking"] = {t for t in threading.enumerate() if t.name == "quotahost-disks"}
            return Factor(1.0)
        def run(self):
            assert self.disks.latest()[1] is not None
            SEEN["ran"].set()

    class Source(Unfit):
        def read(self): return 1.0

    class Typed(Source):
        quota_types = (QuotaType.FETCH,)

    class Wrong(Source):
        quota_types = "FETCH"
"""
GROUPS = {
    "quotahost.suppliers": {"mine": "mine:Supplier", "unfit": "mine:Unfit", "disky": "mine:Disky"},
    "quotahost.tasks": {"idle": "mine:Task", "disky": "mine:Disky"},
    "quotahost.factor_sources": {
        "disky": "mine:Disky", "disks": "mine:Source", "more": "mine:Source", "typed": "mine:Typed",
        "wrong": "mine:Wrong",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _levels(caplog: pytest.LogCaptureFixture) -> None:
    """A host, or a plugin in it, sets the levels of loggers, which would stay for other tests; caplog resets them."""
    for name in ("", "quotahost"):
        caplog.set_level(logging.getLogger(name).level, name)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the plugins."""
    distribute(tmp_path, "mine", GROUPS, {"mine": PLUGINS})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return importlib.import_module("mine")
