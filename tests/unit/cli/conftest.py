"""Fixtures: a folder in which quotahost is installed, its package, and a Kafka."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotahost.cli import install
from tests.fakes.packages import distribute, distribute_quotahost

PLUGIN_FOLDER = Path(install.__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where quotahost 0.1.0 and jpype1 1.7.1 are installed, for this process and those that it starts."""
    folder = tmp_path / "site"
    distribute_quotahost(folder)
    distribute(folder, "jpype1", {}, version="1.7.1")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (folder, PLUGIN_FOLDER))))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a quotahost that carries no jar yet."""
    folder = tmp_path / "package"
    (folder / "_jar").mkdir(parents=True)
    monkeypatch.setattr(install, "files", lambda _: folder)
    return folder


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    home = tmp_path / "kafka"
    (home / "libs").mkdir(parents=True)
    return home
