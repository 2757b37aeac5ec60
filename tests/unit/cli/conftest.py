"""Fixtures: a folder with an installed quotahost, its package, a Kafka, and a broker with a fake admin socket."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from quotahost.cli import install
from quotahost.cli.console import Finding
from quotahost.cli.explain import broker_socket
from quotahost.cli.property_files import BrokerFile
from quotahost.settings.broker import Settings
from tests.fakes.admin_socket import FakeAdminSocket, short_directory
from tests.fakes.packages import distribute, distribute_quotahost
from tests.unit.cli.commands import broker_file


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where quotahost 0.1.0 and jpype1 1.7.1 are installed, for this process and those that it starts."""
    folder = tmp_path / "site"
    distribute_quotahost(folder)
    distribute(folder, "jpype1", {}, version="1.7.1")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (folder, Path(install.__file__).parents[2]))))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the jar in quotahost's package, which contains no jar yet."""
    monkeypatch.setattr(install, "_CARRIED", tmp_path / "carried.jar")
    return tmp_path / "carried.jar"


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    home = tmp_path / "kafka"
    (home / "libs").mkdir(parents=True)
    return home


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of the sockets; commands don't find other brokers that may run on this machine."""
    with short_directory() as made:
        monkeypatch.setattr(broker_socket, "_candidates", lambda: iter(made.glob("*")))
        yield made


@pytest.fixture
def broker(directory: Path) -> Iterator[FakeAdminSocket]:
    """Broker 1, in the process of the test."""
    made = FakeAdminSocket(directory)
    yield made
    made.close()


@pytest.fixture
def found(tmp_path: Path) -> Callable[..., list[Finding]]:
    """A function that returns a check's findings; a dot at the beginning of a line stands for the common prefix."""

    def run(check: Callable[[Settings, BrokerFile], Iterable[Finding]], *lines: str) -> list[Finding]:
        file = broker_file(tmp_path, *lines)
        return list(check(Settings.from_properties(file.properties), file))

    return run
