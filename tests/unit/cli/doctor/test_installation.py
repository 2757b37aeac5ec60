"""``quotahost doctor``: the interpreter that a broker would start, and the version of Kafka."""

import os
import sys
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor.installation import Interpreter, ask, check_python, check_version
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX
from tests.fakes.packages import distribute_quotahost, plant


def python(**changes: Any) -> Interpreter:
    facts: dict[str, Any] = {
        "named": "/opt/python",
        "executable": "/opt/python",
        "prefix": "/opt",
        "version": "3.12.4",
        "libpython": "/opt/lib/libpython3.12.so.1.0",
        "is_free_threaded": False,
        "jpype": "1.7.1",
        "quotahost": "0.1.0",
        "config": ("LDLIBRARY=libpython3.12.so", "LIBDIR=/opt/lib", "Py_ENABLE_SHARED=1"),
    }
    return Interpreter(**{**facts, **changes})


def of_level(level: Level, findings: Iterable[Finding]) -> list[str]:
    return [f"{finding.text} -> {finding.remedy}" for finding in findings if finding.level is level]


def test_a_good_interpreter_has_nothing_wrong_or_weak() -> None:
    assert {finding.level for finding in check_python(python())} == {Level.GOOD}
    in_child = check_python(python(libpython=""), in_child=True)
    assert {finding.level for finding in in_child} == {Level.GOOD}, "in a process of its own it needs no shared library"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "3.10.14"}, ["Python 3.10.14; 3.11 or newer is needed"]),
        ({"version": "3.13.1", "is_free_threaded": True}, ["free-threaded", "name an ordinary build"]),
        (
            {"libpython": "", "config": ("LDLIBRARY=libpython3.12.a", "Py_ENABLE_SHARED=0")},
            ["no shared libpython", "Py_ENABLE_SHARED=0", "apt install libpython3.12", "--enable-shared"],
        ),
        ({"quotahost": ""}, ["quotahost is not installed there", "/opt/python -m pip install quotahost"]),
        ({"jpype": ""}, ["jpype1 is not installed there"]),
    ],
)
def test_an_interpreter_of_no_use_is_wrong_with_its_remedy(changes: dict[str, Any], words: list[str]) -> None:
    (wrong,) = of_level(Level.WRONG, check_python(python(**changes)))
    for word in words:
        assert word in wrong


def test_an_interpreter_looked_up_on_path_is_weak() -> None:
    (weak,) = of_level(Level.WEAK, check_python(python(named="python3")))
    assert f"{PREFIX}python.executable=/opt/python" in weak


def test_this_interpreter_is_asked_for_real() -> None:
    found = ask(sys.executable)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.prefix == sys.prefix
    assert [line.partition("=")[0] for line in found.config] == ["LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED"]


def test_a_program_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho no such option >&2\nexit 2\n")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\n")
    for script in (failing, silent):
        script.chmod(0o755)
    with pytest.raises(QuotahostError, match="can't be run: No such file"):
        ask(str(tmp_path / "none"))
    with pytest.raises(QuotahostError, match=r"no working Python 3.11 or newer: no such option"):
        ask(str(failing))
    with pytest.raises(QuotahostError, match="is no Python"):
        ask(str(silent))


def test_nothing_in_the_working_directory_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}relative{os.pathsep}{tmp_path}")
    path = ask(sys.executable).path
    assert ran() == []
    assert path[-1] == str(tmp_path), "its absolute folders are looked in, last"
    assert all(map(os.path.isabs, path))
    assert str(tmp_path / "cwd") not in path


def test_what_is_installed_in_a_folder_of_pythonpath_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    python = str(bare / "bin" / "python")
    assert ask(python).quotahost == ""
    distribute_quotahost(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert ask(python).quotahost == "0.1.0"


def test_a_virtual_environment_has_its_own_packages(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    distribute_quotahost(site)
    found = ask(str(tmp_path / "venv" / "bin" / "python"))
    assert (found.quotahost, found.prefix) == ("0.1.0", str(tmp_path / "venv"))
    assert str(site) in found.path


def test_only_an_interpreter_finds_its_users_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    venv.create(tmp_path / "venv", with_pip=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".local" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    distribute_quotahost(folder)
    assert ask(base).quotahost == "0.1.0"
    assert ask(str(tmp_path / "venv" / "bin" / "python")).quotahost == ""


@pytest.mark.parametrize(
    ("versions", "level", "words"),
    [
        (("4.0.0", "4.1.1", "4.2.0", "4.2.1", "4.3.0", "4.3.1"), Level.WEAK, "KAFKA-20746"),
        (("4.2.2", "4.3.2", "4.3.10", "4.4.0"), Level.GOOD, "Kafka 4."),
        (("3.9.1", "4.5.0", "5.0.0"), Level.WEAK, "tried with 4.0 to 4.4 only"),
        (("trunk",), Level.NOTE, ""),  # a folder without a Kafka is no fault
    ],
)
def test_versions_with_the_null_pointer_and_those_that_were_never_tried_are_weak(
    tmp_path: Path, versions: tuple[str, ...], level: Level, words: str
) -> None:
    for version in versions:
        libs = tmp_path / version
        libs.mkdir()
        for jar in (f"kafka-clients-{version}.jar", "kafka_2.13-1.0.0.jar"):
            (libs / jar).touch()
        found = check_version(libs)
        assert (found.level, words in found.text) == (level, True), version
        assert level is Level.NOTE or f"Kafka {version}" in found.text
